/** Owns: what an agent is told to do. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { JsonObject } from "./step-graph.ts";

/** Returns the text that tells an agent its task, with the input as JSON behind it where there is one. */
export function formatInstruction(task: string, input: JsonObject): string {
  if (Object.keys(input).length === 0) return task;
  return `${task}\n\nInput (JSON):\n${formatInput(input)}`;
}

/**
 * Formats the input as JSON, indented unless the spaces alone would take it past its bound. Many deep values are 31
 * times as long with them.
 */
function formatInput(input: JsonObject): string {
  const indented = JSON.stringify(input, null, 2);
  return indented.length > BOUNDS.filledInputCharsMax ? JSON.stringify(input) : indented;
}
