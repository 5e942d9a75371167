/** Owns: what came of a conflict, for whom, and its short name. Does not own: how it reads. */
import type { CoordinationId, StepId } from "../../agents/coordination/contracts/ids.ts";
import type { ConflictRecord, ConflictResolution } from "./conflict-log.ts";

/** The names of steps. */
export type StepNames = ReadonlyMap<StepId, string>;

/** The outcome of a conflict for who asked; records from before arbitration do not say who that was. */
export type ConflictOutcome = "open" | "granted" | "refused" | "resolved";

/**
 * Returns what came of a conflict for the step that asked: open, granted or refused; `resolved` where the record does
 * not say which step that was.
 */
export function classifyOutcome({ contest, resolution }: ConflictRecord): ConflictOutcome {
  if (!resolution) return "open";
  if (!contest) return "resolved";
  const winner = findWinner(resolution);
  return winner && isRequester(contest, winner) ? "granted" : "refused";
}

/** A step that is in a conflict, with its coordination where that is another one. */
export interface ConflictParty {
  readonly stepId: StepId;
  readonly coordinationId?: CoordinationId | undefined;
}

/**
 * True where the party is the step whose request began the conflict, which is of the conflict's own coordination:
 * another one may have a step of the same id.
 */
export function isRequester(
  contest: ConflictRecord["contest"],
  { stepId, coordinationId }: ConflictParty,
): boolean {
  return coordinationId === undefined && stepId === contest?.requester;
}

/**
 * Returns the step that a conflict's resolution gave the resource to, with its coordination where that is another one;
 * `undefined` where nobody got it.
 */
export function findWinner({ winner, winnerCoordinationId }: ConflictResolution): ConflictParty | undefined {
  if (winner === undefined) return undefined;
  return { stepId: winner, ...(winnerCoordinationId && { coordinationId: winnerCoordinationId }) };
}

/** Returns the id of a conflict without that of its coordination: `conflict-3` of `co-1:conflict-3`. */
export function shortenConflictId({ conflictId, coordinationId }: ConflictRecord): string {
  const prefix = `${coordinationId}:`;
  return conflictId.startsWith(prefix) ? conflictId.slice(prefix.length) : conflictId;
}
