/**
 * The child process of run-plan.mjs: builds and compiles the graph once, then times `invoke` alone, each run on a thread
 * id of its own in one file of LangGraph's own SqliteSaver.
 */
import { statSync } from "node:fs";
import { performance } from "node:perf_hooks";

// Whatever the shell has set: a trace sent to a server is no part of the comparison. Read when the library loads.
process.env.LANGSMITH_TRACING = "false";
process.env.LANGCHAIN_TRACING_V2 = "false";

const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite");
const { planGraph } = await import("./plan-graph.mjs");

const MEGABYTE = 1_000_000;
const SYNCHRONOUS = ["off", "normal", "full", "extra"];
const [, , file, json] = process.argv;
const { shape, steps, runs, warmups, durability, synchronous, maxConcurrency } = JSON.parse(json);
/** When each step of the current run ended. */
const ends = new Map();
/** From when the last of a step's dependencies ended, or the run began, until the step's own code ran. */
const waits = [];
let began = 0;

try {
  process.send(await measure());
} catch (error) {
  process.send({ completed: false, reason: error.message });
}
process.disconnect();

async function measure() {
  const saver = SqliteSaver.fromConnString(file);
  // Any call makes the saver set WAL and create its tables.
  await saver.getTuple({ configurable: { thread_id: "none" } });
  if (synchronous !== "default") saver.db.pragma(`synchronous = ${synchronous}`);
  const compileStart = performance.now();
  const { graph, stepsRun, reset } = planGraph(shape, steps, node);
  const plan = { compiled: graph.compile({ checkpointer: saver }), stepsRun, reset };
  const compileMs = performance.now() - compileStart;
  const megabytesBefore = process.memoryUsage.rss() / MEGABYTE;
  for (let run = 0; run < warmups; run += 1) await runOnce(plan, `warmup-${run}`);
  waits.length = 0;
  const times = [];
  const cpuBefore = process.cpuUsage();
  for (let run = 0; run < runs; run += 1) times.push(await runOnce(plan, `run-${run}`));
  const cpu = process.cpuUsage(cpuBefore);
  const medianMs = median(times);
  return {
    completed: true,
    stepsRun,
    stepsPerSecond: round((1_000 * stepsRun) / medianMs),
    medianMs: round(medianMs),
    p99Ms: round(quantile(times, 0.99)),
    lowestMs: round(Math.min(...times)),
    stepWaitMs: { p50: round(quantile(waits, 0.5)), p99: round(quantile(waits, 0.99)) },
    // Of all threads, garbage collection too; steadier than the times where others use the machine.
    cpuMicrosPerStep: round((cpu.user + cpu.system) / (stepsRun * runs)),
    compileMs: round(compileMs),
    ...filesOf(saver, stepsRun * (runs + warmups)),
    megabytes: {
      before: round(megabytesBefore),
      peak: round((process.resourceUsage().maxRSS * 1_024) / MEGABYTE),
    },
  };
}

async function runOnce({ compiled, stepsRun, reset }, threadId) {
  reset?.();
  ends.clear();
  const config = {
    configurable: { thread_id: threadId },
    durability,
    recursionLimit: steps + 10,
    ...(maxConcurrency > 0 && { maxConcurrency }),
  };
  began = performance.now();
  await compiled.invoke({ outputs: [] }, config);
  const ms = performance.now() - began;
  if (ends.size !== stepsRun) throw new Error(`${ends.size} steps ran, ${stepsRun} were expected`);
  return ms;
}

/** A step that does nothing: asynchronous, with a small result of its own. */
function node(name, dependencies) {
  return async () => {
    const now = performance.now();
    waits.push(now - readyAt(dependencies));
    ends.set(name, now);
    return { outputs: [name] };
  };
}

function readyAt(dependencies) {
  let ready = began;
  for (const dependency of dependencies) ready = Math.max(ready, ends.get(dependency) ?? Number.NaN);
  return ready;
}

/** Read back, not assumed: how the saver wrote, and how much. Closes the file. */
function filesOf({ db }, allSteps) {
  const pragma = (name) => db.pragma(name, { simple: true });
  const rowsOf = (table) => db.prepare(`select count(*) from ${table}`).pluck().get();
  const found = {
    journalMode: pragma("journal_mode"),
    synchronous: SYNCHRONOUS[pragma("synchronous")],
    rows: { checkpoints: rowsOf("checkpoints"), writes: rowsOf("writes") },
    walBytes: statSync(`${file}-wal`).size,
  };
  db.close();
  const databaseBytes = statSync(file).size;
  return { ...found, databaseBytes, bytesPerStep: Math.round(databaseBytes / allSteps) };
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  return sorted.length % 2 === 0 ? (sorted[sorted.length / 2 - 1] + upper) / 2 : upper;
}

/** The nearest rank: with fewer than a hundred values, p99 is the highest. */
function quantile(values, share) {
  return values.toSorted((a, b) => a - b)[Math.ceil(share * values.length) - 1] ?? Number.NaN;
}

function round(value) {
  return Number(value.toPrecision(4));
}
