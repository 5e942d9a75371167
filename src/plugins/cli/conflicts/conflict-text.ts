/**
 * Owns: how a conflict reads: its short name, who asked, what came of it. Does not own: making it safe for a terminal, which the
 * callers do.
 */
import type { Contestant } from "../../../agents/coordination/contracts/arbitration.ts";
import type { ConflictRecord } from "../../reports/conflict-log.ts";
import { findWinner, type StepNames, type ConflictOutcome } from "../../reports/conflict-outcome.ts";
import type { Tone } from "../terminal/paint.ts";
import { formatInstant } from "../../../agents/coordination/std/quantities.ts";
import { nameParty } from "../../reports/step-name.ts";

export const OUTCOME_TONES = {
  open: "warning",
  granted: "good",
  refused: "bad",
  resolved: "plain",
} as const satisfies Record<ConflictOutcome, Tone>;

/**
 * Returns the claim of the one who got a conflict's resource; `undefined` while the conflict is open, and where nobody
 * with a claim got it.
 */
export function findWinningClaim({ claims, resolution }: ConflictRecord): Contestant | undefined {
  const winner = resolution && findWinner(resolution);
  return claims.find(
    ({ stepId, coordinationId }) => stepId === winner?.stepId && coordinationId === winner.coordinationId,
  );
}

/** Returns the name of the party whose request raised a conflict; `-` where the ledger does not say. */
export function nameRequester(names: StepNames, { contest }: ConflictRecord): string {
  return contest ? nameParty(names, { stepId: contest.requester }) : "-";
}

/** Returns in words who got a conflict's resource and why, that all were refused, or until when people may answer. */
export function describeConflictOutcome(names: StepNames, conflict: ConflictRecord): string {
  const { resolution, contest } = conflict;
  if (!resolution)
    return contest?.reviewByMs === undefined ? "open" : `open until ${formatInstant(contest.reviewByMs)}`;
  const winner = findWinner(resolution);
  const outcome = winner ? `${nameParty(names, winner)} won` : "refused";
  return `${outcome} (${resolution.because})`;
}

/**
 * Returns the name of the strategy by which a conflict was decided and where that was taken from; `-` where the ledger
 * does not say.
 */
export function describeStrategy({ contest, resolution }: ConflictRecord): string {
  if (contest) return `${contest.strategy} (${contest.from.replace("_", " ")})`;
  return resolution?.strategy ?? "-";
}
