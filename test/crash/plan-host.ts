/**
 * Owns: a host of runs that holds the truth over restarts: which agents it really started, how each ended, what the owner was
 * told. How well it answers is up to the manner of each attempt.
 */
import {
  DELIVERY_STEP_ID,
  type EpochMs,
  type IdempotencyKey,
  type SessionKey,
} from "../../src/agents/coordination/contracts/ids.ts";
import type {
  Cancellation,
  ChildEnding,
  Observation,
} from "../../src/agents/coordination/contracts/observation.ts";
import type {
  AgentRunner,
  Attempt,
  AttemptOrder,
  Start,
} from "../../src/agents/coordination/ports/agent-runner.ts";
import type { ChildReport } from "../../src/agents/coordination/runtime/plans/plan-requests.ts";
import type { FakeClock } from "../support/fake-clock.ts";
import type { Manner } from "./plan-manner.ts";

export interface HostRun {
  readonly key: IdempotencyKey;
  readonly order: AttemptOrder;
  readonly manner: Manner;
  readonly isDelivery: boolean;
  readonly startedAtMs: number;
  /** The step's dispatch was on disk then (D1). */
  readonly wasIntended: boolean;
  /** Which of the runs it is: outputs have it in them. */
  readonly number: number;
  /** The start arrived after the call that brought it. */
  readonly isLate: boolean;
  endedAtMs?: number;
  /** It ended because it was told to stop. */
  isStopped?: true;
  ending?: ChildEnding;
  forgottenAtMs?: number;
  /** When somebody who asked was first told how it ended. */
  answeredAtMs?: number;
  readonly reports: { readonly outputs: object; readonly outcome: ChildReport["outcome"]; answer?: string }[];
  readonly ended: PromiseWithResolvers<void>;
}

export interface PlanHost {
  readonly runner: AgentRunner;
  /** Every real start, in order; one key is there twice only if the host forgot its first run. */
  readonly runs: readonly HostRun[];
  /** How often a start was asked for, by key. */
  readonly asked: ReadonlyMap<IdempotencyKey, number>;
  readonly cancels: readonly { readonly key: IdempotencyKey; readonly atMs: number }[];
  readonly refused: ReadonlySet<IdempotencyKey>;
  /** Words on their way when the process died never arrive. */
  processDied(): void;
}

export interface PlanHostDependencies {
  readonly clock: FakeClock;
  readonly mannerOf: (key: string, isDelivery: boolean) => Manner;
  readonly isIntended: (key: IdempotencyKey) => boolean;
  /** An agent calls the tool to report. */
  readonly report: (session: SessionKey, report: ChildReport) => Promise<string | undefined>;
  /** Puts other words into what is said in prose; absent: nothing is changed. */
  readonly spoil?: (text: string) => string;
}

interface Host extends PlanHostDependencies {
  readonly runs: HostRun[];
  readonly byKey: Map<IdempotencyKey, HostRun>;
  readonly asked: Map<IdempotencyKey, number>;
  readonly questions: Map<IdempotencyKey, number>;
  readonly pending: Map<IdempotencyKey, () => void>;
  readonly cancels: { readonly key: IdempotencyKey; readonly atMs: number }[];
  readonly refused: Set<IdempotencyKey>;
}

const OTHER = { childSessionKey: "agent:main:subagent:other" as SessionKey, childRunId: "other" };
const waitForever = <T>(): Promise<T> => new Promise(() => undefined);

export function planHost(dependencies: PlanHostDependencies): PlanHost {
  const host: Host = {
    ...dependencies,
    runs: [],
    byKey: new Map(),
    asked: new Map(),
    questions: new Map(),
    pending: new Map(),
    cancels: [],
    refused: new Set(),
  };
  return {
    ...host,
    runner: {
      start: (order) => start(host, order),
      observe: (attempt) => observe(host, attempt),
      follow: (attempt, signal) => follow(host, attempt, signal),
      cancel: (attempt) => cancel(host, attempt),
    },
    processDied: () => {
      for (const forget of host.pending.values()) forget();
      host.pending.clear();
    },
  };
}

function findManner(host: Host, key: IdempotencyKey): Manner {
  return host.mannerOf(key, key.includes(`:${DELIVERY_STEP_ID}:`));
}

async function start(host: Host, order: AttemptOrder): Promise<Start> {
  const key = order.idempotencyKey;
  const manner = findManner(host, key);
  const tries = (host.asked.get(key) ?? 0) + 1;
  host.asked.set(key, tries);
  const trouble = tries <= manner.troubles || manner.start === "refuses" ? manner.start : "prompt";
  switch (trouble) {
    case "refuses":
      host.refused.add(key);
      return { kind: "refused", message: "not allowed" };
    case "throws before":
      throw new Error("the host is not there");
    case "hangs before":
      return waitForever();
    case "unknown before":
      return { kind: "unknown", message: "the line is dead" };
    case "late":
      return arriveLate(host, order, manner.delayMs);
    default:
      return answerStart(host, begin(host, order, false), trouble);
  }
}

async function answerStart(host: Host, run: HostRun, trouble: Manner["start"]): Promise<Start> {
  switch (trouble) {
    case "throws after":
      throw new Error("the answer was lost");
    case "hangs after":
      return waitForever();
    case "unknown after":
      return { kind: "unknown", message: "the line went dead" };
    case "other session":
      return { kind: "started", child: OTHER, ending: { outcome: "completed", reply: '{"n":-1}' } };
    case "slow":
      await new Promise<void>((resolve) => {
        host.clock.wakeAt((host.clock.now() + run.manner.delayMs) as EpochMs, resolve);
      });
      return startOf(run);
    default:
      return startOf(run);
  }
}

function arriveLate(host: Host, order: AttemptOrder, delayMs: number): Promise<Start> {
  const key = order.idempotencyKey;
  return new Promise((resolve) => {
    const arriveNow = (): void => {
      host.pending.delete(key);
      resolve(startOf(begin(host, order, true)));
    };
    host.pending.get(key)?.();
    host.pending.set(key, host.clock.wakeAt((host.clock.now() + delayMs) as EpochMs, arriveNow));
  });
}

/** D2: one key is one run, as long as the host knows of it. */
function begin(host: Host, order: AttemptOrder, isLate: boolean): HostRun {
  const key = order.idempotencyKey;
  const knownRun = host.byKey.get(key);
  if (knownRun) return knownRun;
  const { stepId } = order.envelope;
  const run: HostRun = {
    key,
    order,
    manner: findManner(host, key),
    isDelivery: stepId === DELIVERY_STEP_ID,
    startedAtMs: host.clock.now(),
    wasIntended: host.isIntended(key),
    number: host.runs.length + 1,
    isLate,
    reports: [],
    ended: Promise.withResolvers(),
  };
  host.runs.push(run);
  host.byKey.set(key, run);
  liveOn(host, run);
  return run;
}

/** The agent's acts in its life, if nobody stops it. */
function liveOn(host: Host, run: HostRun): void {
  const { endsAfterMs, forgottenAfterMs, report } = run.manner;
  if (endsAfterMs === 0) finish(run, endingOf(host, run), host.clock.now());
  else if (endsAfterMs !== undefined)
    callAfter(host, endsAfterMs, () => finish(run, endingOf(host, run), host.clock.now()));
  if (report) callAfter(host, report.afterMs, () => void reportOf(host, run));
  if (forgottenAfterMs === undefined) return;
  callAfter(host, forgottenAfterMs, () => {
    run.forgottenAtMs = host.clock.now();
    host.byKey.delete(run.key);
    run.ended.resolve();
  });
}

function callAfter(host: Host, ms: number, run: () => void): void {
  host.clock.wakeAt((host.clock.now() + ms) as EpochMs, run);
}

function finish(run: HostRun, ending: ChildEnding, atMs: number): void {
  if (run.ending || run.forgottenAtMs !== undefined) return;
  run.ending = ending;
  run.endedAtMs = atMs;
  run.ended.resolve();
}

function endingOf({ spoil = (text) => text }: Host, { manner, number }: HostRun): ChildEnding {
  const usage = useOf(manner);
  switch (manner.ending) {
    case "completed":
      return { outcome: "completed", reply: JSON.stringify({ n: number, good: true }), ...usage };
    case "prose":
      return { outcome: "completed", reply: spoil(`done, that was number ${number}`), ...usage };
    case "invalid":
      return { outcome: "completed", reply: JSON.stringify({ n: `number ${number}` }), ...usage };
    default:
      return { outcome: manner.ending, message: spoil(`it was ${manner.ending}`), ...usage };
  }
}

function useOf({ tokens }: Manner): Pick<ChildEnding, "usage"> {
  return tokens === undefined ? {} : { usage: { tokens } };
}

/** An agent that was stopped or lost reports nothing; one that has just ended may still be heard. */
async function reportOf(host: Host, run: HostRun): Promise<void> {
  if (run.forgottenAtMs !== undefined || run.ending?.outcome === "cancelled" || !run.manner.report) return;
  const { says } = run.manner.report;
  const times = says === "twice" ? [1, 2] : [1];
  for (const time of times) {
    const outputs = {
      n: says === "invalid" ? `report ${run.number}` : run.number * 1_000 + time,
      good: true,
    };
    const input: HostRun["reports"][number] = {
      outputs,
      outcome: says === "failed" ? "failed" : "completed",
    };
    run.reports.push(input);
    const answer = await host.report(run.order.childSessionKey, { ...input, outputs: { ...outputs } });
    if (answer !== undefined) input.answer = answer;
  }
}

function childOf({ order, key }: HostRun) {
  return { childSessionKey: order.childSessionKey, childRunId: `run of ${key}` };
}

function startOf(run: HostRun): Start {
  return { kind: "started", child: childOf(run), ...(run.ending && { ending: run.ending }) };
}

function tellTruth(host: Host, key: IdempotencyKey): Observation {
  const run = host.byKey.get(key);
  if (!run) return { kind: host.pending.has(key) ? findManner(host, key).pendingIs : "absent" };
  if (run.ending) run.answeredAtMs ??= host.clock.now();
  return run.ending
    ? { kind: "ended", ...childOf(run), ...run.ending }
    : { kind: "running", ...childOf(run) };
}

async function observe(host: Host, { idempotencyKey: key }: Attempt): Promise<Observation> {
  const manner = findManner(host, key);
  const questions = (host.questions.get(key) ?? 0) + 1;
  host.questions.set(key, questions);
  if (questions > manner.evasions) return tellTruth(host, key);
  switch (manner.observe) {
    case "unknown":
      return { kind: "unknown" };
    case "throws":
      throw new Error("the host does not say");
    case "hangs":
      return waitForever();
    case "other session":
      return { kind: "ended", ...OTHER, outcome: "completed", reply: '{"n":-2}' };
    default:
      return tellTruth(host, key);
  }
}

async function follow(
  host: Host,
  { idempotencyKey: key }: Attempt,
  signal: AbortSignal,
): Promise<Observation> {
  const run = host.byKey.get(key);
  if (!run) return tellTruth(host, key);
  switch (run.manner.follow) {
    case "unknown":
      return { kind: "unknown" };
    case "throws":
      throw new Error("the host does not wait");
    case "hangs":
      return waitForever();
    case "other session":
      return { kind: "ended", ...OTHER, outcome: "failed", message: "of somebody else" };
    case "running":
      return { kind: "running", ...childOf(run) };
    default:
      return Promise.race([run.ended.promise.then(() => tellTruth(host, key)), waitForAbort(signal)]);
  }
}

function waitForAbort(signal: AbortSignal): Promise<Observation> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve({ kind: "unknown" }), { once: true });
  });
}

async function cancel(host: Host, { idempotencyKey: key }: Attempt): Promise<Cancellation> {
  host.cancels.push({ key, atMs: host.clock.now() });
  const run = host.byKey.get(key);
  if (!run && host.pending.has(key)) return "unreachable";
  if (!run || run.ending) return "already_ended";
  const how = run.manner.cancel;
  if (how === "throws") throw new Error("the host does not cancel");
  if (how === "unreachable") return "unreachable";
  if (how === "hangs") return waitForever();
  run.isStopped = true;
  finish(run, { outcome: "cancelled", ...useOf(run.manner) }, host.clock.now());
  return how === "stops" ? "stopped" : waitForever();
}
