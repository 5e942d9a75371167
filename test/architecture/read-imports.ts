/** Owns: what each file of `src/` imports, and how. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative, sep } from "node:path";
import ts from "typescript";

export const SRC = join(import.meta.dirname, "../../src");

export interface Import {
  /** From `src/`. */
  readonly file: string;
  readonly line: number;
  /** A path from `src/`, or a package. */
  readonly target: string;
  readonly isPackage: boolean;
  readonly kind: "value" | "types" | "lazy";
}

export function listSourceFiles(): string[] {
  return readdirSync(SRC, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(SRC, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .toSorted();
}

export function importsOf(file: string, text: string = readFileSync(join(SRC, file), "utf8")): Import[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: Import[] = [];
  const add = (node: ts.Node, specifier: ts.Node | undefined, kind: Import["kind"]): void => {
    if (!specifier || !ts.isStringLiteralLike(specifier)) return;
    const isPackage = !specifier.text.startsWith(".");
    const target = isPackage ? specifier.text : posix.normalize(posix.join(dirname(file), specifier.text));
    const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
    found.push({ file, line, target, isPackage, kind });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node))
      add(node, node.moduleSpecifier, isTypeOnly(node.importClause) ? "types" : "value");
    else if (ts.isExportDeclaration(node))
      add(node, node.moduleSpecifier, node.isTypeOnly ? "types" : "value");
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
      add(node, node.argument.literal, "types");
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
      add(node, node.arguments[0], "lazy");
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function isTypeOnly(clause: ts.ImportClause | undefined): boolean {
  if (!clause) return false;
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  const { namedBindings } = clause;
  const named = namedBindings && ts.isNamedImports(namedBindings) ? namedBindings.elements : [];
  return !clause.name && named.length > 0 && named.every((element) => element.isTypeOnly);
}
