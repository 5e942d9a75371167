/** Owns: whether people are asked about a file that a command has overwritten already, or about a write that is still to happen. */
import { isEnded, type Escalation, type KnownCoordination } from "./state.ts";

/** A question about a file that a command overwrote while others held it: the write has happened. */
export interface Overwrite {
  readonly overwritten: true;
  /** The step of the command has ended: the holder keeps the file, whatever people answer. Absent once the question is closed. */
  readonly stepEnded?: true;
}

/**
 * Returns the mark that a question is about a file that was overwritten, and whether the step that it is about has
 * ended; `undefined` where it is about anything else.
 */
export function findOverwrite(
  { conflicts, steps }: Pick<KnownCoordination, "conflicts" | "steps">,
  { cause, conflictId, stepId, closed }: Pick<Escalation, "cause" | "conflictId" | "stepId" | "closed">,
): Overwrite | undefined {
  if (cause !== "conflict") return undefined;
  const conflict = conflicts.find((each) => each.conflictId === conflictId);
  if (conflict?.contest?.cause !== "overwritten") return undefined;
  const step = stepId === undefined || closed ? undefined : steps.get(stepId);
  return { overwritten: true, ...(step && isEnded(step.phase) && { stepEnded: true }) };
}
