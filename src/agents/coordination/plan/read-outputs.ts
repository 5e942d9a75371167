/** Owns: what a text is as the outputs of a step, which are always an object, and reading such a text back. */
import { BOUNDS } from "../contracts/bounds.ts";
import { isJsonObject, type JsonObject } from "./step-graph.ts";

export type ReadOutputs =
  | { readonly kind: "outputs"; readonly outputs: JsonObject }
  | { readonly kind: "unreadable"; readonly path: string; readonly message: string };

/**
 * The reply, or its last fenced `json` block, where that is a JSON object within the bounds. A reply that was cut comes with its
 * `end`, and only a block there counts: what its beginning has may be an example. Otherwise the reply is the output
 * `text` of a step without a contract, with `truncated` where it had to be cut; a step with one has no outputs then.
 */
export function outputsFromReply(reply: string, hasContract: boolean, end?: string): ReadOutputs {
  const outputs = end === undefined ? findObject(reply) : findObjectInEnd(end);
  if (outputs) return { kind: "outputs", outputs };
  const isCut = end !== undefined;
  if (!hasContract) return { kind: "outputs", outputs: createTextOutput(reply, isCut) };
  return {
    kind: "unreadable",
    path: "(root)",
    message: isCut ? NO_BLOCK_IN_END : "output is not a JSON object",
  };
}

const NO_BLOCK_IN_END = `the answer is longer than ${BOUNDS.replyCharsMax} characters, and no whole \`json\` block is in its last ${BOUNDS.replyEndChars}`;

/** Returns the text of outputs that hold nothing else, and the JSON of all others as it is. */
export function parseTextOutput(json: string): string {
  try {
    const outputs: unknown = JSON.parse(json);
    if (!isJsonObject(outputs)) return json;
    const { text, ...rest } = outputs;
    return typeof text === "string" && Object.keys(rest).length === 0 ? text : json;
  } catch {
    return json;
  }
}

/**
 * Returns why the outputs of a failed report say that the work could not be done: their `reason`, or all of them as JSON where
 * they name none. `undefined` where they are empty.
 */
export function parseReason(json: string): string | undefined {
  const { reason } = JSON.parse(json) as JsonObject;
  if (typeof reason === "string") return reason;
  return json === "{}" ? undefined : json;
}

/** True when outputs may be kept: neither too deep nor too long as JSON. */
export function isWithinOutputBounds(outputs: JsonObject): boolean {
  return !isTooDeep(outputs) && JSON.stringify(outputs).length <= BOUNDS.outputCharsMax;
}

function findObject(reply: string): JsonObject | undefined {
  if (reply.length > BOUNDS.replyCharsMax) return undefined;
  return parseObject(reply) ?? parseObject(findLastJsonBlock(reply));
}

function parseObject(text: string | undefined): JsonObject | undefined {
  // Most replies are prose: without this each would cost an error with a stack.
  if (!text?.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) && isWithinOutputBounds(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Finds the object of the last block in the end of a reply, whose first line may have begun before. */
function findObjectInEnd(end: string): JsonObject | undefined {
  const firstBreak = end.indexOf("\n");
  return firstBreak === -1 ? undefined : parseObject(findLastJsonBlock(end.slice(firstBreak + 1)));
}

const FENCE = "```";

/** The last block that is closed. JSON has no line that ends in a fence, so the first such line closes it. */
function findLastJsonBlock(reply: string): string | undefined {
  let block: string | undefined;
  let begin = -1;
  for (let from = 0; from < reply.length;) {
    const newline = reply.indexOf("\n", from);
    const end = newline === -1 ? reply.length : newline;
    const line = reply.slice(from, end).trim();
    if (begin === -1) begin = isJsonFence(line) ? end : -1;
    else if (line.endsWith(FENCE)) {
      block = reply.slice(begin, reply.lastIndexOf(FENCE, end));
      begin = -1;
    }
    from = end + 1;
  }
  return block;
}

function isJsonFence(line: string): boolean {
  if (!line.startsWith(FENCE)) return false;
  const [language = ""] = line.slice(FENCE.length).trimStart().split(" ", 1);
  return language.toLowerCase() === "json";
}

function isTooDeep(root: object): boolean {
  let level: object[] = [root];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > BOUNDS.outputDepthMax) return true;
    level = level.flatMap((each) =>
      Object.values(each).filter((value): value is object => typeof value === "object" && value !== null),
    );
  }
  return false;
}

function createTextOutput(reply: string, isCut: boolean): JsonObject {
  const room = BOUNDS.outputCharsMax - JSON.stringify({ text: "", truncated: true }).length;
  const end = findEndWithin(reply, room);
  return isCut || end < reply.length
    ? { text: reply.slice(0, end).toWellFormed(), truncated: true }
    : { text: reply.toWellFormed() };
}

/** Returns how much of a text fits into so many characters of JSON. */
export function findEndWithin(text: string, room: number): number {
  let chars = 0;
  for (let index = 0; index < text.length; index += 1) {
    chars += countJsonChars(text.charCodeAt(index));
    if (chars > room) return index;
  }
  return text.length;
}

function countJsonChars(code: number): number {
  if (code >= 0x20) return code === 0x22 || code === 0x5c ? 2 : 1;
  const hasShortForm = code >= 0x08 && code <= 0x0d && code !== 0x0b;
  return hasShortForm ? 2 : 6;
}
