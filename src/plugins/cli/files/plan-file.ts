/** Owns: reading a plan file, JSON or YAML, in bounded time; what is wrong with its syntax comes with line and column. */
import { extname } from "node:path";
import type * as Yaml from "yaml";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { findJsonExcess } from "../../../agents/coordination/std/json-text-excess.ts";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import { findDuplicateKey } from "./duplicate-key.ts";
import { formatBytes } from "../../../agents/coordination/std/quantities.ts";
import { readTextFile } from "./read-text-file.ts";

export type Loaded =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problems: readonly PlanProblem[] };

const TOO_DEEP = "the file is nested too deeply";
/** Depth of lists and maps within each other; more than any file that is read here may have. */
const DEPTH_MAX = 64;
const PROBLEMS_MAX = BOUNDS.validationProblemsMax;

/** Describes what is wrong with the syntax of a file in one line, with the places. */
export function describeSlips(problems: readonly PlanProblem[]): string {
  return problems.map(({ path, message }) => `${path}: ${message}`).join("; ");
}

/** @throws CoordinationError `INPUT_INVALID` where the file cannot be read or is too large. */
export async function loadPlanFile(file: string): Promise<Loaded> {
  const bytesMax = BOUNDS.planFileBytesMax;
  const text = await readTextFile(file, { bytesMax, tooLarge: () => createTooLargeError(file, bytesMax) });
  return parsePlanText(text, extname(file).toLowerCase());
}

/**
 * Parses the text of a plan; `extension` says what it is, where it says anything. @throws CoordinationError
 * `INPUT_INVALID` where it is too large.
 */
export async function parsePlanText(text: string, extension = ""): Promise<Loaded> {
  const looksLikeJson = /^\s*[[{]/u.test(text);
  if (extension === ".json" || (extension !== ".yaml" && extension !== ".yml" && looksLikeJson)) {
    const parsed = parseJson(text);
    if (parsed) return parsed;
    return extension === ".json" ? explainJson(text) : parseYaml(text);
  }
  return parseYaml(text);
}

function createTooLargeError(subject: string, sizeMax: number): CoordinationError {
  return new CoordinationError(
    "INPUT_INVALID",
    `${subject}: a plan may have at most ${formatBytes(sizeMax)}`,
  );
}

/** Parses a JSON file; `undefined` when the text is not JSON. */
function parseJson(text: string): Loaded | undefined {
  if (findJsonExcess(text, { depthMax: DEPTH_MAX, valuesMax: Infinity }))
    return refuse([createProblem(1, 1, TOO_DEEP)]);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const duplicate = findDuplicateKey(text);
  if (!duplicate) return { ok: true, value };
  const { line, column } = placeIn(text, duplicate.offset);
  return refuse([createProblem(line, column, describeDuplicateKey(duplicate.key))]);
}

/** JSON.parse does not always name the place; as YAML with JSON's scalars the same text has nearly the same errors. */
async function explainJson(text: string): Promise<Loaded> {
  const named = placeNamed(text);
  if (named) return refuse([named]);
  if (text.length > BOUNDS.planYamlBytesMax) return refuse([createProblem(1, 1, "this is not JSON")]);
  const yaml = await import("yaml");
  if (isNestedTooDeeply(text, yaml)) return refuse([createProblem(1, 1, TOO_DEEP)]);
  const lineCounter = new yaml.LineCounter();
  const slip = parseWithinStack(() => {
    const [first, second] = documentsOf(text, yaml, { lineCounter, schema: "json" });
    return [...(first ? listSyntaxSlips(first) : []), ...(second ? [describeSecond(second)] : [])][0];
  });
  return refuse([slip ? createSlipProblem(slip, lineCounter) : createProblem(1, 1, "this is not JSON")]);
}

function placeNamed(text: string): PlanProblem | undefined {
  try {
    JSON.parse(text);
  } catch (error) {
    const syntaxError = /^SyntaxError: (.*) in JSON at position \d+ \(line (\d+) column (\d+)\)$/su.exec(
      String(error),
    );
    if (syntaxError)
      return createProblem(Number(syntaxError[2]), Number(syntaxError[3]), String(syntaxError[1]));
  }
  return undefined;
}

async function parseYaml(text: string): Promise<Loaded> {
  if (Buffer.byteLength(text) > BOUNDS.planYamlBytesMax)
    throw createTooLargeError("YAML", BOUNDS.planYamlBytesMax);
  const yaml = await import("yaml");
  if (isNestedTooDeeply(text, yaml)) return refuse([createProblem(1, 1, TOO_DEEP)]);
  const lineCounter = new yaml.LineCounter();
  const slips: Slip[] = [];
  const document = parseWithinStack(() => {
    const [first, second] = documentsOf(text, yaml, { lineCounter });
    if (first) slips.push(...listSyntaxSlips(first), ...listSlips(first, yaml));
    if (second) slips.push(describeSecond(second));
    return first;
  });
  if (!document) return refuse([createProblem(1, 1, TOO_DEEP)]);
  const problems = slips.slice(0, PROBLEMS_MAX).map((slip) => createSlipProblem(slip, lineCounter));
  return problems.length > 0 ? refuse(problems) : valueOf(document);
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

/** Returns at most two documents. Parsing stops after a few errors, because two million would not fit into memory. */
function documentsOf(
  text: string,
  yaml: typeof Yaml,
  { lineCounter, schema }: { readonly lineCounter: Yaml.LineCounter; readonly schema?: "json" },
): Yaml.Document.Parsed[] {
  const tokens = new yaml.Parser(lineCounter.addNewLine).parse(text);
  // The parser would compare every key with every other; one pass with a set finds the same.
  const composer = new yaml.Composer({ uniqueKeys: false, logLevel: "error", ...(schema && { schema }) });
  const [first, second] = composer.compose(takeUntilErrors(tokens), true, text.length);
  return [first, second].filter((document) => document !== undefined);
}

function* takeUntilErrors(tokens: Iterable<Yaml.CST.Token>): Generator<Yaml.CST.Token> {
  let errors = 0;
  for (const token of tokens) {
    yield token;
    errors += token.type === "error" ? 1 : 0;
    if (errors >= PROBLEMS_MAX) return;
  }
}

function listSyntaxSlips({ errors, warnings }: Yaml.Document): Slip[] {
  return [...errors.slice(0, PROBLEMS_MAX), ...warnings.slice(0, PROBLEMS_MAX)].map(({ pos, message }) => ({
    offset: pos[0],
    message: sentenceOf(message),
  }));
}

interface Slip {
  readonly offset: number;
  readonly message: string;
}

/**
 * Lists what the parser does not refuse: lists and maps as keys, keys that are there twice, aliases of nothing, too many aliases, and
 * depth. All of it before anything is converted or written out as a text: that takes time beyond all bounds.
 */
function listSlips(document: Yaml.Document, yaml: typeof Yaml): Slip[] {
  const { visit, isNode, isCollection, isMap } = yaml;
  const slips: Slip[] = [];
  const aliasSlips = createAliasCheck(yaml);
  visit(document, (_, node, path) => {
    if (slips.length >= PROBLEMS_MAX) return visit.BREAK;
    if (!isNode(node)) return undefined;
    if (path.length > DEPTH_MAX && path.filter((ancestor) => isCollection(ancestor)).length >= DEPTH_MAX) {
      slips.push({ offset: offsetOf(node), message: TOO_DEEP });
      return visit.BREAK;
    }
    slips.push(...aliasSlips(node));
    if (!isMap(node)) return undefined;
    const wrong = listUnwrittenKeys(node, yaml);
    slips.push(...(wrong.length > 0 ? wrong : listDuplicates(node)).slice(0, PROBLEMS_MAX));
    // The inside of such a key is not looked at: it may be nested in ways that double with each level.
    return wrong.length > 0 ? visit.SKIP : undefined;
  });
  return slips;
}

function offsetOf({ range }: Yaml.Node): number {
  return range?.[0] ?? 0;
}

/** Tells of each node, in their order, what is wrong with it as an alias. */
function createAliasCheck({ isAlias }: typeof Yaml): (node: Yaml.Node) => Slip[] {
  const anchors = new Set<string>();
  const { yamlAliasesMax } = BOUNDS;
  let aliases = 0;
  return (node) => {
    const slips: Slip[] = [];
    const offset = offsetOf(node);
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

/** A key is a text. A list, a map or an alias as one would have to be written out as a text first. */
function listUnwrittenKeys({ items }: Yaml.YAMLMap, { isAlias, isCollection }: typeof Yaml): Slip[] {
  return items.flatMap(({ key }) =>
    isCollection(key) || isAlias(key)
      ? [{ offset: offsetOf(key), message: "a key is a text, not a list, a map or an alias" }]
      : [],
  );
}

function listDuplicates({ items }: Yaml.YAMLMap): Slip[] {
  const seen = new Set<string>();
  return items.flatMap(({ key: node }) => {
    const { range, value } = node as Partial<Yaml.Scalar>;
    const key = String(value ?? node);
    const isThere = seen.has(key);
    seen.add(key);
    return isThere ? [{ offset: range?.[0] ?? 0, message: describeDuplicateKey(key) }] : [];
  });
}

function describeSecond({ range }: Yaml.Document.Parsed): Slip {
  return { offset: range[0], message: "a second document begins here; remove it" };
}

function createSlipProblem({ offset, message }: Slip, lineCounter: Yaml.LineCounter): PlanProblem {
  const { line, col } = lineCounter.linePos(offset);
  return createProblem(Math.max(line, 1), Math.max(col, 1), message);
}

/** Aliases of aliases can still grow beyond all bounds. */
function valueOf(document: Yaml.Document): Loaded {
  try {
    return { ok: true, value: document.toJS({ maxAliasCount: BOUNDS.yamlAliasesMax }) as unknown };
  } catch {
    return refuse([createProblem(1, 1, "the aliases of the file stand for too much; write them out")]);
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

function refuse(problems: readonly PlanProblem[]): Loaded {
  return { ok: false, problems };
}

function createProblem(line: number, column: number, message: string): PlanProblem {
  return { path: `line ${line}, column ${column}`, code: "FILE_SYNTAX", message };
}

function describeDuplicateKey(name: string): string {
  return `the key ${JSON.stringify(name.slice(0, BOUNDS.nameCharsMax))} is there twice; remove one`;
}

/** Returns the sentence without the place and the excerpt that the parser adds. */
function sentenceOf(message: string): string {
  const [first = ""] = message.split("\n");
  if (first.startsWith("Maximum call stack")) return TOO_DEEP;
  return first.replace(/ at line \d+, column \d+:?$/u, "");
}

function placeIn(text: string, offset: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, offset);
  return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
}
