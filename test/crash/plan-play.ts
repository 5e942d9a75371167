/** Owns: playing a schedule to its end: a new process after each death, over the same ledger and host. */
import type {
  AgentId,
  CoordinationId,
  IdempotencyKey,
  SessionKey,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { FactEvent, RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { AnswerKind } from "../../src/agents/coordination/contracts/escalation.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createQuestionId } from "../../src/agents/coordination/runtime/questions/question-requests.ts";
import type { ChildReport } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { createFakeClock, waitUntilSettled, type FakeClock } from "../support/fake-clock.ts";
import { SETTINGS } from "../support/fake-clock-host.ts";
import { createMemoryLedger, type MemoryLedger } from "../support/memory-store.ts";
import { planHost, type PlanHost } from "./plan-host.ts";
import {
  startPlanProcess,
  isStoppedSoon,
  type PlanProcess,
  type PlanProcessDependencies,
} from "./plan-process.ts";
import { PLAN_ID, planOf, stepOf, type ScheduledRequest, type Schedule } from "./plan-schedule.ts";

const ID = PLAN_ID as CoordinationId;
const TIMES = { stepTimeoutMs: 60_000, sweepMs: 60_000, acknowledgeMs: 5_000, escalateMs: 45_000 };
/** A plan that runs longer than that hangs. */
const LONG_MS = 6 * 3_600_000;
/** After the end, for what comes too late. */
const AFTERMATH_MS = 180_000;

/** A request of the schedule with its answer, and the length of the log at both times. */
export interface AnsweredRequest {
  readonly request: ScheduledRequest;
  /** `undefined`: nobody lived to answer. */
  readonly answer?: string;
  /** The events that were there when it was asked for, and when it was answered. */
  readonly askedFrom: number;
  readonly answeredBy: number;
}

export interface PlayedPlan {
  readonly schedule: Schedule;
  readonly events: readonly RunEvent[];
  /** Events of the spawns of its agents, which are not among `events`. Absent: there are none. */
  readonly spawns?: readonly FactEvent[];
  readonly ledger: MemoryLedger;
  readonly host: PlanHost;
  readonly answers: readonly AnsweredRequest[];
  /** When processes ended, but for the last one. */
  readonly deaths: readonly number[];
  /** The clock was set back: times of the host and of the log cannot be compared. */
  readonly hasGoneBack?: boolean;
  /** The clock of one machine was set: timers that were set before fire by the time that has passed. */
  readonly areClocksApart?: boolean;
  /** The problem while it was played. */
  readonly problems: readonly string[];
  /** Port calls of the last process. */
  readonly calls: PlanProcess["calls"];
}

interface Stage {
  readonly schedule: Schedule;
  readonly clock: FakeClock;
  readonly ledger: MemoryLedger;
  readonly host: PlanHost;
  readonly dependencies: PlanProcessDependencies;
  readonly problems: string[];
  readonly deaths: number[];
  readonly answers: AnsweredRequest[];
  process: PlanProcess;
  started: number;
}

export async function playPlan(schedule: Schedule): Promise<PlayedPlan> {
  const stage = stageOf(schedule);
  const { clock, ledger, host, problems, deaths, answers } = stage;
  const startMs = clock.now();
  await bootStage(stage);
  await submitUntilHeard(stage);
  for (const request of schedule.asked) {
    await goOnUntil(stage, startMs + request.afterMs);
    answers.push(await ask(stage, request));
  }
  await goOnUntil(stage, startMs + LONG_MS, () => hasEnded(ledger));
  await goOnUntil(stage, clock.now() + AFTERMATH_MS);
  const calls = { ...stage.process.calls };
  await stopLast(stage);
  const events = ledger.events().flat();
  const { problems: damages } = await verifyLedger(ledger.open(clock));
  problems.push(...damages.map(({ message }) => `verify: ${message}`));
  return { schedule, events, ledger, host, answers, deaths, problems, calls };
}

function stageOf(schedule: Schedule): Stage {
  const clock = createFakeClock();
  const ledger = createMemoryLedger();
  const problems: string[] = [];
  const host = planHost({
    clock,
    mannerOf: schedule.mannerOf,
    isIntended: (key) => isDispatched(ledger, key),
    report: (session, report) => reportWhileAlive(stage, session, report),
  });
  const { concurrency, queueMax, perAgentMax } = schedule.lanes;
  const caps = perAgentMax === undefined ? {} : { perAgentMax };
  const dependencies: PlanProcessDependencies = {
    clock,
    ledger,
    runner: host.runner,
    ruler: schedule.ruler,
    settings: { ...SETTINGS, ...TIMES, ...caps },
    lanes: { control: 1, data: concurrency, escalation: 1, queueMax, agingMs: 60_000, ...caps },
    problem: (subject) => problems.push(subject),
  };
  const process = startPlanProcess(dependencies, schedule.crashes[0]);
  const stage: Stage = {
    schedule,
    clock,
    ledger,
    host,
    dependencies,
    problems,
    deaths: [],
    answers: [],
    process,
    started: 1,
  };
  return stage;
}

function isDispatched({ runs }: MemoryLedger, key: IdempotencyKey): boolean {
  const text = `"idempotencyKey":${JSON.stringify(key)}`;
  return (runs.get(ID)?.events ?? []).some(
    (event) => event.includes('"step.dispatched"') && event.includes(text),
  );
}

function hasEnded({ runs }: MemoryLedger): boolean {
  const run = runs.get(ID);
  return run !== undefined && run.summary.status !== "running";
}

async function bootStage(stage: Stage): Promise<void> {
  const { process } = stage;
  await Promise.race([process.coordinator.start(), process.over]);
  await reviveStage(stage);
}

/** Nobody helps but by starting the next process. */
async function reviveStage(stage: Stage): Promise<void> {
  await waitUntilSettled();
  if (stage.process.isStopping()) await stage.process.over;
  while (stage.process.isOver()) {
    const { schedule, clock, host, deaths } = stage;
    deaths.push(clock.now());
    host.processDied();
    await clock.advance(schedule.crashes[stage.started - 1]?.downMs ?? 0);
    stage.process = startPlanProcess(stage.dependencies, schedule.crashes[stage.started]);
    stage.started += 1;
    await Promise.race([stage.process.coordinator.start(), stage.process.over]);
    await waitUntilSettled();
    if (stage.process.isStopping()) await stage.process.over;
  }
}

/** Lets time pass until then, or until it is enough. */
async function goOnUntil(
  stage: Stage,
  untilMs: number,
  isEnough: () => boolean = () => false,
): Promise<void> {
  const { clock } = stage;
  await reviveStage(stage);
  while (clock.now() < untilMs && !isEnough()) {
    const next = clock.nextAtMs;
    await clock.advance(Math.max(0, Math.min(next ?? untilMs, untilMs) - clock.now()));
    if (stage.process.isOver() || stage.process.isStopping()) await reviveStage(stage);
  }
}

function callWhileAlive<T>(
  { process }: Stage,
  work: (process: PlanProcess) => Promise<T>,
): Promise<T | undefined> {
  return Promise.race([work(process).catch(() => undefined), process.over.then(() => undefined)]);
}

/** Whoever submits a plan and hears nothing submits it again. */
async function submitUntilHeard(stage: Stage): Promise<void> {
  const submission = { plan: stage.schedule.plan, ownerAgent: "main" as AgentId };
  for (let tries = 1; tries <= 10; tries += 1) {
    const answer = await callWhileAlive(stage, ({ coordinator }) => coordinator.submitPlan(submission));
    if (answer?.kind === "refused") throw new Error(`a bad plan: ${JSON.stringify(answer.problems)}`);
    await reviveStage(stage);
    if (answer) return;
  }
  stage.problems.push("the plan could not be submitted");
}

async function ask(stage: Stage, question: ScheduledRequest): Promise<AnsweredRequest> {
  const { subject, stepId } = question;
  const request = {
    coordinationId: ID,
    by: "operator" as const,
    ...(stepId && { stepId: stepId as never }),
  };
  const other = planOf([stepOf("other")]);
  const askedFrom = countEvents(stage);
  const statement = await callWhileAlive<{ readonly kind: string }>(stage, ({ coordinator }) => {
    if (subject === "cancel") return coordinator.cancel(request);
    if (subject === "retry") return coordinator.retry(request);
    if (subject === "approve" || subject === "deny" || subject === "answer")
      return answer(coordinator, subject);
    const plan = subject === "submit again" ? stage.schedule.plan : other;
    return coordinator.submitPlan({ plan, ownerAgent: "main" as AgentId });
  });
  const answeredBy = countEvents(stage);
  await reviveStage(stage);
  return { request: question, askedFrom, answeredBy, ...(statement && { answer: statement.kind }) };
}

function countEvents({ ledger: { runs } }: Stage): number {
  return runs.get(ID)?.events.length ?? 0;
}

/** To the question that was asked first. */
async function answer(coordinator: Coordinator, answerKind: AnswerKind): Promise<{ readonly kind: string }> {
  const open = (await coordinator.view(ID))?.escalations.find(({ closed }) => !closed);
  if (!open) return { kind: "nothing" };
  return coordinator.answer({
    questionId: createQuestionId(ID, open.escalationId),
    answer: answerKind,
    ...(answerKind === "answer" && { text: '{"n":7}' }),
    by: { kind: "operator" },
    through: "cli",
  });
}

/** The tool of an agent finds the process that lives now. */
async function reportWhileAlive(
  stage: Stage,
  session: SessionKey,
  report: ChildReport,
): Promise<string | undefined> {
  if (stage.process.isOver()) return undefined;
  return (await callWhileAlive(stage, ({ coordinator }) => coordinator.report(session, report)))?.kind;
}

async function stopLast(stage: Stage): Promise<void> {
  const { process, problems, clock, ledger } = stage;
  if (!(await isStoppedSoon(process.coordinator))) problems.push("the last stop() waits for something");
  if (process.timers() > 0) problems.push(`${process.timers()} timers are left after the last stop()`);
  const length = ledger.runs.get(ID)?.events.length;
  await clock.advance(AFTERMATH_MS);
  if (ledger.runs.get(ID)?.events.length !== length) problems.push("something was written after stop()");
}
