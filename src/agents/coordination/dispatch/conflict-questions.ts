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
import {
  findSessionOfPhase,
  type Conflict,
  type Escalation,
  type OpenCoordination,
} from "../ledger/state.ts";
import { draftQuestion } from "./ask-people.ts";
import { draftDetectedConflict, draftRulingOfPeople, type ContestedRequest } from "./conflict-facts.ts";

/** The most open questions of one requester: a call may want many resources, and people read every question. */
export const CONFLICT_QUESTIONS_MAX = 16;

/** How a question to people was closed. */
type EscalationResolution = FactPayloads["escalation.closed"]["resolution"];

/** Returns the newest question about a conflict, open or closed; `undefined` where none was asked. */
export function findQuestionAboutConflict(
  { escalations }: OpenCoordination,
  conflictId: string,
): Escalation | undefined {
  return escalations.findLast((question) => question.conflictId === conflictId);
}

/**
 * Returns the open question about a conflict over this resource on whose answer the requester waits; `undefined` where
 * there is none.
 */
export function findOpenConflictQuestion(
  state: OpenCoordination,
  stepId: StepId,
  resource: string,
): Escalation | undefined {
  return listOpenReviews(state, stepId).find(({ conflict }) => conflict.resource === resource)?.question;
}

interface ReviewQuestion {
  readonly conflict: Conflict;
  readonly question: Escalation;
}

/** Returns the requester's conflicts under review whose question is still open. */
function listOpenReviews(state: OpenCoordination, stepId: StepId): ReviewQuestion[] {
  return listConflictsUnderReview(state).filter(
    ({ conflict, question }) => conflict.contest?.requester === stepId && !question.closed,
  );
}

/** Returns the unresolved conflicts that people were asked about, with their questions. */
function listConflictsUnderReview(state: OpenCoordination): ReviewQuestion[] {
  if (state.reviews.isEmpty()) return [];
  return state.conflicts
    .filter(({ conflictId }) => state.reviews.has(conflictId))
    .flatMap((conflict) => {
      const question = findQuestionAboutConflict(state, conflict.conflictId);
      return question ? [{ conflict, question }] : [];
    });
}

/** Lists the conflicts whose change people approved, while the requester has no claim for it yet. */
export function listApprovedReviews(state: OpenCoordination): Conflict[] {
  return listConflictsUnderReview(state)
    .filter(({ question }) => question.closed?.resolution === "approved")
    .map(({ conflict }) => conflict);
}

/**
 * True when people may be asked about all these contested requests: somebody is notified, the host cannot ask, and
 * there is room for the new questions.
 */
export function canAskAboutContests(
  state: OpenCoordination,
  stepId: StepId,
  requests: readonly ContestedRequest[],
): boolean {
  const isAnybodyTold = (state.created.questions?.notify ?? []).length > 0;
  if (!isAnybodyTold || !requests.every(({ contest }) => contest.asksPeople)) return false;
  const openReviews = listOpenReviews(state, stepId);
  const fresh = requests.filter(
    ({ resource }) => !openReviews.some(({ conflict }) => conflict.resource === resource),
  ).length;
  return (
    openReviews.length + fresh <= CONFLICT_QUESTIONS_MAX &&
    state.openQuestions.size + fresh <= BOUNDS.openQuestionsMax
  );
}

/**
 * Drafts two facts: the conflict of a contested request and the question about it. Both stay open until people answer
 * or the question expires.
 */
export function draftConflictQuestion(
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
  const askedBy = findRequesterSession(state, stepId);
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
  return [draftDetectedConflict(stepId, { ...request, contest }, { conflictId, now }), draft];
}

function findRequesterSession({ steps, created }: OpenCoordination, stepId: StepId): Escalation["askedBy"] {
  if (stepId === OWNER_STEP_ID) return created.ownerSession;
  const step = steps.get(stepId);
  return step && findSessionOfPhase(step.phase);
}

/**
 * Drafts the fact that resolves a conflict at once when its question is closed; none for an approval, or where it is
 * resolved already. The requester of an approved change first needs a claim, and the token of a claim is known to the
 * ledger, not to one coordination.
 */
export function draftResolutionByAnswer(
  state: OpenCoordination,
  { conflictId }: Escalation,
  resolution: EscalationResolution,
): FactDraft[] {
  const conflict = state.conflicts.findLast((each) => each.conflictId === conflictId);
  if (!conflict || !state.reviews.has(conflict.conflictId) || resolution === "approved") return [];
  return [draftRulingOfPeople(conflict, RULING_OF_RESOLUTION[resolution] ?? "denied")];
}

const RULING_OF_RESOLUTION: Partial<Record<EscalationResolution, "unanswered" | "withdrawn">> = {
  expired: "unanswered",
  cancelled: "withdrawn",
};

type NamedConflict = Pick<Conflict, "conflictId">;

/**
 * Drafts the fact that cancels the open question about a conflict, because nobody needs its answer any more; none
 * where no question is open.
 */
export function draftConflictQuestionWithdrawal(
  state: OpenCoordination,
  { conflictId }: NamedConflict,
): FactDraft[] {
  const question = findQuestionAboutConflict(state, conflictId);
  if (!question || question.closed) return [];
  const { escalationId } = question;
  return [{ type: "escalation.closed", payload: { escalationId, resolution: "cancelled" } }];
}

/**
 * True when people approved a conflict by its newest question. Where such a conflict ends unresolved, nobody could
 * make the change in time.
 */
export function hasApprovedQuestion(state: OpenCoordination, { conflictId }: NamedConflict): boolean {
  return findQuestionAboutConflict(state, conflictId)?.closed?.resolution === "approved";
}

interface AcquiredClaim {
  readonly stepId: StepId;
  readonly resource: string;
  readonly acquiredAtMs: EpochMs;
}

/**
 * Returns a predicate that is true for a claim that came with an approval of people which was not used yet. Such
 * claims outlast the turn.
 */
export function createUnusedApprovalCheck(state: OpenCoordination): (claim: AcquiredClaim) => boolean {
  const approvals = listUnusedApprovals(state);
  return (claim) => approvals.some((approval) => isClaimOfApproval(approval, claim));
}

/**
 * True when people approved the change that a claim stands for, it has not happened yet, they knew of all contestants,
 * and none of these has changed the resource since.
 */
export function isChangeApproved(
  state: OpenCoordination,
  claim: AcquiredClaim,
  { claims, current }: OpposingClaims,
): boolean {
  return listUnusedApprovals(state).some(
    (approval) =>
      isClaimOfApproval(approval, claim) &&
      claims.every(
        (other) => isKnownAtApproval(approval, other) && !hasChangedOutsideAgain(approval, other, current),
      ),
  );
}

/** The claims that a request stands against, and the resource's present version. */
interface OpposingClaims {
  readonly claims: readonly Contestant[];
  /** The present version of the resource, where it has one. */
  readonly current: string | undefined;
}

/**
 * True when somebody outside changed the resource since people were asked. The time is not known, only that it is
 * another version.
 */
function hasChangedOutsideAgain(
  { conflict }: ConflictApproval,
  { stepId }: Contestant,
  current: string | undefined,
): boolean {
  return stepId === OUTSIDE_STEP_ID && conflict.contest?.current !== current;
}

/** People's approval of a request that was in conflict. */
interface ConflictApproval {
  readonly conflict: Conflict;
  readonly atMs: EpochMs;
}

/**
 * True when the claim is the requester's on that resource, and the requester got it with or before the approval, not
 * later.
 */
function isClaimOfApproval(
  { conflict, atMs }: ConflictApproval,
  { stepId, resource, acquiredAtMs }: AcquiredClaim,
): boolean {
  return conflict.resource === resource && conflict.contest?.requester === stepId && acquiredAtMs <= atMs;
}

/** True when people knew of this contestant, and it has changed nothing since they answered. */
function isKnownAtApproval({ conflict, atMs }: ConflictApproval, other: Contestant): boolean {
  const { stepId, coordinationId, changedAtMs } = other;
  if (changedAtMs !== undefined && changedAtMs > atMs) return false;
  return conflict.claims.some(
    (contestant) => contestant.stepId === stepId && contestant.coordinationId === coordinationId,
  );
}

/** Returns the approvals that led to a claim, except those after which the requester changed the resource. */
function listUnusedApprovals(state: OpenCoordination): ConflictApproval[] {
  return state.escalations
    .valueSeq()
    .filter(({ cause, closed }) => cause === "conflict" && closed?.resolution === "approved")
    .toArray()
    .flatMap(({ conflictId }) => {
      const conflict = state.conflicts.findLast((each) => each.conflictId === conflictId);
      const atMs = conflict?.resolution?.winner === undefined ? undefined : conflict.resolvedAtMs;
      return conflict && atMs !== undefined && !isApprovalUsed(state, { conflict, atMs })
        ? [{ conflict, atMs }]
        : [];
    });
}

/** True when the requester changed the resource after the approval, also where another has changed it since. */
function isApprovalUsed({ changes }: OpenCoordination, { conflict, atMs }: ConflictApproval): boolean {
  const newest = changes.get(conflict.resource);
  return [newest, newest?.other].some(
    (change) => change?.stepId === conflict.contest?.requester && (change?.atMs ?? 0) >= atMs,
  );
}
