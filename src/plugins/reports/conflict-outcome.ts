/** Owns: what came of a conflict, for whom, and its short name. Does not own: how it reads. */
import type { CoordinationId, StepId } from "../../agents/coordination/contracts/ids.ts";
import type { ConflictRecord, Resolution } from "./conflict-log.ts";

export type Names = ReadonlyMap<StepId, string>;

/** The outcome of a conflict for who asked; records from before arbitration do not say who that was. */
export type Outcome = "open" | "granted" | "refused" | "resolved";

export function outcomeOf({ contest, resolution }: ConflictRecord): Outcome {
  if (!resolution) return "open";
  if (!contest) return "resolved";
  const winner = findWinner(resolution);
  return winner && isRequester(contest, winner) ? "granted" : "refused";
}

export interface Party {
  readonly stepId: StepId;
  readonly coordinationId?: CoordinationId | undefined;
}

/** Steps of two coordinations may have the same id; who asked is of the conflict's own. */
export function isRequester(contest: ConflictRecord["contest"], { stepId, coordinationId }: Party): boolean {
  return coordinationId === undefined && stepId === contest?.requester;
}

export function findWinner({ winner, winnerCoordinationId }: Resolution): Party | undefined {
  if (winner === undefined) return undefined;
  return { stepId: winner, ...(winnerCoordinationId && { coordinationId: winnerCoordinationId }) };
}

/** `conflict-3` of `co-1:conflict-3`. */
export function numberOf({ conflictId, coordinationId }: ConflictRecord): string {
  const prefix = `${coordinationId}:`;
  return conflictId.startsWith(prefix) ? conflictId.slice(prefix.length) : conflictId;
}
