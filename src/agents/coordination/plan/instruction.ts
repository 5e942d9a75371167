/** Owns: what an agent is told to do. */
import type { JsonObject } from "./step-graph.ts";

/** The task, and behind it the input where there is one. */
export function instructionOf(task: string, input: JsonObject): string {
  if (Object.keys(input).length === 0) return task;
  return `${task}\n\nInput (JSON):\n${JSON.stringify(input, null, 2)}`;
}
