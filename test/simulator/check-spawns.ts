/** Owns: that every spawn of a model came to what the host was answered, and to what the host knows of the child. */
import type { ChildEnding } from "../../src/agents/coordination/contracts/observation.ts";
import { DELIVERY_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { HostRun } from "../crash/plan-host.ts";
import { isDisturbed } from "./check-steps.ts";
import type { SpawnPromise } from "./promises.ts";
import type { SpawnedChild } from "./spawn-host.ts";
import type { World } from "./world.ts";

interface Fate {
  readonly outcome: "completed" | "failed" | "timed_out" | "cancelled" | "skipped";
  readonly event: RunEvent;
}

export function checkSpawns(world: World): string[] {
  const fates = collectFates(world);
  return world.promises.spawns.flatMap((promise) => [
    ...checkAdmission(world, promise, fates),
    ...checkChild(world, promise, fates),
  ]);
}

function collectFates({ journal }: World): Map<string, Fate> {
  const fates = new Map<string, Fate>();
  for (const event of journal.events) {
    const outcome = outcomeOf(event);
    if (outcome && "stepId" in event.payload)
      fates.set(`${event.runId}:${event.payload.stepId}`, { outcome, event });
  }
  return fates;
}

function outcomeOf(event: RunEvent): Fate["outcome"] | undefined {
  if (event.type === "step.completed") return "completed";
  if (event.type === "step.timed_out") return "timed_out";
  if (event.type === "step.skipped") return "skipped";
  if (event.type !== "step.failed") return undefined;
  return event.payload.cancelled ? "cancelled" : "failed";
}

/** Everything that the host was answered is in the ledger, and came to an end. */
function checkAdmission(world: World, promise: SpawnPromise, fates: ReadonlyMap<string, Fate>): string[] {
  const { journal } = world;
  const { admitted, refusalNoted, toolCallId } = promise;
  if (!admitted) return checkRefusedSpawn(world, promise);
  const name = `${admitted.coordinationId}:${admitted.stepId}`;
  const isThere = journal
    .eventsOf(admitted.coordinationId)
    .some((event) => event.type === "step.admitted" && event.payload.call.toolCallId === toolCallId);
  if (!isThere) return [`D1: ${name} was admitted and is not in the log`];
  const fate = fates.get(name);
  if (!fate) return [`D5: ${name} never ended`];
  const isRefused = fate.outcome === "failed" || fate.outcome === "cancelled";
  return refusalNoted && !isRefused ? [`${name} was refused and is ${fate.outcome}`] : [];
}

/** No bound on spawns is near in these schedules, so that only work that has stopped, was cancelled or given up may spawn nothing more. */
function checkRefusedSpawn(world: World, promise: SpawnPromise): string[] {
  const { journal, hasGoneBack } = world;
  const { refused, source, answeredBy, answeredAtMs = 0 } = promise;
  if (!refused?.isCalm) return [];
  // Nobody can tell which deadlines a clock that was put back had passed before.
  const nowMs = hasGoneBack ? Infinity : answeredAtMs;
  const before = journal.events.slice(0, answeredBy);
  const runIds = new Set(before.map(({ runId }) => runId));
  const isStopped = [...runIds].some(
    (runId) =>
      hasSession(journal, runId, source) &&
      hasStopped(
        before.filter((event) => event.runId === runId),
        nowMs,
      ),
  );
  const isStopRefusal = refused.code === "PLAN_STOPPED";
  if (isStopRefusal && (isStopped || isForNobody(before, source))) return [];
  if (refused.code === "BUDGET_SPENT" && isBudgetSpent(before, journal, source)) return [];
  return [`D1: a spawn of ${source} was refused: ${refused.reason}`];
}

/** True when the last attempt of a session has failed, timed out or was cancelled, or that of one that it was spawned for. */
function isForNobody(before: readonly RunEvent[], session: string): boolean {
  const attempt = before.findLast((event) => sessionOf(event) === session);
  if (attempt?.type !== "step.dispatched" && attempt?.type !== "step.acknowledged") return false;
  const { runId, payload } = attempt;
  const events = before.filter((event) => event.runId === runId);
  const isOver = events.some(
    ({ type, payload: end }) =>
      (type === "step.failed" || type === "step.timed_out") &&
      end.stepId === payload.stepId &&
      end.attempt === payload.attempt,
  );
  const admitted = events.find(
    ({ type, payload: step }) => type === "step.admitted" && step.stepId === payload.stepId,
  );
  const source = admitted?.type === "step.admitted" ? admitted.payload.sourceSession : session;
  return isOver || (source !== session && isForNobody(before, source));
}

function sessionOf({ type, payload }: RunEvent): string | undefined {
  if (type === "step.dispatched") return payload.targetSession;
  return type === "step.acknowledged" ? payload.childSessionKey : undefined;
}

/** True for a session of a run with a budget for spawns: what is left of it is not counted again here. */
function isOfBudget(before: readonly RunEvent[], journal: World["journal"], session: string): boolean {
  return before.some((event) => {
    const isLimited =
      (event.type === "coordination.created" && event.payload.plan?.budget?.spawns !== undefined) ||
      (event.type === "step.admitted" && event.payload.planned?.budget?.spawns !== undefined);
    return isLimited && hasSession(journal, event.runId, session);
  });
}

function isBudgetSpent(before: readonly RunEvent[], journal: World["journal"], session: string): boolean {
  return isOfBudget(before, journal, session) || hasSpentSpawns(before, journal, session);
}

/** True for a session of a coordination of spawns that has as many as the operator let it have when it was opened. */
function hasSpentSpawns(before: readonly RunEvent[], journal: World["journal"], session: string): boolean {
  return before.some(
    ({ type, runId, payload }) =>
      type === "coordination.created" &&
      hasSession(journal, runId, session) &&
      countAdmitted(before, runId) >= (payload.budget?.spawns ?? Infinity),
  );
}

function countAdmitted(events: readonly RunEvent[], id: string): number {
  return events.filter(({ type, runId }) => type === "step.admitted" && runId === id).length;
}

/** True for a run that was cancelled, is at its deadline, has failed fast, or whose question about itself was not approved. */
function hasStopped(events: readonly RunEvent[], nowMs: number): boolean {
  const questions = events.flatMap((event) =>
    event.type === "coordination.escalated" && event.payload.stepId === undefined
      ? [event.payload.escalationId]
      : [],
  );
  const isFast = events.some(isFailingFast);
  return events.some(
    (event) =>
      event.type === "coordination.cancel_requested" ||
      isAtDeadline(event, nowMs) ||
      (isFast && isFailureOfPlan(event)) ||
      isStoppingAnswer(event, questions),
  );
}

function isFailingFast({ type, payload }: RunEvent): boolean {
  return type === "coordination.created" && payload.failurePolicy.timeoutPolicy === "fail_fast";
}

function isAtDeadline({ type, payload }: RunEvent, nowMs: number): boolean {
  return type === "coordination.created" && nowMs >= (payload.plan?.deadlineAtMs ?? Infinity);
}

function isFailureOfPlan({ type, payload }: RunEvent): boolean {
  return (type === "step.failed" || type === "step.timed_out") && !payload.stepId.startsWith("@");
}

function isStoppingAnswer({ type, payload }: RunEvent, questions: readonly string[]): boolean {
  return (
    type === "escalation.closed" &&
    questions.includes(payload.escalationId) &&
    !GOES_ON.has(payload.resolution)
  );
}

/** A plan goes on after a question about itself that was closed so. */
const GOES_ON: ReadonlySet<string> = new Set(["approved", "continued"]);

function hasSession(journal: World["journal"], runId: string, session: string): boolean {
  return journal
    .eventsOf(runId)
    .some(
      (event) =>
        (event.type === "coordination.created" && event.payload.ownerSession === session) ||
        (event.type === "step.dispatched" && event.payload.targetSession === session) ||
        (event.type === "step.acknowledged" && event.payload.childSessionKey === session),
    );
}

/** A child that the host made has one step, which ended as the host knows that the child did. */
function checkChild(
  world: World,
  { child, confirmed }: SpawnPromise,
  fates: ReadonlyMap<string, Fate>,
): string[] {
  if (!child) return [];
  // A child that revises its result is acknowledged again, and one that planned is told how its plan ended.
  const acknowledged = world.journal
    .filter("step.acknowledged")
    .filter(
      ({ payload }) => payload.childSessionKey === child.session && payload.stepId !== DELIVERY_STEP_ID,
    );
  const holders = [
    ...new Map(acknowledged.map((fact) => [`${fact.runId}:${fact.payload.stepId}`, fact])).values(),
  ];
  if (holders.length > 1) return [`H3: ${child.session} has ${holders.length} steps`];
  const [holder] = holders;
  if (!holder) return confirmed ? [`H3: ${child.session} was confirmed and has no step`] : [];
  const { stepId } = holder.payload;
  if (confirmed && confirmed.stepId !== stepId) return [`H3: ${child.session} was confirmed as another step`];
  const fate = fates.get(`${holder.runId}:${stepId}`);
  return fate ? checkFate(world, child, fate) : [];
}

function checkFate(world: World, child: SpawnedChild, { outcome, event }: Fate): string[] {
  if (world.hasGoneBack || isExcused(world, { outcome, event })) return [];
  if (outcome === "failed" && hasFailedTelling(world, child)) return [];
  const turn = findRevisingTurn(world, event);
  const { ending } = turn ?? child;
  const hasEnded = turn ? hasTurnEndedSo(turn, outcome, event) : hasEndedSo(child, outcome, event);
  return hasEnded ? [] : [describeFate(event.runId, child, { outcome, ending })];
}

/** Nobody asks how the child ended where the step was stopped, ruled on or lost, or the turn in which it was to revise refused. */
function isExcused(world: World, { outcome, event }: Fate): boolean {
  if (outcome === "cancelled" || outcome === "skipped") return true;
  return isRuled(event) || isLost(world, event) || (isRefusedTurn(event) && !findRevisingTurn(world, event));
}

function describeFate(
  runId: string,
  { session }: SpawnedChild,
  { outcome, ending }: Pick<Fate, "outcome"> & { readonly ending: ChildEnding | undefined },
): string {
  return `${runId}: ${session} is ${outcome} and was ${ending?.outcome ?? "at work"}`;
}

/** A turn in which a child revises its result is one that the gateway began: its host knows how it ended. */
function findRevisingTurn({ gateways }: World, event: RunEvent): HostRun | undefined {
  if (!("attempt" in event.payload && "via" in event.payload)) return undefined;
  const { stepId, attempt, via } = event.payload;
  if (attempt === 1 || via !== "runner") return undefined;
  const turnKey = `${event.runId}:${stepId}:${attempt}`;
  return gateways.flatMap(({ agents }) => agents.runs).find(({ key }) => key === turnKey);
}

/** The turn failed in which the child was told the answer to its question. */
function hasFailedTelling({ gateways }: World, { session }: SpawnedChild): boolean {
  return gateways
    .flatMap(({ agents }) => agents.runs)
    .some(
      ({ key, order, ending }) =>
        key.endsWith(":told") && order.childSessionKey === session && ending?.outcome === "failed",
    );
}

/** The host did not begin the turn in which the child was to revise its result. */
function isRefusedTurn(event: RunEvent): boolean {
  if (event.type !== "step.failed") return false;
  const { attempt, via, error } = event.payload;
  return attempt > 1 && via === "runner" && error.code === "spawn_refused";
}

/** A turn that ended well may have reported a failure, or outputs that break the contract. */
function hasTurnEndedSo({ ending, forgottenAtMs }: HostRun, outcome: string, event: RunEvent): boolean {
  const code = event.type === "step.failed" ? event.payload.error.code : undefined;
  if (code === "child_lost") return forgottenAtMs !== undefined;
  if (code === "reported_failed" || code === "output_invalid") return ending?.outcome === "completed";
  return ending?.outcome === outcome;
}

function hasEndedSo(
  { ending, endedAtMs = Infinity }: SpawnedChild,
  outcome: string,
  event: RunEvent,
): boolean {
  return ending?.outcome === outcome && endedAtMs <= Date.parse(event.timestamp);
}

/** A gate failed the result, or the deadline passed. */
function isRuled(event: RunEvent): boolean {
  if (event.type === "step.failed") return event.payload.via === "gate";
  return event.type === "step.timed_out" && event.payload.via === "deadline";
}

/** Words that were kept back and did not come to the disk are lost, and so is a child whose gateway did not come back. */
function isLost(world: World, event: RunEvent): boolean {
  if (event.type !== "step.failed") return false;
  const { code, message } = event.payload.error;
  if (code === "result_lost") return isDisturbed(world);
  return code === "withheld" || (code === "child_lost" && message.includes("which is gone"));
}
