/**
 * Owns: questions to people about contested writes that the host cannot ask about: when one is asked, and what an answer allows.
 * Does not own: drafting and answering questions (`ask-people.ts`, `decide-questions.ts`).
 *
 * 1. A requester has at most one open question for each resource. 2. An approved write may happen once: within the lease that the
 * requester got with the approval, and only against the contestants that people knew of. 3. Where nobody is notified of questions,
 * none is asked.
 */
import type { Contestant } from "../contracts/arbitration.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { OUTSIDE_STEP_ID, OWNER_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { sessionOf, type Conflict, type Escalation, type OpenCoordination } from "../ledger/state.ts";
import { draftQuestion } from "./ask-people.ts";
import { draftDetection, draftRulingOfPeople, type ContestedRequest } from "./conflict-facts.ts";

/** The most open questions of one requester: a call may want many resources, and people read every question. */
export const CONFLICT_QUESTIONS_MAX = 16;

type Resolution = FactPayloads["escalation.closed"]["resolution"];

/** Finds the question about a conflict, open or closed. */
export function findQuestionAbout(
  { escalations }: OpenCoordination,
  conflictId: string,
): Escalation | undefined {
  return escalations.findLast((question) => question.conflictId === conflictId);
}

/** Finds the open question that the requester's call on a resource waits for. */
export function findOpenQuestion(
  state: OpenCoordination,
  stepId: StepId,
  resource: string,
): Escalation | undefined {
  return openReviewsOf(state, stepId).find(({ conflict }) => conflict.resource === resource)?.question;
}

interface ReviewQuestion {
  readonly conflict: Conflict;
  readonly question: Escalation;
}

function openReviewsOf(state: OpenCoordination, stepId: StepId): ReviewQuestion[] {
  return listUnderReview(state).filter(
    ({ conflict, question }) => conflict.contest?.requester === stepId && !question.closed,
  );
}

/** Returns the unresolved conflicts that people were asked about, with their questions. */
function listUnderReview(state: OpenCoordination): ReviewQuestion[] {
  if (state.reviews.isEmpty()) return [];
  return state.conflicts
    .filter(({ conflictId }) => state.reviews.has(conflictId))
    .flatMap((conflict) => {
      const question = findQuestionAbout(state, conflict.conflictId);
      return question ? [{ conflict, question }] : [];
    });
}

/** Returns the conflicts that people approved and whose requester has no claim yet. */
export function listApprovedReviews(state: OpenCoordination): Conflict[] {
  return listUnderReview(state)
    .filter(({ question }) => question.closed?.resolution === "approved")
    .map(({ conflict }) => conflict);
}

/** True when somebody can be notified, the host cannot ask, and there is room for all new questions. */
export function canAskAbout(
  state: OpenCoordination,
  stepId: StepId,
  requests: readonly ContestedRequest[],
): boolean {
  const isAnybodyTold = (state.created.questions?.notify ?? []).length > 0;
  if (!isAnybodyTold || !requests.every(({ contest }) => contest.asksPeople)) return false;
  const open = openReviewsOf(state, stepId);
  const fresh = requests.filter(
    ({ resource }) => !open.some(({ conflict }) => conflict.resource === resource),
  ).length;
  return (
    open.length + fresh <= CONFLICT_QUESTIONS_MAX &&
    state.openQuestions.size + fresh <= BOUNDS.openQuestionsMax
  );
}

/** Drafts the conflict and the question about it. Both stay open until people answer or the question expires. */
export function putQuestion(
  state: OpenCoordination,
  stepId: StepId,
  question: {
    readonly request: ContestedRequest;
    readonly conflictId: string;
    readonly after: number;
    readonly now: EpochMs;
  },
): FactDraft[] {
  const { request, conflictId, after, now } = question;
  const askedBy = findSession(state, stepId);
  const draft = draftQuestion(
    state,
    {
      cause: "conflict",
      kind: "approval",
      answers: ["approve", "deny"],
      conflictId,
      ...(stepId !== OWNER_STEP_ID && { stepId }),
      ...(askedBy && { askedBy }),
    },
    { now, questionsBefore: after },
  );
  const contest = { ...request.contest, reviewByMs: draft.payload.deadlineAtMs };
  return [draftDetection(stepId, { ...request, contest }, { conflictId, now }), draft];
}

function findSession({ steps, created }: OpenCoordination, stepId: StepId): Escalation["askedBy"] {
  if (stepId === OWNER_STEP_ID) return created.ownerSession;
  const step = steps.get(stepId);
  return step && sessionOf(step.phase);
}

/**
 * Drafts the resolution that follows from an answer at once. An approval resolves nothing yet: the requester first needs a claim, and
 * the token of a claim is known to the ledger, not to one coordination.
 */
export function draftAnsweredConflict(
  state: OpenCoordination,
  { conflictId }: Escalation,
  resolution: Resolution,
): FactDraft[] {
  const conflict = state.conflicts.findLast((each) => each.conflictId === conflictId);
  if (!conflict || !state.reviews.has(conflict.conflictId) || resolution === "approved") return [];
  return [draftRulingOfPeople(conflict, RULING_OF_RESOLUTION[resolution] ?? "denied")];
}

const RULING_OF_RESOLUTION: Partial<Record<Resolution, "unanswered" | "withdrawn">> = {
  expired: "unanswered",
  cancelled: "withdrawn",
};

type NamedConflict = Pick<Conflict, "conflictId">;

/** Drafts the end of a question whose answer nobody needs any more. */
export function draftWithdrawnQuestion(state: OpenCoordination, { conflictId }: NamedConflict): FactDraft[] {
  const question = findQuestionAbout(state, conflictId);
  if (!question || question.closed) return [];
  const { escalationId } = question;
  return [{ type: "escalation.closed", payload: { escalationId, resolution: "cancelled" } }];
}

/** True when people let a change happen, and nobody could make it in time. */
export function hasLapsed(state: OpenCoordination, { conflictId }: NamedConflict): boolean {
  return findQuestionAbout(state, conflictId)?.closed?.resolution === "approved";
}

interface AcquiredClaim {
  readonly stepId: StepId;
  readonly resource: string;
  readonly acquiredAtMs: EpochMs;
}

/** Returns a check for claims that came with an approval which was not used yet. Such claims outlast the turn. */
export function createApprovalCheck(state: OpenCoordination): (claim: AcquiredClaim) => boolean {
  const approvals = listUnusedApprovals(state);
  return (claim) => approvals.some((approval) => isClaimOfApproval(approval, claim));
}

/** True when people approved exactly this change and it has not happened yet. */
export function isApproved(
  state: OpenCoordination,
  claim: AcquiredClaim,
  { claims, current }: Against,
): boolean {
  return listUnusedApprovals(state).some(
    (approval) =>
      isClaimOfApproval(approval, claim) &&
      claims.every((other) => isKnownTo(approval, other) && !hasChangedAgain(approval, other, current)),
  );
}

interface Against {
  readonly claims: readonly Contestant[];
  /** The present version of the resource, where it has one. */
  readonly current: string | undefined;
}

/** True when somebody outside changed the resource since people were asked: when that was is not known, only that it is another version. */
function hasChangedAgain(
  { conflict }: Approval,
  { stepId }: Contestant,
  current: string | undefined,
): boolean {
  return stepId === OUTSIDE_STEP_ID && conflict.contest?.current !== current;
}

interface Approval {
  readonly conflict: Conflict;
  readonly atMs: EpochMs;
}

function isClaimOfApproval(
  { conflict, atMs }: Approval,
  { stepId, resource, acquiredAtMs }: AcquiredClaim,
): boolean {
  return conflict.resource === resource && conflict.contest?.requester === stepId && acquiredAtMs <= atMs;
}

/** True when people knew of the other contestant, and it has changed nothing since they answered. */
function isKnownTo({ conflict, atMs }: Approval, other: Contestant): boolean {
  const { stepId, coordinationId, changedAtMs } = other;
  if (changedAtMs !== undefined && changedAtMs > atMs) return false;
  return conflict.claims.some(
    (contestant) => contestant.stepId === stepId && contestant.coordinationId === coordinationId,
  );
}

function listUnusedApprovals(state: OpenCoordination): Approval[] {
  return state.escalations
    .valueSeq()
    .filter(({ cause, closed }) => cause === "conflict" && closed?.resolution === "approved")
    .toArray()
    .flatMap(({ conflictId }) => {
      const conflict = state.conflicts.findLast((each) => each.conflictId === conflictId);
      const atMs = conflict?.resolution?.winner === undefined ? undefined : conflict.resolvedAtMs;
      return conflict && atMs !== undefined && !isUsed(state, { conflict, atMs }) ? [{ conflict, atMs }] : [];
    });
}

function isUsed({ changes }: OpenCoordination, { conflict, atMs }: Approval): boolean {
  const change = changes.get(conflict.resource);
  return change?.stepId === conflict.contest?.requester && (change?.atMs ?? 0) >= atMs;
}
