/** Owns: the life of every step by the log alone: attempts, retries, dependencies, deadlines and the one end (D1 to D6). */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { EventCheck } from "./check-log.ts";
import type { FactOf, PayloadOf } from "./journal.ts";
import { listBroken } from "./list-broken.ts";
import type { World } from "./world.ts";

export interface StepModel {
  readonly spec: PayloadOf<"step.admitted">;
  phase: "waiting" | "at work" | "held" | "ended";
  outcome?: "completed" | "failed" | "timed_out" | "cancelled" | "skipped";
  attempt: number;
  deadlineAtMs: number;
  retryAtMs?: number;
  granted: number;
  revised: number;
  child?: string;
  confidence?: number;
  hasReported?: boolean;
  isCancelled?: true;
}

interface RunModel {
  readonly created: PayloadOf<"coordination.created">;
  readonly steps: Map<string, StepModel>;
  hasEnded: boolean;
  isCancelled: boolean;
  /** A step failed for good while the plan stops at the first failure. */
  hasFailedFast: boolean;
}

const timeOf = ({ timestamp }: RunEvent): number => Date.parse(timestamp);
const DELIVERY = "@delivery";
/** Deadlines are kept by timers; a process that is at work is not later than that. */
const PATIENCE_MS = 90_000;

interface Books {
  readonly world: World;
  readonly runs: Map<string, RunModel>;
  readonly keys: Set<string>;
  readonly children: Map<string, string>;
}

export function createStepCheck(world: World): EventCheck {
  const books: Books = { world, runs: new Map(), keys: new Set(), children: new Map() };
  return {
    see: (event) => seeEvent(books, event),
    rest: () => checkOverdue(books),
  };
}

function seeEvent(books: Books, event: RunEvent): string[] {
  if (event.type === "coordination.created") {
    const { payload: created } = event;
    const run = { created, steps: new Map(), hasEnded: false, isCancelled: false, hasFailedFast: false };
    const isTwice = books.runs.has(event.runId);
    books.runs.set(event.runId, run);
    return isTwice ? ["D2: created twice"] : [];
  }
  const run = books.runs.get(event.runId);
  if (!run) return ["L2: something comes before the creation"];
  const after = run.hasEnded && !MAY_FOLLOW.test(event.type) ? [`D5: ${event.type} after the end`] : [];
  return [...after, ...seeFact(books, run, event)];
}

/** A bill may come after the end, and the projection of the end itself. */
const MAY_FOLLOW = /^(?:usage\.recorded$|run\.|core\.|node\.|interrupt\.|agent\.|runOrchestrator\.)/u;

function seeFact(books: Books, run: RunModel, event: RunEvent): string[] {
  switch (event.type) {
    case "step.admitted":
      return admitStep(run, event);
    case "step.dispatched":
      return dispatchStep(books, run, event);
    case "step.acknowledged":
      return acknowledgeStep(books, run, event);
    case "result.withheld":
      return stateConfidence(run, event);
    case "result.held":
      return holdResult(run, event);
    case "result.revised":
      return reviseResult(run, event);
    case "step.completed":
    case "step.failed":
    case "step.timed_out":
      return endAttempt(books, run, event);
    case "step.outcome_refused":
      return refuseOutcome(run, event);
    case "step.retry_granted":
      return grantRetry(run, event);
    case "step.skipped":
      return skipStep(run, event);
    case "coordination.cancel_requested":
      return requestCancel(run, event);
    case "coordination.terminal":
      return endRun(run, event);
    default:
      return [];
  }
}

function admitStep({ steps, created }: RunModel, { payload }: FactOf<"step.admitted">): string[] {
  if (steps.has(payload.stepId)) return [`D2: ${payload.stepId} is admitted twice`];
  const carried = payload.carried !== undefined;
  steps.set(payload.stepId, {
    spec: payload,
    phase: carried ? "ended" : "waiting",
    attempt: 0,
    deadlineAtMs: Infinity,
    granted: 0,
    revised: 0,
    ...(carried && { outcome: "completed" as const }),
  });
  const budget = created.failurePolicy.retryBudget;
  const isOver = payload.planned && payload.stepId !== DELIVERY && payload.retryBudget > budget;
  return isOver ? [`D4: ${payload.stepId} has a budget of ${payload.retryBudget}`] : [];
}

function dispatchStep(books: Books, run: RunModel, event: FactOf<"step.dispatched">): string[] {
  const { stepId, attempt, idempotencyKey, deadlineAtMs } = event.payload;
  const step = run.steps.get(stepId);
  if (!step) return [`D1: ${stepId} was never admitted`];
  const problems = [
    ...checkAttempt(books, step, event),
    ...checkTimes(books, run, event),
    ...(step.spec.planned ? checkStops(run, step, timeOf(event)) : []),
  ];
  books.keys.add(idempotencyKey);
  step.attempt = attempt;
  step.hasReported = false;
  delete step.confidence;
  step.phase = "at work";
  step.deadlineAtMs = deadlineAtMs;
  delete step.retryAtMs;
  return problems;
}

function checkAttempt({ keys }: Books, step: StepModel, event: FactOf<"step.dispatched">): string[] {
  const { stepId, attempt, idempotencyKey } = event.payload;
  const { spec, granted, revised } = step;
  return listBroken({
    [`D2: ${idempotencyKey} is not the key`]: idempotencyKey !== `${event.runId}:${stepId}:${attempt}`,
    [`D2: ${idempotencyKey} is dispatched twice`]: keys.has(idempotencyKey),
    [`D3: ${stepId}:${attempt} follows ${step.attempt}`]: attempt !== step.attempt + 1,
    [`D3: ${stepId}:${attempt} begins while it is ${step.phase}`]: step.phase !== "waiting",
    [`D4: ${stepId}:${attempt} with a budget of ${spec.retryBudget}`]:
      attempt > spec.retryBudget + 1 + granted + revised,
  });
}

function checkTimes({ world }: Books, run: RunModel, event: FactOf<"step.dispatched">): string[] {
  const { stepId, attempt, deadlineAtMs } = event.payload;
  const step = run.steps.get(stepId);
  const nowMs = timeOf(event);
  const dueAtMs = step?.granted === 0 ? (step.retryAtMs ?? 0) : 0;
  const isOfPlan = step?.spec.planned !== undefined && stepId !== DELIVERY;
  const limitMs = Math.min(nowMs + (step?.spec.timeoutMs ?? 0), isOfPlan ? planDeadlineOf(run) : Infinity);
  return listBroken({
    [`D4: ${stepId}:${attempt} begins before its time`]: nowMs < dueAtMs && !world.hasGoneBack,
    [`D1: ${stepId} has its deadline too late`]: deadlineAtMs > limitMs,
  });
}

/** D5, D6: nothing begins that is stopped, or whose dependencies have not completed. */
function checkStops(run: RunModel, { spec, isCancelled }: StepModel, nowMs: number): string[] {
  const { stepId, planned } = spec;
  if (stepId === DELIVERY || !planned) return [];
  const { dependsOn, fanIn } = planned;
  const met = dependsOn.filter((name) => run.steps.get(name)?.outcome === "completed").length;
  return listBroken({
    [`D5: ${stepId} begins after it was cancelled`]: run.isCancelled || isCancelled === true,
    [`D5: ${stepId} begins after the plan failed fast`]: run.hasFailedFast,
    [`D6: ${stepId} begins with ${met} of ${fanIn}`]: met < fanIn,
    [`D1: ${stepId} begins after the plan's deadline`]: nowMs >= planDeadlineOf(run),
  });
}

function planDeadlineOf({ created }: RunModel): number {
  return created.plan?.deadlineAtMs ?? Infinity;
}

type StepAttempt = { readonly stepId: string; readonly attempt: number };

/** D3: only the newest attempt, and only while it has no outcome. */
function checkCurrent(
  { steps }: RunModel,
  { stepId, attempt }: StepAttempt,
  phases: readonly StepModel["phase"][],
): string[] {
  const step = steps.get(stepId);
  if (!step) return [`D1: ${stepId} was never admitted`];
  if (attempt !== step.attempt) return [`D3: ${stepId}:${attempt} is not the attempt ${step.attempt}`];
  return phases.includes(step.phase) ? [] : [`D1, D3: ${stepId}:${attempt} is ${step.phase}`];
}

function acknowledgeStep(books: Books, run: RunModel, event: FactOf<"step.acknowledged">): string[] {
  const { stepId, childSessionKey } = event.payload;
  const problems = checkCurrent(run, event.payload, ["at work"]);
  const step = run.steps.get(stepId);
  if (!step) return problems;
  const holder = books.children.get(childSessionKey);
  const name = `${event.runId}/${stepId}`;
  // A child that revises its result is there again. A delivery is told to whoever owns the plan, which may be such a child.
  if (holder !== undefined && holder !== name && stepId !== DELIVERY)
    problems.push(`H3: ${childSessionKey} works on ${holder} and ${name}`);
  if (stepId !== DELIVERY) books.children.set(childSessionKey, name);
  step.child = childSessionKey;
  return problems;
}

/** The agent said how sure it is, with words that were kept back. */
function stateConfidence(run: RunModel, { payload }: FactOf<"result.withheld">): string[] {
  const step = run.steps.get(payload.stepId);
  if (step && payload.confidence !== undefined) step.confidence = payload.confidence;
  return [];
}

function holdResult(run: RunModel, event: FactOf<"result.held">): string[] {
  const problems = checkCurrent(run, event.payload, ["at work"]);
  const step = run.steps.get(event.payload.stepId);
  if (step) step.phase = "held";
  return problems;
}

function reviseResult(run: RunModel, event: FactOf<"result.revised">): string[] {
  const problems = checkCurrent(run, event.payload, ["held"]);
  const step = run.steps.get(event.payload.stepId);
  if (!step) return problems;
  step.phase = "waiting";
  step.revised += 1;
  if (event.payload.revision !== step.revised) problems.push("G1: revisions are not counted one by one");
  if (step.revised > (step.spec.gate?.revisionsMax ?? 0)) problems.push("G1: revised too often");
  return problems;
}

type OutcomeFact = FactOf<"step.completed"> | FactOf<"step.failed"> | FactOf<"step.timed_out">;

function endAttempt({ world }: Books, run: RunModel, event: OutcomeFact): string[] {
  const { stepId } = event.payload;
  const step = run.steps.get(stepId);
  const problems = checkCurrent(run, event.payload, ["at work", "held"]);
  if (!step) return problems;
  if (event.type === "step.completed") problems.push(...checkRelease(step, event));
  if (event.type === "step.timed_out") problems.push(...checkTimeOut(world, step, event));
  const { retryAtMs, escalated } = event.type === "step.completed" ? {} : event.payload;
  if (retryAtMs !== undefined) problems.push(...checkRetry(step, event, retryAtMs));
  if (retryAtMs !== undefined || escalated) {
    step.phase = "waiting";
    if (retryAtMs !== undefined) step.retryAtMs = retryAtMs;
    return problems;
  }
  step.phase = "ended";
  step.outcome = outcomeOf(event);
  if (isFailingFast(run, step)) run.hasFailedFast = true;
  return problems;
}

function isFailingFast({ created }: RunModel, { outcome, spec }: StepModel): boolean {
  const hasFailed = outcome === "failed" || outcome === "timed_out";
  const isOfPlan = spec.planned !== undefined && spec.stepId !== DELIVERY;
  return hasFailed && isOfPlan && created.failurePolicy.timeoutPolicy === "fail_fast";
}

/** A timer that was set before the clock of its machine was put back fires by the time that has passed. */
function checkTimeOut(world: World, step: StepModel, event: FactOf<"step.timed_out">): string[] {
  const isByDeadline = event.payload.via === "deadline" && !world.areClocksApart;
  const { stepId, deadlineAtMs } = event.payload;
  return listBroken({
    [`D1: ${stepId} timed out before its deadline`]: isByDeadline && timeOf(event) < step.deadlineAtMs,
    [`D1: ${stepId} timed out at another deadline`]: deadlineAtMs !== step.deadlineAtMs,
  });
}

/** After these the owner has seen nothing for sure. */
const UNSENT: ReadonlySet<string> = new Set(["spawn_refused", "spawn_not_confirmed", "child_failed"]);

/** After these another attempt could only fail again, or people have refused the result. */
const FINAL: ReadonlySet<string> = new Set(["input_unavailable", "withheld"]);

function outcomeOf(event: RunEvent): NonNullable<StepModel["outcome"]> {
  if (event.type === "step.completed") return "completed";
  if (event.type === "step.timed_out") return "timed_out";
  return event.type === "step.failed" && event.payload.cancelled ? "cancelled" : "failed";
}

/** G1: a result that has checks, or was held, counts only by its gate. */
function checkRelease(step: StepModel, { payload }: FactOf<"step.completed">): string[] {
  const name = `${payload.stepId}:${payload.attempt}`;
  const isByGate = payload.via === "gate";
  if (step.phase === "held") return isByGate ? [] : [`G1: ${name} was held and counts`];
  if (isByGate) return [`G1: ${name} was never held`];
  const why = findReasonToHold(step);
  return why === undefined ? [] : [`G1: ${name} counts ${why}`];
}

function findReasonToHold({ spec, confidence, hasReported }: StepModel): string | undefined {
  const { gate } = spec;
  if (!gate) return undefined;
  if ((gate.checks ?? []).length > 0) return "without its checks";
  if (confidence !== undefined) return confidence < gate.threshold ? `with ${confidence}` : undefined;
  const isSilent = gate.requireConfidence === true && !hasReported;
  return isSilent ? "without the confidence that is demanded" : undefined;
}

/** D4: the wait doubles from attempt to attempt, with a jitter of half of it; and what cannot do better is not tried again. */
function checkRetry({ spec, attempt }: StepModel, event: OutcomeFact, retryAtMs: number): string[] {
  const base = spec.planned?.backoffMs ?? 0;
  const waitMs = retryAtMs - timeOf(event);
  const maxMs = base * 2 ** Math.max(0, attempt - 1);
  const isWithin = waitMs >= Math.min(maxMs, 60_000) / 2 - 1 && waitMs <= maxMs + 1;
  const code = event.type === "step.failed" ? event.payload.error.code : "";
  return listBroken({
    [`D4: ${spec.stepId}:${attempt} waits ${waitMs} of ${maxMs}`]: !isWithin,
    [`D4: ${spec.stepId} is tried again after ${code}`]: FINAL.has(code),
    [`the owner may have been told, and is told again after ${code}`]:
      spec.stepId === DELIVERY && !UNSENT.has(code),
  });
}

function refuseOutcome(run: RunModel, { payload }: FactOf<"step.outcome_refused">): string[] {
  const step = run.steps.get(payload.stepId);
  if (!step) return [`D3: ${payload.stepId} is not known`];
  const isStale = payload.attempt < step.attempt;
  if (isStale !== (payload.because === "stale_attempt"))
    return [`D3: ${payload.stepId}:${payload.attempt} is refused as ${payload.because}`];
  const isOpen = step.phase === "at work" && payload.because === "step_ended";
  return isOpen ? [`D3: ${payload.stepId}:${payload.attempt} has not ended`] : [];
}

function grantRetry(run: RunModel, { payload }: FactOf<"step.retry_granted">): string[] {
  const step = run.steps.get(payload.stepId);
  if (step?.phase !== "waiting")
    return [`D4: a retry of ${payload.stepId}, which is ${step?.phase ?? "unknown"}`];
  step.granted += 1;
  return [];
}

function skipStep(run: RunModel, { payload }: FactOf<"step.skipped">): string[] {
  const step = run.steps.get(payload.stepId);
  if (step?.phase !== "waiting")
    return [`D1: ${payload.stepId} is skipped and is ${step?.phase ?? "unknown"}`];
  step.phase = "ended";
  step.outcome = "skipped";
  return [];
}

function requestCancel(run: RunModel, { payload }: FactOf<"coordination.cancel_requested">): string[] {
  const step = payload.stepId && run.steps.get(payload.stepId);
  if (payload.stepId === undefined) run.isCancelled = true;
  if (step) step.isCancelled = true;
  return [];
}

function endRun(run: RunModel, event: FactOf<"coordination.terminal">): string[] {
  const isSecond = run.hasEnded;
  run.hasEnded = true;
  const counted = [...run.steps.values()].filter(
    ({ spec }) => spec.stepId !== DELIVERY && (run.created.origin !== "plan" || spec.planned),
  );
  const count = (outcome: StepModel["outcome"]): number =>
    counted.filter((step) => step.outcome === outcome).length;
  // A step that was skipped after an attempt counts as what became of that.
  const never = counted.filter(({ outcome, attempt }) => outcome === "skipped" && attempt === 0).length;
  const { steps } = event.payload;
  const open = [...run.steps].filter(([, { phase, outcome }]) => phase !== "ended" && outcome === undefined);
  const isBlocked = (step: StepModel): boolean => step.phase === "waiting" && step.attempt > 0;
  return [
    ...(isSecond ? ["D5: a second end"] : []),
    ...open
      .filter(([, step]) => !isBlocked(step))
      .map(([stepId, { phase }]) => `D5: the end while ${stepId} is ${phase}`),
    ...(steps.completed === count("completed") ? [] : [`D5: the end counts ${steps.completed} completed`]),
    ...(steps.total === counted.length ? [] : [`D5: the end counts ${steps.total} steps`]),
    ...((steps.skipped ?? 0) === never ? [] : ["D5: the end counts skipped steps wrong"]),
  ];
}

/** Something failed, or the clock had just been set at a time, which is now unless it is named: then timers may be late. */
export function isDisturbed(world: World, atMs: number = world.clock.now()): boolean {
  const { gateways, jumpsAtMs, areClocksApart } = world;
  const isRecent = jumpsAtMs.some((jumpAtMs) => jumpAtMs <= atMs && atMs - jumpAtMs < PATIENCE_MS);
  return (
    isRecent || areClocksApart || gateways.some(({ life, processes }) => life.isDisturbed || processes > 1)
  );
}

/** Nothing that is at work, or waits for its next attempt, is forgotten. */
function checkOverdue({ world, runs }: Books): string[] {
  if (isDisturbed(world)) return [];
  const nowMs = world.clock.now();
  return [...runs].flatMap(([runId, { steps, hasEnded }]) => {
    if (hasEnded) return [];
    return [...steps.values()].flatMap((step) =>
      step.phase === "at work" && nowMs > step.deadlineAtMs + PATIENCE_MS
        ? [`D1: ${runId}/${step.spec.stepId} is at work long after its deadline`]
        : [],
    );
  });
}
