/**
 * Owns: how a conflict reads: its short name, who asked, what came of it. Does not own: making it safe for a terminal, which the
 * callers do.
 */
import type { Contestant } from "../../agents/coordination/contracts/arbitration.ts";
import { OUTSIDE_STEP_ID, OWNER_STEP_ID, type StepId } from "../../agents/coordination/contracts/ids.ts";
import type { ConflictRecord } from "./conflict-log.ts";
import type { Tone } from "./paint.ts";
import { instant } from "./quantities.ts";
import { shownName } from "./step-name.ts";

export type Names = ReadonlyMap<StepId, string>;

/** What came of a conflict for who asked; ledgers of 0.1.0 do not say who that was. */
export type Outcome = "open" | "granted" | "refused" | "resolved";

export const OUTCOME_TONES = {
  open: "warning",
  granted: "good",
  refused: "bad",
  resolved: "plain",
} as const satisfies Record<Outcome, Tone>;

export function outcomeOf({ contest, resolution }: ConflictRecord): Outcome {
  if (!resolution) return "open";
  if (!contest) return "resolved";
  const { winner, winnerCoordinationId } = resolution;
  return winner === contest.requester && winnerCoordinationId === undefined ? "granted" : "refused";
}

/** Who got the resource, as it stands among the claims. Steps of two coordinations may have the same id. */
export function winnerOf({ claims, resolution }: ConflictRecord): Contestant | undefined {
  const { winner, winnerCoordinationId } = resolution ?? {};
  return claims.find(
    ({ stepId, coordinationId }) => stepId === winner && coordinationId === winnerCoordinationId,
  );
}

/** What is enough of an id in a line with others: `co-` and eight digits. */
const SHORT_ID_CHARS = 11;

/** A step as people know it, with the coordination where it is of another one. */
export function partyName(
  names: Names,
  { stepId, coordinationId }: Pick<Contestant, "stepId" | "coordinationId">,
): string {
  if (stepId === OUTSIDE_STEP_ID) return "somebody else";
  const ofIt = coordinationId === undefined ? "" : ` of ${coordinationId.slice(0, SHORT_ID_CHARS)}`;
  if (stepId === OWNER_STEP_ID) return `the owner${ofIt}`;
  const name = coordinationId === undefined ? names.get(stepId) : undefined;
  return `${shownName({ stepId, ...(name !== undefined && { name }) })}${ofIt}`;
}

/** Who asked; `-` where the ledger does not say. */
export function requesterName(names: Names, { contest }: ConflictRecord): string {
  return contest ? partyName(names, { stepId: contest.requester }) : "-";
}

/** Who got it and why, or until when people may answer. */
export function outcomeText(names: Names, conflict: ConflictRecord): string {
  const { resolution, contest } = conflict;
  if (!resolution)
    return contest?.reviewByMs === undefined ? "open" : `open until ${instant(contest.reviewByMs)}`;
  const { winner, winnerCoordinationId, because } = resolution;
  if (winner === undefined) return `refused (${because})`;
  const party = { stepId: winner, ...(winnerCoordinationId && { coordinationId: winnerCoordinationId }) };
  return `${partyName(names, party)} won (${because})`;
}

export function strategyText({ contest, resolution }: ConflictRecord): string {
  if (contest) return `${contest.strategy} (${contest.from.replace("_", " ")})`;
  return resolution?.strategy ?? "-";
}

/** `conflict-3` of `co-1:conflict-3`. */
export function numberOf({ conflictId, coordinationId }: ConflictRecord): string {
  const prefix = `${coordinationId}:`;
  return conflictId.startsWith(prefix) ? conflictId.slice(prefix.length) : conflictId;
}
