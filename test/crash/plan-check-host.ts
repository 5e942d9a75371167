/** Owns: what must be true outside of the ledger: real starts, agents left at work, and what the owner was told. */
import { hash } from "node:crypto";
import { filterByType, isCutOff, timeOf, type Evidence, type OutcomeFact } from "./plan-check.ts";
import type { HostRun } from "./plan-host.ts";

export function checkHost(evidence: Evidence): string[] {
  return [
    ...checkStarts(evidence),
    ...evidence.host.runs.flatMap((run) => [
      ...checkMessage(evidence, run),
      ...checkLeft(evidence, run),
      ...checkStoppedUse(evidence, run),
    ]),
    ...checkDelivery(evidence),
  ];
}

/** D1, D2: every real start was intended, and happened once. */
function checkStarts({ host, admitted }: Evidence): string[] {
  const problems = host.runs
    .filter(({ wasIntended }) => !wasIntended)
    .map(({ key }) => `D1: ${key} started unrecorded`);
  for (const [key, runs] of Map.groupBy(host.runs, (run) => run.key)) {
    const unforgotten = runs.slice(0, -1).filter(({ forgottenAtMs }) => forgottenAtMs === undefined);
    if (unforgotten.length > 0) problems.push(`D2: ${key} was executed ${runs.length} times`);
  }
  for (const [key, times] of host.asked) {
    const stepId = key.split(":")[1] ?? "";
    if (times > 1 && admitted.get(stepId)?.deliveryMode === "best_effort")
      problems.push(`${key} is best_effort and was sent ${times} times`);
  }
  return problems;
}

/** The agent is told what the ledger says that it was told, with the outputs of the steps before. */
function checkMessage({ dispatches }: Evidence, run: HostRun): string[] {
  const dispatch = dispatches.find(({ payload }) => payload.idempotencyKey === run.key)?.payload;
  if (dispatch?.message?.sha256 !== hash("sha256", run.order.message))
    return [`${run.key} was told something else than recorded`];
  return dispatch.targetSession === run.order.childSessionKey ? [] : [`${run.key} ran in another session`];
}

/** An agent is not left at work where the host could have stopped it. */
function checkLeft(evidence: Evidence, run: HostRun): string[] {
  if (run.isDelivery || run.forgottenAtMs !== undefined) return [];
  const isStoppable = run.manner.cancel === "stops" || run.manner.cancel === "stops and hangs";
  if (run.endedAtMs !== undefined) return isStoppable ? checkTooLong(evidence, run) : [];
  return isStoppable || !isKnownToGoOn(evidence, run) ? checkAbandoned(evidence, run) : [];
}

function checkTooLong(
  { facts, hasGoneBack = false }: Evidence,
  { key, isLate, endedAtMs = 0 }: HostRun,
): string[] {
  const [end] = filterByType(facts, "coordination.terminal");
  if (hasGoneBack) return [];
  return end && !isLate && endedAtMs > timeOf(end) ? [`${key} was at work after the end`] : [];
}

function checkAbandoned({ deaths }: Evidence, { key, isLate, startedAtMs, manner }: HostRun): string[] {
  // It arrived when it had been given up, and who waited for it died or could not stop it.
  const isExcused =
    isLate && (deaths.some((atMs) => atMs >= startedAtMs) || !manner.cancel.startsWith("stops"));
  return isExcused ? [] : [`${key} was left at work`];
}

function isKnownToGoOn({ facts, outcomes }: Evidence, { key }: HostRun): boolean {
  const isOf = (of: { readonly stepId: string; readonly attempt: number }): boolean =>
    key.endsWith(`:${of.stepId}:${of.attempt}`);
  const isUnreachable = filterByType(facts, "step.child_stopped").some(
    ({ payload }) => isOf(payload) && payload.outcome === "unreachable",
  );
  const words = "could not be told";
  return (
    isUnreachable ||
    outcomes.some(
      ({ type, payload }) => type === "step.failed" && isOf(payload) && payload.error.message.includes(words),
    )
  );
}

/** Checks that the log has once what an agent used that was stopped, where the host says it. */
function checkStoppedUse(evidence: Evidence, run: HostRun): string[] {
  const { facts, outcomes } = evidence;
  const {
    key,
    manner: { tokens },
  } = run;
  if (tokens === undefined || !isStopTold(run) || isEndedElsewhere(evidence, run)) return [];
  const isOf = ({ payload }: { readonly payload: { readonly stepId: string; readonly attempt: number } }) =>
    key.endsWith(`:${payload.stepId}:${payload.attempt}`);
  const outcome = outcomes.find(isOf);
  if (!outcome || !isStopOutcome(outcome) || hasForgotten(run, outcome)) return [];
  const ends = [outcome, ...filterByType(facts, "step.child_stopped").filter(isOf)];
  const counted = ends.reduce((sum, { payload }) => sum + (payload.usage?.tokens ?? 0), 0);
  // The plans that it submitted may have used more.
  const most = hasUsedSpawns(outcome) ? Infinity : tokens;
  return counted >= tokens && counted <= most ? [] : [`${key} used ${tokens} tokens, and ${counted} count`];
}

/** True where the host says what an agent used that was stopped. */
function isStopTold({ manner, isStopped, isLate, forgottenAtMs }: HostRun): boolean {
  if (!isStopped || isLate || manner.observe !== "true") return false;
  // Where the host says nothing of the stop, it may have forgotten the agent before it can be asked.
  return manner.cancel !== "stops and hangs" || forgottenAtMs === undefined;
}

/** True where the end could not be recorded before the host had forgotten the agent, as while nothing can be written. */
function hasForgotten({ forgottenAtMs = Infinity }: HostRun, outcome: OutcomeFact): boolean {
  return forgottenAtMs <= timeOf(outcome);
}

/** True where another gateway may have ended the attempt: it cannot ask the agent's host, and says that the agent may go on. */
function isEndedElsewhere(evidence: Evidence, run: HostRun): boolean {
  const dispatch = evidence.dispatches.find(({ payload }) => payload.idempotencyKey === run.key);
  return dispatch?.payload.gateway !== undefined && isKnownToGoOn(evidence, run);
}

function hasUsedSpawns({ payload }: OutcomeFact): boolean {
  return (payload.usage?.spawns ?? 0) > 0;
}

function isStopOutcome({ type, payload }: OutcomeFact): boolean {
  return type === "step.timed_out" || (type === "step.failed" && payload.error.code === "child_cancelled");
}

/** Told at most once, and the end says the truth about it. */
function checkDelivery(evidence: Evidence): string[] {
  const { facts, host, admitted, created } = evidence;
  const [end] = filterByType(facts, "coordination.terminal");
  if (!end) return [];
  const { delivery, steps } = end.payload;
  const toldRuns = host.runs.filter(
    ({ isDelivery, ending }) => isDelivery && ending?.outcome === "completed",
  );
  const words = `${steps.completed} of ${steps.total} steps completed`;
  const askedKeys = [...host.asked.keys()].filter(isOfOwner);
  const isBroken = {
    "the owner was told more than once": toldRuns.length > 1,
    "delivered, and the owner was not told": delivery === "delivered" && toldRuns.length !== 1,
    "not delivered, and the owner was told": delivery === "not_delivered" && toldRuns.length !== 0,
    "the end does not say whether the owner was told": delivery === undefined,
    "the owner was told wrong": toldRuns.some(({ order }) => !order.message.includes(words)),
    // The agent of a step is told by a turn of its session, which ends with its attempt.
    "the owner's turn was cancelled": !created.parent && host.cancels.some(({ key }) => isOfOwner(key)),
    "the owner was tried too often": askedKeys.length > (admitted.get("@delivery")?.retryBudget ?? 0) + 1,
  };
  const problems = Object.entries(isBroken).flatMap(([problem, isSo]) => (isSo ? [problem] : []));
  return delivery === "unknown" && !isCutOff(evidence)
    ? [...problems, ...checkUnknown(facts, host.runs)]
    : problems;
}

function isOfOwner(key: string): boolean {
  return key.includes(":@delivery:");
}

/**
 * The state is unknown only where the host did not say, or not before the deadline had passed; or where it said so to a gateway
 * that is gone, and no other one can ask it.
 */
function checkUnknown(facts: Evidence["facts"], runs: readonly HostRun[]): string[] {
  const dispatches = filterByType(facts, "step.dispatched").filter(({ nodeId }) => nodeId === "@delivery");
  // A turn of an earlier attempt, which failed, says nothing of the last one.
  const lastKey = `:@delivery:${dispatches.at(-1)?.payload.attempt ?? 0}`;
  const last = runs.findLast(({ key }) => key.endsWith(lastKey));
  const isOfOtherGateway = filterByType(facts, "step.failed").some(
    ({ nodeId, payload: { via, error } }) =>
      nodeId === "@delivery" && via === "deadline" && error.code === "child_lost",
  );
  if (last?.answeredAtMs === undefined || isOfOtherGateway) return [];
  const missed = filterByType(facts, "step.timed_out").find(({ nodeId }) => nodeId === "@delivery");
  const isInTime = last.answeredAtMs < (missed?.payload.deadlineAtMs ?? Infinity);
  return isInTime ? [`unknown, though the host says ${last.ending?.outcome}`] : [];
}
