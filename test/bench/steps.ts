/**
 * Plans end to end with a runner that does nothing, side by side with LangGraph JS on its SQLite checkpointer.
 *
 * Ours: `submitPlan` on the real coordinator with the SQLite ledger and the lanes, until the end is on disk and the owner was
 * told. LangGraph: `invoke`, with durability `sync`. Both: WAL, synchronous FULL, processes of their own that warm up,
 * then the median of some runs; both keep a small result for each step. They take turns, round by round.
 * The ratio is to the plan as LangGraph's StateGraph says it, a node for each step. Its faster forms of the same work are in
 * the detail.
 */
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { alternate, findMedian, round, spreadOf, type BenchOptions, type BenchRow } from "./bench-row.ts";
import {
  runLangGraph,
  type LangGraphFailure,
  type LangGraphFigures,
  type LangGraphPlans,
} from "./langgraph-side.ts";
import type { CompileFigures, HeldFigures, PlanFigures, PlansToRun } from "./measure-plans.ts";
import { runForJson } from "./run-for-json.ts";

const PLAN_PROCESS = new URL("plan-process.ts", import.meta.url);
/** As configured by default. */
const LANE_PLACES = 8;
/** The most that a plan may have. */
const PLAN_STEPS = BOUNDS.planStepsMax;
const HUNDRED_AT_ONCE = { maxConcurrency: 100 };

/** Steps a second, and at hundred at once processor time of a step, by LangGraph's of the same plan. */
const TARGETS = { chain: 2.5, joined: 5, cpu: 0.25, blockedMs: 20 } as const;

interface Case {
  /** Steps that may run at once. */
  readonly atOnce: number;
  readonly subject: string;
  readonly ours: PlansToRun;
  /** The fan-in included. */
  readonly stepsRun: number;
  /** The first one is the plain form. */
  readonly forms: Readonly<Record<string, LangGraphPlans>>;
  readonly rounds: number;
}

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  const many = quick ? 300 : PLAN_STEPS;
  const rows: BenchRow[] = [];
  const cases = [
    createOneAtATimeCase(quick),
    createHundredAtOnceCase(quick),
    createManyAtOnceCase(many, quick),
  ];
  for (const benchCase of cases) rows.push(...(await measureCase(benchCase)));
  return [...rows, ...(await measureLargePlan(many)), await measureMemory(quick ? 3_000 : PLAN_STEPS)];
}

function createOneAtATimeCase(quick: boolean): Case {
  const counts = { steps: 100, ...(quick ? { runs: 2, warmups: 1 } : { runs: 5, warmups: 5 }) };
  return {
    atOnce: 1,
    subject: "a chain of 100 steps",
    ours: { shape: "chain", ...counts, concurrency: LANE_PLACES },
    stepsRun: counts.steps,
    forms: {
      plain: { shape: "chain", ...counts },
      ...(!quick && { loop: { shape: "loop", ...counts } }),
      tasks: { shape: "tasks", ...counts },
    },
    rounds: quick ? 1 : 5,
  };
}

function createHundredAtOnceCase(quick: boolean): Case {
  const counts = { steps: 100, ...(quick ? { runs: 2, warmups: 1 } : { runs: 5, warmups: 5 }) };
  return {
    atOnce: counts.steps,
    subject: "100 steps at once and one that waits for all",
    ours: { shape: "joined", ...counts, concurrency: counts.steps },
    stepsRun: counts.steps + 1,
    forms: createWideForms(counts, quick),
    rounds: quick ? 1 : 5,
  };
}

function createManyAtOnceCase(steps: number, quick: boolean): Case {
  const counts = { steps, runs: 1, warmups: quick ? 1 : 0 };
  return {
    atOnce: steps,
    subject: `${steps.toLocaleString("en")} steps at once and one that waits for all, ours the delivery to the owner`,
    ours: { shape: "wide", ...counts, concurrency: steps },
    stepsRun: steps + 1,
    forms: createWideForms(counts, quick),
    rounds: 1,
  };
}

function createWideForms(counts: Omit<LangGraphPlans, "shape">, quick: boolean): Case["forms"] {
  return {
    plain: { shape: "wide", ...counts },
    ...(!quick && { sends: { shape: "sends", ...counts } }),
    sendsHundredAtOnce: { shape: "sends", ...counts, ...HUNDRED_AT_ONCE },
  };
}

interface CaseFigures {
  readonly ours: PlanFigures[];
  readonly forms: Record<string, LangGraphFigures[]>;
}

async function measureCase(benchCase: Case): Promise<BenchRow[]> {
  const found: CaseFigures = { ours: [], forms: {} };
  const measureOurs = async (): Promise<number> => {
    const figures = await runOurs<PlanFigures>("run", benchCase.ours);
    found.ours.push(figures);
    return figures.planMs.p50;
  };
  const theirs = Object.entries(benchCase.forms).map(
    ([name, plans]) =>
      () =>
        runForm(name, plans, found.forms),
  );
  const [oursMs = [], ...theirsMs] = await alternate(benchCase.rounds, [measureOurs, ...theirs]);
  const plain = found.forms["plain"]?.[0];
  return [
    createSpeedRow(benchCase, found, oursMs),
    ...(plain ? [createRatioRow(benchCase, { found, oursMs, theirsMs, versions: plain.versions })] : []),
    ...(plain && benchCase.atOnce > 1 ? [createCpuRow(benchCase, found)] : []),
    createLatencyRow(benchCase, found),
    ...(benchCase.atOnce === 1 ? [createBytesRow(found)] : []),
  ];
}

function runOurs<T>(measured: "run" | "held" | "compile", plans: PlansToRun): Promise<T> {
  return runForJson<T>(PLAN_PROCESS, [measured, JSON.stringify(plans)]);
}

/** Milliseconds of a plan; no number where LangGraph is not installed or did not come to the end. */
async function runForm(
  name: string,
  plans: LangGraphPlans,
  forms: Record<string, LangGraphFigures[]>,
): Promise<number> {
  const found: LangGraphFigures | LangGraphFailure | undefined = await runLangGraph(plans);
  if (found?.completed) {
    (forms[name] ??= []).push(found);
    return found.medianMs;
  }
  if (found) process.stderr.write(`LangGraph, ${name}, ${plans.steps} steps: ${found.reason}\n`);
  return Number.NaN;
}

function createSpeedRow(
  { atOnce, subject, stepsRun }: Case,
  { ours }: CaseFigures,
  planMs: readonly number[],
): BenchRow {
  const perSecond = planMs.map((ms) => (1_000 * stepsRun) / ms);
  return {
    name: `steps per second of a plan, ${formatCount(atOnce)} at once`,
    compares: `${subject}; from submitting the plan until its end is on disk and the owner was told`,
    value: round(findMedian(perSecond)),
    unit: "steps/s",
    detail: {
      ...spreadOf(perSecond),
      cpuMicrosPerStep: medianOf(ours, ({ cpuMicrosPerStep }) => cpuMicrosPerStep),
      transactionsPerStep: medianOf(ours, ({ transactionsPerStep }) => transactionsPerStep),
      heldAtOnce: Math.max(...ours.map(({ heldMost }) => heldMost)),
    },
  };
}

interface Sides {
  readonly found: CaseFigures;
  readonly oursMs: readonly number[];
  readonly theirsMs: readonly (readonly number[])[];
  readonly versions: Readonly<Record<string, string>>;
}

function createRatioRow(benchCase: Case, { found, oursMs, theirsMs, versions }: Sides): BenchRow {
  const [plain = [], ...faster] = theirsMs.map((times) =>
    times.map((ms, index) => ms / (oursMs[index] ?? Number.NaN)).filter((ratio) => !Number.isNaN(ratio)),
  );
  const fastest = Math.min(...[plain, ...faster].filter(({ length }) => length > 0).map(findMedian));
  const names = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return {
    name: `steps per second of a plan / LangGraph JS with its SQLite checkpointer, ${formatCount(benchCase.atOnce)} at once`,
    compares: `${benchCase.subject}; ${names.join(", ")}, the plan as a StateGraph with a node for each step; both durable`,
    value: round(findMedian(plain)),
    unit: "ratio",
    target: { is: "at least", value: benchCase.atOnce === 1 ? TARGETS.chain : TARGETS.joined },
    detail: {
      ...spreadOf(plain),
      rounds: plain.length,
      toItsFastestForm: round(fastest),
      ...describePerForm(found, "StepsPerSecond", ({ stepsPerSecond }) => stepsPerSecond),
      ...describePerForm(found, "CpuMicrosPerStep", ({ cpuMicrosPerStep }) => cpuMicrosPerStep),
    },
  };
}

/** The processes of each side run the same plan; what they take to start and to warm up is in neither figure. */
function createCpuRow({ atOnce, subject }: Case, { ours, forms: { plain = [] } }: CaseFigures): BenchRow {
  const cost = medianOf(ours, ({ cpuMicrosPerStep }) => cpuMicrosPerStep);
  const ratios = plain.map(({ cpuMicrosPerStep }) => cost / cpuMicrosPerStep);
  return {
    name: `processor time of a step / LangGraph's, ${formatCount(atOnce)} at once`,
    compares: `${subject}; microseconds of all threads by those of the plan as a StateGraph`,
    value: round(findMedian(ratios)),
    unit: "ratio",
    target: { is: "at most", value: TARGETS.cpu },
    detail: { ...spreadOf(ratios), oursMicros: cost },
  };
}

function describePerForm(
  { forms }: CaseFigures,
  subject: string,
  figure: (figures: LangGraphFigures) => number,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(forms).map(([name, figures]) => [`${name}${subject}`, medianOf(figures, figure)]),
  );
}

function createLatencyRow({ atOnce, subject }: Case, { ours, forms }: CaseFigures): BenchRow {
  const plain = forms["plain"];
  return {
    name: `dispatch latency, ${formatCount(atOnce)} at once, median`,
    compares: `${subject}; from handing in the append that lets a step begin to the call that starts it, its own record on disk; wait: from the end of the step before, or from submitting the plan`,
    value: medianOf(ours, ({ dispatchMs }) => dispatchMs.p50),
    unit: "ms",
    detail: {
      p99: medianOf(ours, ({ dispatchMs }) => dispatchMs.p99),
      waitP50: medianOf(ours, ({ stepWaitMs }) => stepWaitMs.p50),
      waitP99: medianOf(ours, ({ stepWaitMs }) => stepWaitMs.p99),
      ...(plain && {
        langGraphWaitP50: medianOf(plain, ({ stepWaitMs }) => stepWaitMs.p50),
        langGraphWaitP99: medianOf(plain, ({ stepWaitMs }) => stepWaitMs.p99),
      }),
    },
  };
}

function createBytesRow(found: CaseFigures): BenchRow {
  return {
    name: "bytes of ledger for a step of a plan",
    compares: "file size after closing by steps, a chain of 100 steps; all events, texts and references",
    value: Math.round(medianOf(found.ours, ({ bytesPerStep }) => bytesPerStep)),
    unit: "bytes",
    detail: describePerForm(found, "LangGraphBytes", ({ bytesPerStep }) => bytesPerStep),
  };
}

async function measureLargePlan(steps: number): Promise<BenchRow[]> {
  const chain: PlansToRun = {
    shape: "chain",
    steps: PLAN_STEPS,
    runs: 5,
    warmups: 0,
    concurrency: LANE_PLACES,
  };
  const compiled = await runOurs<CompileFigures>("compile", chain);
  const wide: PlansToRun = { shape: "wide", steps, runs: 3, warmups: 1, concurrency: LANE_PLACES };
  const ran = await runOurs<PlanFigures>("run", wide);
  const large = `a plan of ${formatCount(steps)} steps`;
  return [
    {
      name: `checking and compiling a plan of ${formatCount(PLAN_STEPS)} steps`,
      compares: "one after the other; the first time in a process",
      value: round(compiled.coldMs),
      unit: "ms",
      target: { is: "at most", value: 200 },
      detail: { medianOfFive: round(compiled.medianMs) },
    },
    {
      name: `admitting ${large}`,
      compares: `from submitting it until the last step is on disk, while ${LANE_PLACES} of its steps run at once`,
      value: round(ran.admittedMs),
      unit: "ms",
      detail: { wholePlan: round(ran.planMs.p50), stepsPerSecond: round((1_000 * steps) / ran.planMs.p50) },
    },
    {
      name: `longest time that ${large} holds up the event loop`,
      compares: "from submitting it until its end; the median of three runs",
      value: round(ran.blockedMs),
      unit: "ms",
      target: { is: "at most", value: TARGETS.blockedMs },
    },
  ];
}

async function measureMemory(steps: number): Promise<BenchRow> {
  const createPlans = (shape: "chain" | "wide"): PlansToRun => ({
    shape,
    steps,
    runs: 1,
    warmups: 0,
    concurrency: 1,
  });
  const chain = await runOurs<HeldFigures>("held", createPlans("chain"));
  const wide = await runOurs<HeldFigures>("held", createPlans("wide"));
  return {
    name: "memory per open step of a plan",
    compares: `growth of the heap after a collection, a plan of ${formatCount(steps)} steps, all admitted and one at work; the larger of waiting for each other and waiting for the lane`,
    value: Math.round(Math.max(chain.bytesPerStep, wide.bytesPerStep)),
    unit: "bytes",
    target: { is: "at most", value: 4_096 },
    detail: {
      waitingForEachOther: Math.round(chain.bytesPerStep),
      waitingForTheLane: Math.round(wide.bytesPerStep),
    },
  };
}

function formatCount(count: number): string {
  return count.toLocaleString("en");
}

function medianOf<T>(found: readonly T[], figure: (one: T) => number): number {
  return round(findMedian(found.map(figure)));
}
