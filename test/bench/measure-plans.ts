/** Owns: running plans of no-op steps, one plan at a time on one ledger, and what comes of it in figures. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { checkPlan } from "../../src/agents/coordination/plan/check-plan.ts";
import { AGENT } from "../support/ledger-fixtures.ts";
import { findMedian } from "./bench-row.ts";
import { measureHeapBytes } from "./heap-bytes.ts";
import { openPlanHost, planOf, type Notes, type PlanHost, type PlanShape } from "./plan-host.ts";

export interface PlansToRun {
  readonly shape: PlanShape;
  readonly steps: number;
  readonly runs: number;
  readonly warmups: number;
  /** Places of the lane. */
  readonly concurrency: number;
}

export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
}

export interface PlanFigures {
  /** From submitting the plan until its end is on disk, its owner told. */
  readonly planMs: Quantiles;
  /** From handing in the append that let a step begin to the call that starts it. */
  readonly dispatchMs: Quantiles;
  /** The same from the end of the step before, as its runner has it, or from submitting the plan. */
  readonly stepWaitMs: Quantiles;
  /** From submitting the plan until the last admission is on disk. */
  readonly admittedMs: number;
  /** Median over the runs of the longest time in which the event loop did not turn. */
  readonly blockedMs: number;
  readonly cpuMicrosPerStep: number;
  readonly transactionsPerStep: number;
  readonly bytesPerStep: number;
  readonly heldMost: number;
}

const DELAY_RESOLUTION_MS = 1;
const QUIET_MS = 100;
const FIRST_STEPS = 50;

export async function measurePlans(plansToRun: PlansToRun): Promise<PlanFigures> {
  const { shape, steps, runs, warmups, concurrency } = plansToRun;
  await using host = await openPlanHost({ concurrency });
  for (let run = 0; run < warmups; run += 1) await runPlan(host, planOf(`co-warmup-${run}`, shape, steps));
  const transactionsBefore = host.transactions();
  const cpuBefore = process.cpuUsage();
  const ran: RunPlan[] = [];
  for (let run = 0; run < runs; run += 1)
    ran.push(await runPlan(host, planOf(`co-run-${run}`, shape, steps)));
  const { user, system } = process.cpuUsage(cpuBefore);
  const stepsEach = ran[0]?.notes.started.size ?? 0;
  const transactions = host.transactions() - transactionsBefore;
  const databaseBytes = await host.close();
  const waits = ran.map((run) => waitsOf(run, shape));
  return {
    planMs: computeQuantiles(ran.map(({ ms }) => ms)),
    dispatchMs: computeQuantiles(waits.flatMap(({ dispatch }) => dispatch)),
    stepWaitMs: computeQuantiles(waits.flatMap(({ step }) => step)),
    admittedMs: findMedian(ran.map(({ notes, began }) => notes.admittedOnDisk - began)),
    blockedMs: findMedian(ran.map(({ blockedMs }) => blockedMs)),
    cpuMicrosPerStep: (user + system) / (stepsEach * runs),
    transactionsPerStep: transactions / (stepsEach * runs),
    bytesPerStep: databaseBytes / (stepsEach * (runs + warmups)),
    heldMost: Math.max(...ran.map(({ notes }) => notes.heldMost)),
  };
}

interface RunPlan {
  readonly began: number;
  readonly ms: number;
  readonly notes: Notes;
  readonly blockedMs: number;
}

/** Submits a plan and waits until its end is on disk and its owner was told. */
export async function runPlan(host: PlanHost, plan: object): Promise<RunPlan> {
  const notes = host.take();
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  delay.enable();
  const began = performance.now();
  await submit(host, plan);
  const ended = await notes.ended.promise;
  delay.disable();
  const expected = (plan as { steps: readonly unknown[] }).steps.length;
  if (notes.started.size !== expected)
    throw new Error(`${notes.started.size} steps ran, ${expected} were expected`);
  return { began, ms: ended - began, notes, blockedMs: delay.max / 1e6 };
}

async function submit({ coordinator }: PlanHost, plan: object): Promise<void> {
  const submitted = await coordinator.submitPlan({ plan, ownerAgent: AGENT });
  if (submitted.kind !== "accepted") throw new Error(`the plan was not accepted: ${submitted.kind}`);
}

interface Waits {
  readonly dispatch: readonly number[];
  readonly step: readonly number[];
}

function waitsOf({ notes, began }: RunPlan, shape: PlanShape): Waits {
  const { started, admitted, completed } = notes;
  const ids = [...started.keys()];
  const last = ids.filter((stepId) => stepId !== "join");
  const dispatch: number[] = [];
  const step: number[] = [];
  for (const [index, stepId] of ids.entries()) {
    const before =
      stepId === "join" ? last : shape === "chain" ? ids.slice(Math.max(0, index - 1), index) : [];
    const at = started.get(stepId) ?? Number.NaN;
    dispatch.push(at - findNewest(admitted.get(stepId) ?? Number.NaN, before, completed));
    // The runner answers at once, so a step has ended when it was started.
    step.push(at - findNewest(began, before, started));
  }
  return { dispatch, step };
}

function findNewest(from: number, names: readonly string[], times: ReadonlyMap<string, number>): number {
  return names.reduce((latest, name) => Math.max(latest, times.get(name) ?? Number.NaN), from);
}

/** The nearest rank: with fewer than a hundred values, p99 is the highest. */
function computeQuantiles(values: readonly number[]): Quantiles {
  const sorted = values.toSorted((a, b) => a - b);
  const pickQuantile = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
  return { p50: pickQuantile(0.5), p99: pickQuantile(0.99) };
}

export interface HeldFigures {
  readonly bytesPerStep: number;
}

/** A plan whose steps are all admitted, and none gets further than to begin. */
export async function measureHeld({ shape, steps, concurrency }: PlansToRun): Promise<HeldFigures> {
  await using host = await openPlanHost({ concurrency, hangs: true });
  // Code that is loaded and compiled with the first plan is held once, not for each step.
  await submit(host, planOf("co-first", shape, FIRST_STEPS));
  await waitUntilQuiet(host);
  const before = measureHeapBytes();
  const notes = host.take();
  await submit(host, planOf("co-held", shape, steps));
  while (notes.admitted.size < steps) await new Promise((resolve) => setImmediate(resolve));
  // Work that was begun meanwhile has been recorded when a turn brings no transaction.
  for (let previousCount = -1; previousCount !== host.transactions();) {
    previousCount = host.transactions();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // Our own notes are no part of it.
  notes.admitted.clear();
  const bytes = measureHeapBytes() - before;
  return { bytesPerStep: bytes / steps };
}

/** Work that was begun has been recorded when a pause brings no transaction. */
async function waitUntilQuiet(host: PlanHost): Promise<void> {
  for (let previousCount = -1; previousCount !== host.transactions();) {
    previousCount = host.transactions();
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
  }
}

export interface CompileFigures {
  readonly coldMs: number;
  readonly medianMs: number;
}

/** Reads and compiles the plan: what `submitPlan` does before anything is recorded. */
export function measureCompile({ shape, steps, runs }: PlansToRun): CompileFigures {
  const text = JSON.stringify(planOf("co-compiled", shape, steps));
  const times = Array.from({ length: runs }, () => {
    const plan: unknown = JSON.parse(text);
    const began = performance.now();
    if (checkPlan(plan).kind !== "compiled") throw new Error("the plan does not compile");
    return performance.now() - began;
  });
  return { coldMs: times[0] ?? Number.NaN, medianMs: findMedian(times) };
}
