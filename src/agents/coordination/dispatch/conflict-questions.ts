/**
 * Owns: questions to people about contested writes that the host cannot ask about: when one is put, and what an answer lets happen.
 * Does not own: how questions are put and answered (`ask-people.ts`, `decide-questions.ts`).
 *
 * 1. One question for each resource that a requester wants, as long as it is open. 2. What is approved happens once: within the lease
 * that the requester got with the approval, and over those that people knew of. 3. Where nobody is told of questions, none is put.
 */
import type { Contestant } from "../contracts/arbitration.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { OWNER_STEP_ID, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import { sessionOf, type Conflict, type Escalation, type OpenCoordination } from "../ledger/state.ts";
import { asking } from "./ask-people.ts";
import { detection, peopleSaid, type ContestedRequest } from "./conflict-facts.ts";

/** One call may want many things, and people read each question. */
export const CONFLICT_QUESTIONS_MAX = 16;

type Resolution = FactPayloads["escalation.closed"]["resolution"];

/** The question that is put about a conflict, open or closed. */
export function questionAbout(
  { escalations }: Pick<OpenCoordination, "escalations">,
  conflictId: string,
): Escalation | undefined {
  return escalations.findLast((question) => question.conflictId === conflictId);
}

/** The question that the requester's call waits for. */
export function openQuestionOn(
  state: OpenCoordination,
  stepId: StepId,
  resource: string,
): Escalation | undefined {
  return openOf(state, stepId).find(({ conflict }) => conflict.resource === resource)?.question;
}

interface Asked {
  readonly conflict: Conflict;
  readonly question: Escalation;
}

function openOf(state: OpenCoordination, stepId: StepId): Asked[] {
  return underReview(state).filter(
    ({ conflict, question }) => conflict.contest?.requester === stepId && !question.closed,
  );
}

/** The conflicts that people were asked about by a question, and that are not resolved. */
function underReview(state: OpenCoordination): Asked[] {
  if (state.reviews.isEmpty()) return [];
  return state.conflicts
    .filter(({ conflictId }) => state.reviews.has(conflictId))
    .flatMap((conflict) => {
      const question = questionAbout(state, conflict.conflictId);
      return question ? [{ conflict, question }] : [];
    });
}

/** People approved them, and the requester has not got its claim yet. */
export function approvedReviews(state: OpenCoordination): Conflict[] {
  return underReview(state)
    .filter(({ question }) => question.closed?.resolution === "approved")
    .map(({ conflict }) => conflict);
}

export function mayAskAbout(
  state: OpenCoordination,
  stepId: StepId,
  requests: readonly ContestedRequest[],
): boolean {
  const isAnybodyTold = (state.created.questions?.notify ?? []).length > 0;
  if (!isAnybodyTold || !requests.every(({ contest }) => contest.asksPeople)) return false;
  const open = openOf(state, stepId);
  const fresh = requests.filter(
    ({ resource }) => !open.some(({ conflict }) => conflict.resource === resource),
  ).length;
  return (
    open.length + fresh <= CONFLICT_QUESTIONS_MAX &&
    state.openQuestions.size + fresh <= BOUNDS.openQuestionsMax
  );
}

/** The conflict, open until people answer or the time to do so is over. */
export function putQuestion(
  state: OpenCoordination,
  stepId: StepId,
  given: {
    readonly request: ContestedRequest;
    readonly conflictId: string;
    readonly after: number;
    readonly now: EpochMs;
  },
): FactDraft[] {
  const { request, conflictId, after, now } = given;
  const askedBy = sessionFor(state, stepId);
  const asked = asking(
    state,
    {
      ...{ cause: "conflict", kind: "approval", answers: ["approve", "deny"], conflictId },
      ...(stepId !== OWNER_STEP_ID && { stepId }),
      ...(askedBy && { askedBy }),
    },
    { now, after },
  );
  const contest = { ...request.contest, reviewByMs: asked.payload.deadlineAtMs };
  return [detection(stepId, { ...request, contest }, { conflictId, now }), asked];
}

function sessionFor({ steps, created }: OpenCoordination, stepId: StepId): Escalation["askedBy"] {
  if (stepId === OWNER_STEP_ID) return created.ownerSession;
  const step = steps.get(stepId);
  return step && sessionOf(step.phase);
}

/** What an answer resolves at once. Approved, the requester first gets a claim, whose token no state of one coordination knows. */
export function conflictAnswered(
  state: OpenCoordination,
  { conflictId }: Escalation,
  resolution: Resolution,
): FactDraft[] {
  const conflict = state.conflicts.findLast((each) => each.conflictId === conflictId);
  if (!conflict || !state.reviews.has(conflict.conflictId) || resolution === "approved") return [];
  return [peopleSaid(conflict, SAID[resolution] ?? "denied")];
}

const SAID: Partial<Record<Resolution, "unanswered" | "withdrawn">> = {
  expired: "unanswered",
  cancelled: "withdrawn",
};

/** Nobody waits for the answer any more. */
export function questionWithdrawn(
  state: OpenCoordination,
  { conflictId }: Pick<Conflict, "conflictId">,
): FactDraft[] {
  const question = questionAbout(state, conflictId);
  if (!question || question.closed) return [];
  const { escalationId } = question;
  return [{ type: "escalation.closed", payload: { escalationId, resolution: "cancelled" } }];
}

/** What people let happen, and nobody could make happen in time. */
export function hasLapsed(state: OpenCoordination, { conflictId }: Pick<Conflict, "conflictId">): boolean {
  return questionAbout(state, conflictId)?.closed?.resolution === "approved";
}

interface Held {
  readonly stepId: StepId;
  readonly resource: string;
  readonly acquiredAtMs: EpochMs;
}

/** Which claims were given with an approval that nothing was done with yet: they outlast the turn. */
export function keptForApprovals(state: OpenCoordination): (claim: Held) => boolean {
  const approvals = unusedApprovals(state);
  return (claim) => approvals.some((approval) => isUnder(approval, claim));
}

/** Whether people have approved this very change, and it has not happened yet. */
export function isApproved(state: OpenCoordination, held: Held, claims: readonly Contestant[]): boolean {
  return unusedApprovals(state).some(
    (approval) => isUnder(approval, held) && claims.every((other) => isKnownTo(approval, other)),
  );
}

interface Approval {
  readonly conflict: Conflict;
  readonly atMs: EpochMs;
}

function isUnder({ conflict, atMs }: Approval, { stepId, resource, acquiredAtMs }: Held): boolean {
  return conflict.resource === resource && conflict.contest?.requester === stepId && acquiredAtMs <= atMs;
}

/** People knew of it, and it has changed nothing since they answered. */
function isKnownTo({ conflict, atMs }: Approval, other: Contestant): boolean {
  const { stepId, coordinationId, changedAtMs } = other;
  if (changedAtMs !== undefined && changedAtMs > atMs) return false;
  return conflict.claims.some((known) => known.stepId === stepId && known.coordinationId === coordinationId);
}

function unusedApprovals(state: OpenCoordination): Approval[] {
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
