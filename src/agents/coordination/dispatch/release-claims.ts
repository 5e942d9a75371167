/** Owns: how claims end: released by their holder, or with a step, a turn or the coordination. */
import type { ReleaseClaims } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import type { StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import type { Conflict, HeldClaim, OpenCoordination } from "../ledger/state.ts";
import { draftRulingOfPeople, listOverlapping, findConflict } from "./conflict-facts.ts";
import { createApprovalCheck, findQuestionAbout, draftWithdrawnQuestion } from "./conflict-questions.ts";
import { accept, type Decision } from "./decision.ts";

/** Drafts the end of all claims of a step, or of all steps, and of the reviews that they wait for. */
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
    ...withdrawn.flatMap((conflict) => draftWithdrawal(state, conflict, because)),
    ...claims.map((claim) => draftRelease(claim, because)),
  ];
}

/** Drafts the withdrawal of a review. Its question is closed too, except at the end of the coordination, which closes all questions. */
export function draftWithdrawal(
  state: OpenCoordination,
  conflict: Conflict,
  because: FactPayloads["claim.released"]["because"],
): FactDraft[] {
  const closed = because === "coordination_ended" ? [] : draftWithdrawnQuestion(state, conflict);
  return [...closed, draftRulingOfPeople(conflict, "withdrawn")];
}

/** Drafts the end of a turn: its claims are released and its reviews withdrawn, but for reviews with a question of ours and claims with an approval that is not used yet. */
export function draftEndOfTurn(state: OpenCoordination, stepId?: StepId): FactDraft[] {
  const keptConflicts = new Set(
    state.reviews.keySeq().filter((conflictId) => findQuestionAbout(state, conflictId) !== undefined),
  );
  const reviews = state.reviews.filter((_, conflictId) => !keptConflicts.has(conflictId));
  const isKept = createApprovalCheck(state);
  const claims = state.claims.filter((claim) => !isKept(claim));
  return draftEndOfClaims({ ...state, reviews, claims }, "turn_ended", stepId);
}

export function releaseClaims(state: OpenCoordination, command: ReleaseClaims): Decision {
  const { stepId } = command;
  const facts = draftReleases(state, command);
  return facts.length > 0 ? accept(facts, stepId) : { kind: "replay" };
}

export function draftReleases(
  state: OpenCoordination,
  { because, tokens, stepId, within }: ReleaseClaims,
): FactDraft[] {
  if (tokens) return [...new Set(tokens)].flatMap((token) => draftReleaseByToken(state, token, because));
  if (within === undefined)
    return because === "turn_ended"
      ? draftEndOfTurn(state, stepId)
      : draftEndOfClaims(state, because, stepId);
  return listOverlapping(state, within)
    .filter((claim) => claim.stepId === stepId)
    .map((claim) => draftRelease(claim, because));
}

export function draftReleaseByToken(
  { claims }: OpenCoordination,
  token: number,
  because: FactPayloads["claim.released"]["because"],
): FactDraft[] {
  const claim = claims.get(token);
  return claim ? [draftRelease(claim, because)] : [];
}

export function draftRelease(
  { stepId, token }: HeldClaim,
  because: FactPayloads["claim.released"]["because"],
): FactDraft {
  return { type: "claim.released", payload: { stepId, token, because } };
}
