/** Owns: what a text is as the outputs of a step, which are always an object, and reading such a text back. */
import { BOUNDS } from "../contracts/bounds.ts";
import { isJsonObject, type JsonObject } from "./step-graph.ts";

export type ReadOutputs =
  | { readonly kind: "outputs"; readonly outputs: JsonObject }
  | { readonly kind: "unreadable"; readonly path: string; readonly message: string };

/**
 * Returns the outputs in a reply: the JSON object that it is, or that its last fenced `json` block holds. A reply that
 * was cut comes with its `end`, and only a block there counts: what its beginning has may be an example. Otherwise the
 * reply is the output `text` of a step without a contract, with `truncated` where it had to be cut. A step with a
 * contract has no outputs then.
 */
export function outputsFromReply(reply: string, hasContract: boolean, end?: string): ReadOutputs {
  const outputs = end === undefined ? findObjectInReply(reply) : findObjectInEnd(end);
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

/** Returns the `text` of outputs that hold nothing else; all others, and a text that is no JSON, as they are. */
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
 * Returns the `reason` in the JSON of a failed report's outputs, or that whole JSON where it names none; `undefined`
 * where it is empty. Throws where the text is no JSON.
 */
export function parseFailureReason(json: string): string | undefined {
  const { reason } = JSON.parse(json) as JsonObject;
  if (typeof reason === "string") return reason;
  return json === "{}" ? undefined : json;
}

/** True when a step's outputs may be kept: neither too deep nor too long as JSON. */
export function isWithinOutputBounds(outputs: JsonObject): boolean {
  return !isNestedTooDeep(outputs) && JSON.stringify(outputs).length <= BOUNDS.outputCharsMax;
}

function findObjectInReply(reply: string): JsonObject | undefined {
  if (reply.length > BOUNDS.replyCharsMax) return undefined;
  return parseOutputObject(reply) ?? parseOutputObject(findLastJsonBlock(reply));
}

/** Returns the JSON object of a text; `undefined` where it is none, or not within the bounds of outputs. */
function parseOutputObject(text: string | undefined): JsonObject | undefined {
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
  return firstBreak === -1 ? undefined : parseOutputObject(findLastJsonBlock(end.slice(firstBreak + 1)));
}

const FENCE = "```";

/**
 * Returns the content of the last fenced `json` block that is closed; `undefined` without one. JSON has no line that
 * ends in a fence, so the first such line closes it.
 */
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

function isNestedTooDeep(root: object): boolean {
  let level: object[] = [root];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > BOUNDS.outputDepthMax) return true;
    level = level.flatMap((each) =>
      Object.values(each).filter((value): value is object => typeof value === "object" && value !== null),
    );
  }
  return false;
}

/**
 * Creates the outputs of a reply without a JSON object that can be taken: its `text`, with `truncated` where it had to
 * be cut.
 */
function createTextOutput(reply: string, isCut: boolean): JsonObject {
  const room = BOUNDS.outputCharsMax - JSON.stringify({ text: "", truncated: true }).length;
  const end = findFittingEnd(reply, room);
  return isCut || end < reply.length
    ? { text: reply.slice(0, end).toWellFormed(), truncated: true }
    : { text: reply.toWellFormed() };
}

/** Returns the index in a text up to which its JSON, without quotes, fits into `room` characters. */
export function findFittingEnd(text: string, room: number): number {
  let chars = 0;
  for (let index = 0; index < text.length; index += 1) {
    chars += countJsonChars(text.charCodeAt(index));
    if (chars > room) return index;
  }
  return text.length;
}

/** Counts the characters that JSON needs for one UTF-16 unit of a text. */
function countJsonChars(code: number): number {
  if (code >= 0x20) return code === 0x22 || code === 0x5c ? 2 : 1;
  const hasShortForm = code >= 0x08 && code <= 0x0d && code !== 0x0b;
  return hasShortForm ? 2 : 6;
}
