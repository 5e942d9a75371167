/** Owns: holding the ledger against the independent model: what was asked, and what the hosts answered. */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { FactOf } from "./journal.ts";
import type { AnswerPromise, GrantPromise, PlanPromise, RequestPromise } from "./promises.ts";
import { mayMergeAll, type World } from "./world.ts";

export function checkPromises(world: World): string[] {
  const { plans, requests, answers, grants } = world.promises;
  return [
    ...plans.flatMap((promise) => checkSubmission(world, promise)),
    ...plans.flatMap((promise) => checkRefusedPlan(world, promise)),
    ...requests.flatMap((promise) => checkRequest(world, promise)),
    ...answers.flatMap((promise) => checkAnswer(world, promise)),
    ...checkAnswersTogether(answers),
    ...checkNotices(world),
    ...grants.flatMap((promise) => checkGrant(world, promise)),
  ];
}

/** The plan that was accepted first is the one; the same again is a replay of it, and another one is refused. */
function checkSubmission(world: World, promise: PlanPromise): string[] {
  const { answer, coordinationId, isLater } = promise;
  if (!answer) return [];
  const first = world.promises.plans.find(
    (each) => each.coordinationId === coordinationId && each.answer?.kind === "accepted",
  );
  if (isLater && answer.kind !== expectAnswer(first, promise) && !isRefusedAsPruned(world, promise))
    return [`D2: ${coordinationId} again was ${answer.kind}`];
  if (answer.kind === "refused") return [];
  if (answer.kind === "accepted" && first !== promise && first)
    return [`D2: ${coordinationId} was accepted twice`];
  return checkPlanIsThere(world, promise);
}

function expectAnswer(first: PlanPromise | undefined, { plan }: PlanPromise): "replay" | "refused" {
  const isSame = first !== undefined && JSON.stringify(first.plan) === JSON.stringify(plan);
  return isSame ? "replay" : "refused";
}

/** Nobody knows the plan of a run that was pruned any more, and its id is never given to another one. */
function isRefusedAsPruned({ ledger }: World, { coordinationId, answer }: PlanPromise): boolean {
  return ledger.traces.runs.has(coordinationId) && answer?.kind === "refused";
}

/** All plans of schedules are valid, so that only one whose id was submitted before may be refused where nothing is wrong. */
function checkRefusedPlan({ promises }: World, promise: PlanPromise): string[] {
  const { coordinationId, answer, isCalm } = promise;
  const first = promises.plans.find((each) => each.coordinationId === coordinationId);
  return answer?.kind === "refused" && isCalm && first === promise
    ? [`D1: ${coordinationId} was refused`]
    : [];
}

function checkPlanIsThere({ journal }: World, { coordinationId, plan }: PlanPromise): string[] {
  const steps = plan["steps"] as readonly { readonly stepId: string }[];
  const admitted = journal
    .eventsOf(coordinationId)
    .flatMap((event) => (event.type === "step.admitted" ? [event.payload.stepId as string] : []));
  const absent = steps.filter(({ stepId }) => !admitted.includes(stepId));
  return absent.map(({ stepId }) => `D1: ${coordinationId} was accepted and ${stepId} is not there`);
}

/** The fact behind an accepted request was appended between the request and its answer; behind a replay it is older. */
function checkRequest({ journal }: World, promise: RequestPromise): string[] {
  const { kind, runId, answer, askedFrom, answeredBy } = promise;
  if (!answer || answer.kind === "refused" || (kind === "retry" && answer.kind === "replay")) return [];
  const events = journal.events.slice(answer.kind === "replay" ? 0 : askedFrom, answeredBy);
  const isThere = events.some((event) => event.runId === runId && isRequestedFact(event, promise));
  return isThere ? [] : [`a ${kind} of ${runId} was ${answer.kind} and is not in the log`];
}

function isRequestedFact(event: RunEvent, { kind, stepId }: RequestPromise): boolean {
  if (kind === "cancel")
    return event.type === "coordination.cancel_requested" && event.payload.stepId === stepId;
  if (event.type === "step.retry_granted") return stepId === undefined || event.payload.stepId === stepId;
  return (
    stepId === undefined && event.type === "escalation.closed" && event.payload.resolution === "continued"
  );
}

type AnswerFact = FactOf<"escalation.answered">;

/** Finds the answer that counted by the time of the promise's own. */
function findCounted({ journal }: World, { questionId, answeredBy }: AnswerPromise): AnswerFact | undefined {
  return journal.events
    .slice(0, answeredBy)
    .find(
      (event): event is AnswerFact =>
        event.type === "escalation.answered" &&
        `${event.runId}:${event.payload.escalationId}` === questionId &&
        event.payload.refused === undefined,
    );
}

function checkAnswer(world: World, promise: AnswerPromise): string[] {
  const { questionId, answer, move, session } = promise;
  if (!answer) return [];
  const counted = findCounted(world, promise);
  if (answer.kind === "refused") return checkRefusal(world, promise);
  if (!counted) return [`E1: an answer to ${questionId} was accepted and does not count`];
  const asChild = counted.payload.through === "session";
  if (!asChild && counted.payload.answer !== move.answer)
    return [`E1: ${move.answer} to ${questionId} was accepted, and ${counted.payload.answer} counts`];
  const isSame = session === undefined || asChild || counted.payload.by.session === session;
  return isSame ? [] : [`E1: another one's answer to ${questionId} counts`];
}

/** An answer in time, by who may give it, to a question that nothing has closed, counts. */
function checkRefusal(world: World, promise: AnswerPromise): string[] {
  const { questionId, answer, move } = promise;
  const isPlain = move.by === "operator" && move.answer !== "answer" && !world.hasGoneBack;
  if (answer?.kind !== "refused" || !isPlain) return [];
  const question = world.journal
    .filter("coordination.escalated")
    .find(({ runId, payload }) => `${runId}:${payload.escalationId}` === questionId);
  return question && isWelcome(world, question, promise)
    ? [`E1: an answer to ${questionId} was refused: ${answer.reason}`]
    : [];
}

/** The time is over when the gateway decides, which may be later than the answer was given. */
function isWelcome(
  { journal }: World,
  { runId, payload: { escalationId, answers = [], deadlineAtMs } }: FactOf<"coordination.escalated">,
  { move, answeredAtMs = Infinity, answeredBy }: AnswerPromise,
): boolean {
  const isClosed = journal.events
    .slice(0, answeredBy)
    .some(
      (event) =>
        event.type === "escalation.closed" &&
        event.runId === runId &&
        event.payload.escalationId === escalationId,
    );
  return answers.includes(move.answer) && answeredAtMs < deadlineAtMs && !isClosed;
}

/** The steps that the session works on, or worked on, by run and step. */
function listStepsOf({ journal }: World, session: string): string[] {
  return journal.events.flatMap((event) =>
    event.type === "step.acknowledged" && event.payload.childSessionKey === session
      ? [`${event.runId}/${event.payload.stepId}`]
      : event.type === "step.dispatched" && event.payload.targetSession === session
        ? [`${event.runId}/${event.payload.stepId}`]
        : [],
  );
}

/** While nothing is disturbed, no notice is given twice. */
function checkNotices({ promises, gateways, deaths }: World): string[] {
  if (deaths.length > 0 || gateways.some(({ life }) => life.isDisturbed)) return [];
  const repeated = promises.notices.filter((noticeId, index) => promises.notices.indexOf(noticeId) < index);
  return [...new Set(repeated)].map((noticeId) => `E2: the notice ${noticeId} was given again`);
}

/** E1: of two answers that contradict each other, one is accepted at most. */
function checkAnswersTogether(answers: readonly AnswerPromise[]): string[] {
  const accepted = answers.filter(({ answer }) => answer?.kind === "accepted");
  return [...Map.groupBy(accepted, ({ questionId }) => questionId)].flatMap(([questionId, list]) =>
    list.length > 1 ? [`E1: ${list.length} answers to ${questionId} were accepted`] : [],
  );
}

/** A2, D1: what is allowed is allowed under a claim in the ledger, and beside no other one. */
function checkGrant(world: World, grant: GrantPromise): string[] {
  const names = listStepsOf(world, grant.session);
  const isHolder = (holder: string): boolean => names.includes(holder) || holder.endsWith("/@owner");
  if (grant.isCalm && !grant.covering.some(isHolder))
    return [`A2: ${grant.session} writes ${grant.resource} under no claim`];
  const others = grant.holders.filter((holder) => !isHolder(holder));
  // A machine that is ahead takes claims over before their lease has ended.
  if (world.areClocksApart) return [];
  const isShared = grant.resource.endsWith("merge.md") || mayMergeAll(world);
  if (others.length > 0 && !isShared)
    return [`A2: ${grant.session} writes ${grant.resource} beside ${others.join(" ")}`];
  return [];
}
