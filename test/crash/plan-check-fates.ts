/** Owns: that every fate of a step is explained by what the agents did, what people asked, and what the plan says. */
import { hash } from "node:crypto";
import { DELIVERY_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import {
  filterByType,
  isCutOff,
  listCarried,
  timeOf,
  type Evidence,
  type FactOf,
  type OutcomeFact,
} from "./plan-check.ts";
import { findStepLimit } from "./plan-check-budget.ts";
import type { HostRun } from "./plan-host.ts";

const hashText = (text: string): string => hash("sha256", text);
const keyOf = (stepId: string, attempt: number): string => `:${stepId}:${attempt}`;

export function checkFates(evidence: Evidence): string[] {
  return [
    ...evidence.outcomes.flatMap((outcome) => checkOutcome(evidence, outcome)),
    ...filterByType(evidence.facts, "step.reported").flatMap((fact) => checkReport(evidence, fact)),
    ...filterByType(evidence.facts, "step.skipped").flatMap((fact) => checkSkip(evidence, fact)),
    ...[...evidence.admitted.keys()].flatMap((stepId) => checkLast(evidence, stepId)),
    ...checkTally(evidence),
  ];
}

function runsOf(
  { host }: Evidence,
  { stepId, attempt }: { readonly stepId: string; readonly attempt: number },
): HostRun[] {
  return host.runs.filter(({ key }) => key.endsWith(keyOf(stepId, attempt)));
}

const listBefore = (facts: readonly FactEvent[], fact: FactEvent): readonly FactEvent[] =>
  facts.filter(({ sequence }) => sequence < fact.sequence);

function isInTime({ areClocksApart = false }: Evidence, timeOut: FactOf<"step.timed_out">): boolean {
  return areClocksApart || timeOf(timeOut) >= timeOut.payload.deadlineAtMs;
}

/** The host's part of an outcome happened, and earlier than its record. */
function checkOutcome(evidence: Evidence, outcome: OutcomeFact): string[] {
  const { payload } = outcome;
  const where = `${outcome.type} ${JSON.stringify(payload)}`;
  const { hasGoneBack = false } = evidence;
  const ended = runsOf(evidence, payload).filter(
    ({ endedAtMs }) => endedAtMs !== undefined && (hasGoneBack || endedAtMs <= timeOf(outcome)),
  );
  const hasEndedAs = (as: string): boolean => ended.some(({ ending }) => ending?.outcome === as);
  if (outcome.type === "step.completed") {
    if (!hasEndedAs("completed")) return [`${where}: the agent did not complete`];
    if (outcome.payload.released === "replaced") return [];
    return isOutput(evidence, outcome, ended) ? [] : [`${where}: that is not what the agent answered`];
  }
  if (outcome.type === "step.timed_out") {
    const isTrue = outcome.payload.via === "deadline" ? isInTime(evidence, outcome) : hasEndedAs("timed_out");
    return isTrue ? [] : [`${where}: too early`];
  }
  return isFailure(evidence, outcome, hasEndedAs) ? [] : [`${where}: the agent did not fail so`];
}

function isOutput({ facts }: Evidence, outcome: FactOf<"step.completed">, runs: readonly HostRun[]): boolean {
  const { stepId, attempt, output } = outcome.payload;
  const reported = filterByType(listBefore(facts, outcome), "step.reported").findLast(
    ({ payload }) => payload.stepId === stepId && payload.attempt === attempt,
  );
  if (reported) return output?.sha256 === reported.payload.output.sha256;
  return runs.some(({ ending }) => output?.sha256 === hashText(readOutputs(ending?.reply ?? "")));
}

function readOutputs(reply: string): string {
  // No file in UTF-8 holds half of a character.
  return reply.startsWith("{") ? reply : JSON.stringify({ text: reply.toWellFormed() });
}

function isFailure(
  evidence: Evidence,
  fact: FactOf<"step.failed">,
  didEnd: (as: string) => boolean,
): boolean {
  const { host, facts, created } = evidence;
  const { stepId, attempt, error } = fact.payload;
  const runs = runsOf(evidence, fact.payload);
  switch (error.code) {
    case "spawn_refused":
      return [...host.refused].some((key) => key.endsWith(keyOf(stepId, attempt)));
    case "spawn_not_confirmed":
      return !runs.some(({ forgottenAtMs, isLate }) => forgottenAtMs === undefined && !isLate);
    case "child_lost":
      return runs.some(({ forgottenAtMs }) => forgottenAtMs !== undefined);
    case "child_failed":
      // Or the turn failed in which it was told how its plan ended.
      return didEnd("failed") || hasPlanned(facts, fact.payload);
    case "output_invalid":
    case "reported_failed":
      return didEnd("completed");
    case "verification_failed":
      return filterByType(listBefore(facts, fact), "result.verified").some(
        ({ payload }) =>
          payload.stepId === stepId && payload.attempt === attempt && payload.verdict === "fail",
      );
    case "withheld":
      return (
        didEnd("completed") && (isWithheld(listBefore(facts, fact), stepId) || isUnasked(evidence, fact))
      );
    case "input_unavailable":
      return runs.length === 0;
    case "worktree_failed":
      return runs.length === 0 || didEnd("completed");
    case "child_cancelled":
      return (
        didEnd("cancelled") ||
        isStopAsked(listBefore(facts, fact), stepId) ||
        created.failurePolicy.timeoutPolicy === "fail_fast"
      );
    default:
      return false;
  }
}

/** True for an attempt whose agent submitted a plan, where its own plan limits the spawns. */
function hasPlanned(
  facts: readonly FactEvent[],
  { stepId, attempt }: FactOf<"step.failed">["payload"],
): boolean {
  return filterByType(facts, "budget.lent").some(
    ({ payload }) => payload.stepId === stepId && payload.attempt === attempt,
  );
}

function isStopAsked(facts: readonly FactEvent[], stepId: string): boolean {
  return filterByType(facts, "coordination.cancel_requested").some(
    ({ payload }) => (payload.stepId ?? stepId) === stepId,
  );
}

/** H3: a report is of the session that the ledger has for the attempt. A revision goes on in the session of the attempt before. */
function checkReport(evidence: Evidence, { payload }: FactOf<"step.reported">): string[] {
  const { stepId, attempt } = payload;
  const dispatch = evidence.dispatches.find((each) => {
    const { payload: dispatched } = each;
    return dispatched.stepId === stepId && dispatched.attempt === attempt;
  });
  const values = evidence.host.runs
    .filter(({ order }) => order.childSessionKey === dispatch?.payload.targetSession)
    .flatMap(({ reports }) => reports.map(({ outputs }) => hashText(JSON.stringify(outputs))));
  return values.includes(payload.output.sha256)
    ? []
    : [`D3: a report of ${payload.stepId}:${payload.attempt} is not of its agent`];
}

function checkSkip(evidence: Evidence, fact: FactOf<"step.skipped">): string[] {
  const { facts, created, admitted } = evidence;
  const { stepId, because } = fact.payload;
  const earlier = listBefore(facts, fact);
  const isTrue = {
    dependency: () => isDoomed(earlier, admitted.get(stepId)?.planned),
    cancelled: () => isStopAsked(earlier, stepId),
    fail_fast: () => created.failurePolicy.timeoutPolicy === "fail_fast" && hasFailed(earlier),
    deadline: () => timeOf(fact) >= (created.plan?.deadlineAtMs ?? Infinity),
    budget: () =>
      filterByType(earlier, "coordination.escalated").some(({ payload }) => payload.cause === "budget"),
    denied: () => isRefused(earlier, stepId),
  };
  return isTrue[because]() ? [] : [`${stepId} was skipped (${because}) for no reason`];
}

function isWithheld(facts: readonly FactEvent[], stepId: string): boolean {
  const escalations = filterByType(facts, "coordination.escalated").filter(
    ({ payload }) => payload.stepId === stepId,
  );
  return filterByType(facts, "escalation.closed").some(
    ({ payload }) =>
      (payload.resolution === "denied" || payload.resolution === "expired") &&
      escalations.some((question) => question.payload.escalationId === payload.escalationId),
  );
}

/** True for a held result that people would have to rule on, where the deadline of the plan has passed and no question is open. */
function isUnasked({ facts, created }: Evidence, fact: FactOf<"step.failed">): boolean {
  const { stepId, attempt } = fact.payload;
  const earlier = listBefore(facts, fact);
  const hold = filterByType(earlier, "result.held").findLast(({ payload }) => payload.stepId === stepId);
  if (hold?.payload.attempt !== attempt || timeOf(fact) < (created.plan?.deadlineAtMs ?? Infinity))
    return false;
  const closed = filterByType(earlier, "escalation.closed").map(({ payload }) => payload.escalationId);
  return filterByType(earlier, "coordination.escalated").every(
    ({ payload }) => payload.stepId !== stepId || closed.includes(payload.escalationId),
  );
}

/** The question of a doubt about the step, or about the whole plan. */
function isRefused(facts: readonly FactEvent[], stepId: string): boolean {
  const doubts = filterByType(facts, "coordination.escalated").filter(
    ({ payload }) => payload.cause === "confidence" && (payload.stepId ?? stepId) === stepId,
  );
  const refused = filterByType(facts, "escalation.closed").filter(
    ({ payload }) => payload.resolution !== "approved",
  );
  return doubts.some((escalation) =>
    refused.some(({ payload }) => payload.escalationId === escalation.payload.escalationId),
  );
}

function isDoomed(
  facts: readonly FactEvent[],
  planned: { readonly dependsOn: readonly string[]; readonly fanIn: number } = { dependsOn: [], fanIn: 0 },
): boolean {
  const lostSteps = planned.dependsOn.filter((stepId) => {
    const ends = facts.filter(
      ({ type, payload }) => LOSSES.has(type) && "stepId" in payload && payload.stepId === stepId,
    );
    return ends.length > 0;
  });
  return planned.dependsOn.length - lostSteps.length < planned.fanIn;
}

const LOSSES: ReadonlySet<string> = new Set(["step.failed", "step.timed_out", "step.skipped"]);

function hasFailed(facts: readonly FactEvent[]): boolean {
  return facts.some(({ type }) => type === "step.failed" || type === "step.timed_out");
}

/** A step that ended badly was tried as often as it may be, or there is a reason why not. */
function checkLast(evidence: Evidence, stepId: string): string[] {
  const { outcomes, admitted } = evidence;
  const budget = admitted.get(stepId)?.retryBudget ?? 0;
  const last = outcomes.findLast(({ payload }) => payload.stepId === stepId);
  if (!last || last.type === "step.completed" || stepId === DELIVERY_STEP_ID) return [];
  const revisions = filterByType(evidence.facts, "result.revised").filter(
    ({ payload }) => payload.stepId === stepId,
  ).length;
  const attempt = last.payload.attempt - revisions;
  if (attempt > budget || isFinal(last) || hasStopped(evidence, last) || isBounded(evidence, last)) return [];
  return [`${stepId} was given up after attempt ${attempt} of ${budget + 1}`];
}

const FINAL: ReadonlySet<string> = new Set(["input_unavailable", "withheld"]);

function isFinal({ type, payload }: OutcomeFact): boolean {
  return type === "step.failed" && (payload.cancelled || FINAL.has(payload.error.code));
}

/** The plan or the step was stopped before it could be tried again. */
function hasStopped({ facts, created }: Evidence, last: OutcomeFact): boolean {
  const { stepId } = last.payload;
  const hasFailedFast = created.failurePolicy.timeoutPolicy === "fail_fast" && hasFailed(facts);
  const isSkipped = filterByType(facts, "step.skipped").some(({ payload }) => payload.stepId === stepId);
  return (
    hasFailedFast || isSkipped || isStopAsked(facts, stepId) || isStoppedByBudget(listBefore(facts, last))
  );
}

/** People, or nobody, let the plan go on after its budget was used up. */
function isStoppedByBudget(facts: readonly FactEvent[]): boolean {
  const questions = filterByType(facts, "coordination.escalated")
    .filter(({ payload }) => payload.cause === "budget" && payload.stepId === undefined)
    .map(({ payload }) => payload.escalationId);
  return filterByType(facts, "escalation.closed").some(
    ({ payload }) => questions.includes(payload.escalationId) && payload.resolution !== "continued",
  );
}

/** The next attempt, which may be as late as its wait is long, would be behind a deadline or over the budget of the step. */
function isBounded(evidence: Evidence, last: Exclude<OutcomeFact, FactOf<"step.completed">>): boolean {
  const { admitted, created, hasGoneBack = false } = evidence;
  const { stepId, attempt } = last.payload;
  const backoffMs = admitted.get(stepId)?.planned?.backoffMs ?? 0;
  const latestMs = hasGoneBack ? Infinity : timeOf(last) + backoffMs * 2 ** (attempt - 1);
  const deadlineAtMs = created.plan?.deadlineAtMs;
  const isOutOfTime = deadlineAtMs !== undefined && latestMs >= deadlineAtMs;
  return isOutOfTime || findStepLimit(evidence, last, latestMs) !== undefined;
}

function isReached({ payload }: FactOf<"coordination.terminal">): boolean {
  return (payload.successCriteria ?? []).every(({ met }) => met);
}

/** The end counts what the log says of the steps. */
function checkTally(evidence: Evidence): string[] {
  const { facts, admitted, created } = evidence;
  const [end] = filterByType(facts, "coordination.terminal");
  if (!end) return [];
  const { steps, status } = end.payload;
  const finished = listFinished(evidence);
  const problems: string[] = [];
  if (steps.completed !== finished.size)
    problems.push(`the end counts ${steps.completed} completed, not ${finished.size}`);
  const sum = sumSteps(steps);
  const isComplete = sum === steps.total && steps.total === created.plan?.steps;
  if (!isComplete || admitted.size !== steps.total + countDeliveries(evidence))
    problems.push(`the end counts ${sum} of ${steps.total} steps`);
  if ((status === "success") !== (steps.completed === steps.total && isReached(end)))
    problems.push(`${status} with ${steps.completed} of ${steps.total}`);
  return problems;
}

function sumSteps(steps: FactOf<"coordination.terminal">["payload"]["steps"]): number {
  return steps.completed + steps.failed + steps.timedOut + steps.cancelled + (steps.skipped ?? 0);
}

/** A plan that ended with the attempt of its agent need not have come to telling it. */
function countDeliveries(evidence: Evidence): number {
  return isCutOff(evidence) && !evidence.admitted.has("@delivery") ? 0 : 1;
}

/** The steps of the plan that have a result: by their agents, or from the source of the fork. */
function listFinished(evidence: Evidence): ReadonlySet<string> {
  const finished = new Set<string>(listCarried(evidence));
  for (const { payload } of filterByType(evidence.facts, "step.completed")) finished.add(payload.stepId);
  finished.delete(DELIVERY_STEP_ID);
  return finished;
}
