/** Owns: whether people are asked about a file that a command has overwritten already, or about a write that is still to happen. */
import type { Escalation, OpenCoordination } from "./state.ts";

/** True when a question is about a file that a command overwrote while others held it. */
export function isAboutOverwrite(
  { conflicts }: Pick<OpenCoordination, "conflicts">,
  { cause, conflictId }: Pick<Escalation, "cause" | "conflictId">,
): boolean {
  if (cause !== "conflict") return false;
  return conflicts.some((each) => each.conflictId === conflictId && each.contest?.cause === "overwritten");
}
