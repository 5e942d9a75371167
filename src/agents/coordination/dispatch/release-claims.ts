/** Owns: how claims end: released by their holder, or with a step, a turn or the coordination. */
import type { ReleaseClaims } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import type { Conflict, HeldClaim, OpenCoordination } from "../ledger/state.ts";
import { draftRulingOfPeople, listOverlappingOwnClaims, findConflict } from "./conflict-facts.ts";
import {
  createUnusedApprovalCheck,
  findQuestionAboutConflict,
  draftConflictQuestionWithdrawal,
} from "./conflict-questions.ts";
import { accept, type Decision } from "./decision.ts";

/**
 * Drafts the release of all claims of a step, or of all steps, and the withdrawal of the reviews by people that they
 * wait for.
 */
export function draftEndOfClaims(
  state: OpenCoordination,
  because: FactPayloads["claim.released"]["because"],
  stepId?: StepId,
): FactDraft[] {
  const isOfStep = (holder: StepId): boolean => stepId === undefined || holder === stepId;
  const withdrawn = state.reviews
    .keySeq()
    .toArray()
    .flatMap((conflictId) => findConflict(state, conflictId) ?? [])
    .filter(({ contest }) => contest !== undefined && isOfStep(contest.requester));
  const mayHold = stepId === undefined || state.claimCounts.has(stepId);
  const claims = mayHold ? state.claims.toList().filter((claim) => isOfStep(claim.stepId)) : [];
  return [
    ...withdrawn.flatMap((conflict) => draftReviewWithdrawal(state, conflict, because)),
    ...claims.map((claim) => draftClaimRelease(claim, because)),
  ];
}

/**
 * Drafts the resolution of a conflict that people need not review any more, lost for its requester. Its open question
 * is closed too, except at the end of the coordination, which closes all questions.
 */
export function draftReviewWithdrawal(
  state: OpenCoordination,
  conflict: Conflict,
  because: FactPayloads["claim.released"]["because"],
): FactDraft[] {
  const closed = because === "coordination_ended" ? [] : draftConflictQuestionWithdrawal(state, conflict);
  return [...closed, draftRulingOfPeople(conflict, "withdrawn")];
}

/**
 * Drafts the release of the claims that end with a turn, and the withdrawal of its reviews. Reviews with a question of
 * ours stay, and so do claims with an approval that is not used yet.
 */
export function draftEndOfTurn(state: OpenCoordination, stepId?: StepId): FactDraft[] {
  const keptConflicts = new Set(
    state.reviews.keySeq().filter((conflictId) => findQuestionAboutConflict(state, conflictId) !== undefined),
  );
  const reviews = state.reviews.filter((_, conflictId) => !keptConflicts.has(conflictId));
  const isKept = createUnusedApprovalCheck(state);
  const claims = state.claims.filter((claim) => !isKept(claim));
  return draftEndOfClaims({ ...state, reviews, claims }, "turn_ended", stepId);
}

/**
 * Decides on the release of the claims that a command names: accepted as facts; a replay where none of them is left.
 */
export function releaseClaims(state: OpenCoordination, command: ReleaseClaims): Decision {
  const { stepId } = command;
  const facts = draftReleases(state, command);
  return facts.length > 0 ? accept(facts, stepId) : { kind: "replay" };
}

/**
 * Drafts the release of the claims that a command names: by their tokens, one step's that overlap a resource, or all
 * of a step or turn; none where no such claim is held.
 */
export function draftReleases(
  state: OpenCoordination,
  { because, tokens, stepId, within }: ReleaseClaims,
): FactDraft[] {
  if (tokens) return [...new Set(tokens)].flatMap((token) => draftReleaseByToken(state, token, because));
  if (within === undefined)
    return because === "turn_ended"
      ? draftEndOfTurn(state, stepId)
      : draftEndOfClaims(state, because, stepId);
  return listOverlappingOwnClaims(state, within)
    .filter((claim) => claim.stepId === stepId)
    .map((claim) => draftClaimRelease(claim, because));
}

/** Drafts the release of the claim with this token; none where the claim is not held any more. */
export function draftReleaseByToken(
  { claims }: OpenCoordination,
  token: number,
  because: FactPayloads["claim.released"]["because"],
): FactDraft[] {
  const claim = claims.get(token);
  return claim ? [draftClaimRelease(claim, because)] : [];
}

/** Drafts the fact that releases one claim of a step. */
export function draftClaimRelease(
  { stepId, token }: HeldClaim,
  because: FactPayloads["claim.released"]["because"],
): FactDraft {
  return { type: "claim.released", payload: { stepId, token, because } };
}
