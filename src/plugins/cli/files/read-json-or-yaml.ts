/** Owns: reading a file of JSON or YAML in bounded time; what is wrong with its syntax comes with line and column. */
import { extname } from "node:path";
import type * as Yaml from "yaml";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";
import { findJsonExcess } from "../../../agents/coordination/std/json-text-excess.ts";
import { createInputError, type CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import { findDuplicateKey } from "./duplicate-key.ts";
import { formatBytes } from "../../../agents/coordination/std/quantities.ts";
import { readTextFile } from "./read-text-file.ts";

/** The value in a file, or why it cannot be read. */
export type LoadedFile =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problems: readonly PlanProblem[] };

const TOO_DEEP = "the file is nested too deeply";
/** Depth of lists and maps within each other; more than any file that is read here may have. */
const DEPTH_MAX = 64;
const PROBLEMS_MAX = BOUNDS.validationProblemsMax;

const EXTENSIONS: ReadonlySet<string> = new Set([".json", ".yaml", ".yml"]);

/** Returns whether a file's name ends as that of a JSON or YAML file does. */
export function isJsonOrYamlFile(file: string): boolean {
  return EXTENSIONS.has(extname(file).toLowerCase());
}

/** Returns in one line what is wrong with the syntax of a file, each problem with its place. */
export function describeSyntaxProblems(problems: readonly PlanProblem[]): string {
  return problems.map(({ path, message }) => `${path}: ${message}`).join("; ");
}

/**
 * Reads a JSON or YAML file and returns its value, an object that is not validated, or the problems of its syntax.
 * `subject`: what the file holds, such as `a plan`, for errors. @throws CoordinationError `INPUT_INVALID` where it
 * cannot be read or is too large
 */
export async function readJsonOrYaml(file: string, subject: string): Promise<LoadedFile> {
  const bytesMax = BOUNDS.planFileBytesMax;
  const text = await readTextFile(file, {
    bytesMax,
    tooLarge: () => createTooLargeError(file, subject, bytesMax),
  });
  return parseJsonOrYaml(text, subject, extname(file).toLowerCase());
}

/**
 * Returns the value of a JSON or YAML text, an object that is not validated, or the problems of its syntax.
 * `extension`: says which of the two it is; without one the text's beginning does. @throws CoordinationError
 * `INPUT_INVALID` where it is too large
 */
export async function parseJsonOrYaml(text: string, subject: string, extension = ""): Promise<LoadedFile> {
  const loaded = text.trim() === "" ? NO_CONTENT : await parseByFormat(text, subject, extension);
  if (!loaded.ok || isRecord(loaded.value)) return loaded;
  const problem = `${nameOtherContent(loaded.value)}, and ${subject} is written as fields, each \`name: value\``;
  return createLoadRefusal([createSyntaxProblem(1, 1, problem)]);
}

const NO_CONTENT: LoadedFile = { ok: true, value: null };

/** Says what a value is that has no fields. */
function nameOtherContent(value: unknown): string {
  if (value === null || value === undefined) return "this has no content";
  return Array.isArray(value) ? "this is a list" : "this is a single value";
}

async function parseByFormat(text: string, subject: string, extension: string): Promise<LoadedFile> {
  const looksLikeJson = /^\s*[[{]/u.test(text);
  if (extension === ".json" || (extension !== ".yaml" && extension !== ".yml" && looksLikeJson)) {
    const parsed = parseJson(text);
    if (parsed) return parsed;
    if (extension === ".json") return explainInvalidJson(text);
  }
  return parseYaml(text, subject);
}

function createTooLargeError(place: string, subject: string, bytesMax: number): CoordinationError {
  return createInputError(`${place}: ${subject} may have at most ${formatBytes(bytesMax)}`);
}

/** Parses JSON; refuses it where it is too deep or has a key twice. `undefined` when the text is not JSON. */
function parseJson(text: string): LoadedFile | undefined {
  if (findJsonExcess(text, { depthMax: DEPTH_MAX, valuesMax: Infinity }))
    return createLoadRefusal([createSyntaxProblem(1, 1, TOO_DEEP)]);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const duplicate = findDuplicateKey(text);
  if (!duplicate) return { ok: true, value };
  const { line, column } = computeLineAndColumn(text, duplicate.offset);
  return createLoadRefusal([createSyntaxProblem(line, column, describeDuplicateKey(duplicate.key))]);
}

/**
 * Refuses text that is not JSON, with the first error and its place. JSON.parse does not always name the place; as
 * YAML with JSON's scalars the same text has nearly the same errors.
 */
async function explainInvalidJson(text: string): Promise<LoadedFile> {
  const named = findParseErrorPlace(text);
  if (named) return createLoadRefusal([named]);
  if (text.length > BOUNDS.planYamlBytesMax)
    return createLoadRefusal([createSyntaxProblem(1, 1, "this is not JSON")]);
  const yaml = await import("yaml");
  if (isNestedTooDeeply(text, yaml)) return createLoadRefusal([createSyntaxProblem(1, 1, TOO_DEEP)]);
  const lineCounter = new yaml.LineCounter();
  const slip = parseWithinStack(() => {
    const [first, second] = parseDocuments(text, yaml, { lineCounter, schema: "json" });
    return [
      ...(first ? listSyntaxSlips(first) : []),
      ...(second ? [createSecondDocumentSlip(second)] : []),
    ][0];
  });
  return createLoadRefusal([
    slip ? locateSlip(slip, lineCounter) : createSyntaxProblem(1, 1, "this is not JSON"),
  ]);
}

/** Returns the error of JSON.parse as a problem; `undefined` where it names no line and column, or the text is JSON. */
function findParseErrorPlace(text: string): PlanProblem | undefined {
  try {
    JSON.parse(text);
  } catch (error) {
    const syntaxError = /^SyntaxError: (.*) in JSON at position \d+ \(line (\d+) column (\d+)\)$/su.exec(
      String(error),
    );
    if (syntaxError)
      return createSyntaxProblem(Number(syntaxError[2]), Number(syntaxError[3]), String(syntaxError[1]));
  }
  return undefined;
}

async function parseYaml(text: string, subject: string): Promise<LoadedFile> {
  if (Buffer.byteLength(text) > BOUNDS.planYamlBytesMax)
    throw createTooLargeError("YAML", subject, BOUNDS.planYamlBytesMax);
  const yaml = await import("yaml");
  if (isNestedTooDeeply(text, yaml)) return createLoadRefusal([createSyntaxProblem(1, 1, TOO_DEEP)]);
  const lineCounter = new yaml.LineCounter();
  const slips: SyntaxSlip[] = [];
  const document = parseWithinStack(() => {
    const [first, second] = parseDocuments(text, yaml, { lineCounter });
    if (first) slips.push(...listSyntaxSlips(first), ...listUnrefusedSlips(first, yaml));
    if (second) slips.push(createSecondDocumentSlip(second));
    return first;
  });
  if (!document) return createLoadRefusal([createSyntaxProblem(1, 1, TOO_DEEP)]);
  const problems = slips.slice(0, PROBLEMS_MAX).map((slip) => locateSlip(slip, lineCounter));
  return problems.length > 0 ? createLoadRefusal(problems) : convertDocument(document);
}

const OPENING: ReadonlySet<string> = new Set(["[", "{"]);
const CLOSING: ReadonlySet<string> = new Set(["]", "}"]);

/** True when brackets or lists are nested too deeply to parse, which would take gigabytes. */
function isNestedTooDeeply(text: string, { Lexer }: typeof Yaml): boolean {
  let brackets = 0;
  let inLine = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (lexeme === "\n") inLine = 0;
    else if (lexeme === "-" || lexeme === "?") inLine += 1;
    else if (OPENING.has(lexeme)) brackets += 1;
    else if (CLOSING.has(lexeme)) brackets -= 1;
    if (brackets > DEPTH_MAX || inLine > DEPTH_MAX) return true;
  }
  return false;
}

/** Parses at most two documents. Parsing stops after a few errors, because two million would not fit into memory. */
function parseDocuments(
  text: string,
  yaml: typeof Yaml,
  { lineCounter, schema }: { readonly lineCounter: Yaml.LineCounter; readonly schema?: "json" },
): Yaml.Document.Parsed[] {
  const tokens = new yaml.Parser(lineCounter.addNewLine).parse(text);
  // The parser would compare every key with every other; one pass with a set finds the same.
  const composer = new yaml.Composer({ uniqueKeys: false, logLevel: "error", ...(schema && { schema }) });
  const [first, second] = composer.compose(takeUntilManyErrors(tokens), true, text.length);
  return [first, second].filter((document) => document !== undefined);
}

/** Yields tokens up to the last error that can be reported. */
function* takeUntilManyErrors(tokens: Iterable<Yaml.CST.Token>): Generator<Yaml.CST.Token> {
  let errors = 0;
  for (const token of tokens) {
    yield token;
    errors += token.type === "error" ? 1 : 0;
    if (errors >= PROBLEMS_MAX) return;
  }
}

/** Lists what the parser itself reports, errors before warnings. */
function listSyntaxSlips({ errors, warnings }: Yaml.Document): SyntaxSlip[] {
  return [...errors.slice(0, PROBLEMS_MAX), ...warnings.slice(0, PROBLEMS_MAX)].map(({ pos, message }) => ({
    offset: pos[0],
    message: extractSentence(message),
  }));
}

/** A mistake in a file, and where it is. */
interface SyntaxSlip {
  readonly offset: number;
  readonly message: string;
}

/**
 * Lists what the parser does not refuse: lists and maps as keys, keys that are there twice, aliases of nothing, too many aliases, and
 * depth. All of it before anything is converted or written out as a text: that takes time beyond all bounds.
 */
function listUnrefusedSlips(document: Yaml.Document, yaml: typeof Yaml): SyntaxSlip[] {
  const { visit, isNode, isCollection, isMap } = yaml;
  const slips: SyntaxSlip[] = [];
  const aliasSlips = createAliasCheck(yaml);
  visit(document, (_, node, path) => {
    if (slips.length >= PROBLEMS_MAX) return visit.BREAK;
    if (!isNode(node)) return undefined;
    if (path.length > DEPTH_MAX && path.filter((ancestor) => isCollection(ancestor)).length >= DEPTH_MAX) {
      slips.push({ offset: readOffset(node), message: TOO_DEEP });
      return visit.BREAK;
    }
    slips.push(...aliasSlips(node));
    if (!isMap(node)) return undefined;
    const wrong = listNonTextKeys(node, yaml);
    slips.push(...(wrong.length > 0 ? wrong : listDuplicateKeys(node)).slice(0, PROBLEMS_MAX));
    // The inside of such a key is not looked at: it may be nested in ways that double with each level.
    return wrong.length > 0 ? visit.SKIP : undefined;
  });
  return slips;
}

function readOffset({ range }: Yaml.Node): number {
  return range?.[0] ?? 0;
}

/** Creates a check that takes all nodes in order and lists what is wrong with each as an alias. */
function createAliasCheck({ isAlias }: typeof Yaml): (node: Yaml.Node) => SyntaxSlip[] {
  const anchors = new Set<string>();
  const { yamlAliasesMax } = BOUNDS;
  let aliases = 0;
  return (node) => {
    const slips: SyntaxSlip[] = [];
    const offset = readOffset(node);
    if (isAlias(node)) {
      aliases += 1;
      if (!anchors.has(node.source))
        slips.push({ offset, message: `nothing before this has the anchor &${node.source}` });
      if (aliases === yamlAliasesMax + 1)
        slips.push({ offset, message: `the file has more than ${yamlAliasesMax} aliases; write them out` });
    } else if ("anchor" in node && typeof node.anchor === "string") anchors.add(node.anchor);
    return slips;
  };
}

/** Lists the keys that are a list, a map or an alias: each would have to be written out as a text first. */
function listNonTextKeys({ items }: Yaml.YAMLMap, { isAlias, isCollection }: typeof Yaml): SyntaxSlip[] {
  return items.flatMap(({ key }) =>
    isCollection(key) || isAlias(key)
      ? [{ offset: readOffset(key), message: "a key is a text, not a list, a map or an alias" }]
      : [],
  );
}

function listDuplicateKeys({ items }: Yaml.YAMLMap): SyntaxSlip[] {
  const seen = new Set<string>();
  return items.flatMap(({ key: node }) => {
    const { range, value } = node as Partial<Yaml.Scalar>;
    const key = String(value ?? node);
    const isThere = seen.has(key);
    seen.add(key);
    return isThere ? [{ offset: range?.[0] ?? 0, message: describeDuplicateKey(key) }] : [];
  });
}

function createSecondDocumentSlip({ range }: Yaml.Document.Parsed): SyntaxSlip {
  return { offset: range[0], message: "a second document begins here; remove it" };
}

/** Returns a slip as a problem with line and column. */
function locateSlip({ offset, message }: SyntaxSlip, lineCounter: Yaml.LineCounter): PlanProblem {
  const { line, col } = lineCounter.linePos(offset);
  return createSyntaxProblem(Math.max(line, 1), Math.max(col, 1), message);
}

/**
 * Converts a document to its value; refuses one whose aliases stand for too much, which aliases of aliases can make
 * grow beyond all bounds.
 */
function convertDocument(document: Yaml.Document): LoadedFile {
  try {
    return { ok: true, value: document.toJS({ maxAliasCount: BOUNDS.yamlAliasesMax }) as unknown };
  } catch {
    return createLoadRefusal([
      createSyntaxProblem(1, 1, "the aliases of the file stand for too much; write them out"),
    ]);
  }
}

/** Parses; `undefined` when the parser's own recursion ran out of stack. */
function parseWithinStack<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function createLoadRefusal(problems: readonly PlanProblem[]): LoadedFile {
  return { ok: false, problems };
}

function createSyntaxProblem(line: number, column: number, message: string): PlanProblem {
  return { path: `line ${line}, column ${column}`, code: "FILE_SYNTAX", message };
}

function describeDuplicateKey(name: string): string {
  return `the key ${JSON.stringify(name.slice(0, BOUNDS.nameCharsMax))} is there twice; remove one`;
}

/** Returns the parser's sentence without the place and the excerpt that it adds. */
function extractSentence(message: string): string {
  const [first = ""] = message.split("\n");
  if (first.startsWith("Maximum call stack")) return TOO_DEEP;
  return first.replace(/ at line \d+, column \d+:?$/u, "");
}

function computeLineAndColumn(
  text: string,
  offset: number,
): { readonly line: number; readonly column: number } {
  const before = text.slice(0, offset);
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
}
