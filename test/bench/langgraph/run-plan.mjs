/**
 * `node run-plan.mjs '{"shape":"wide","steps":100,"runs":5,"durability":"sync"}'`: runs a plan of no-op steps on LangGraph
 * JS with its SQLite checkpointer and prints one JSON object. Plain JavaScript with dependencies of its own, so that
 * nothing of them reaches the plugin.
 *
 * Exit codes: 0 a JSON object was printed (`completed` says whether the plan ended), 2 wrong use, 3 not installed.
 * The plan runs in a child process: LangGraph may hold its event loop for minutes, and only another one can say so.
 */
import { fork } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { clearTimeout, setTimeout } from "node:timers";
import { fileURLToPath } from "node:url";

const DEFAULTS = {
  shape: "chain",
  steps: 100,
  runs: 5,
  warmups: 1,
  durability: "sync",
  // "default" is what the saver leaves it at; the result has what was read back.
  synchronous: "default",
  // 0: none set, which is no limit.
  maxConcurrency: 0,
  timeoutMs: 300_000,
};
const CHOICES = {
  shape: ["chain", "loop", "tasks", "wide", "sends", "diamonds"],
  durability: ["sync", "async", "exit"],
  synchronous: ["default", "normal", "full"],
};
const LEAST = { steps: 1, runs: 1, warmups: 0, maxConcurrency: 0, timeoutMs: 1 };
const PACKAGES = ["langgraph", "langgraph-checkpoint-sqlite"];

await main();

async function main() {
  const { plan, problem } = parse(process.argv[2] ?? "{}");
  if (problem) return fail(problem, 2);
  const versions = installedVersions();
  if (!versions) {
    return fail("LangGraph is not installed. Run: npm ci --ignore-scripts --prefix test/bench/langgraph", 3);
  }
  const start = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "bench-langgraph-"));
  try {
    const found = await runInChild(join(folder, "checkpoints.sqlite"), plan);
    const elapsedMs = Math.round(performance.now() - start);
    process.stdout.write(`${JSON.stringify({ ...plan, ...found, elapsedMs, versions })}\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function fail(message, exitCode) {
  process.stderr.write(`${message}\n`);
  process.exitCode = exitCode;
}

function parse(json) {
  try {
    const plan = { ...DEFAULTS, ...JSON.parse(json) };
    return { plan, problem: problemOf(plan) };
  } catch (error) {
    return { problem: `The argument is not JSON: ${error.message}` };
  }
}

function problemOf(plan) {
  const unknown = Object.keys(plan).find((key) => !Object.hasOwn(DEFAULTS, key));
  if (unknown !== undefined) return `Unknown option ${JSON.stringify(unknown)}.`;
  for (const [key, allowed] of Object.entries(CHOICES)) {
    if (!allowed.includes(plan[key])) return `${key} must be one of: ${allowed.join(", ")}.`;
  }
  for (const [key, least] of Object.entries(LEAST)) {
    if (!Number.isInteger(plan[key]) || plan[key] < least) return `${key} must be ${least} or more.`;
  }
  return undefined;
}

function installedVersions() {
  try {
    return Object.fromEntries(PACKAGES.map((name) => [name, versionOf(name)]));
  } catch {
    return undefined;
  }
}

function versionOf(name) {
  const file = new URL(`node_modules/@langchain/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")).version;
}

function runInChild(file, plan) {
  return new Promise((resolve) => {
    // What a library prints must not end up in front of the JSON.
    const stdio = ["ignore", process.stderr.fd, process.stderr.fd, "ipc"];
    const program = fileURLToPath(new URL("measure-plan.mjs", import.meta.url));
    const child = fork(program, [file, JSON.stringify(plan)], { stdio });
    let found;
    let megabytesAtTimeout;
    const limit = setTimeout(() => {
      megabytesAtTimeout = residentMegabytes(child.pid);
      child.kill("SIGKILL");
    }, plan.timeoutMs);
    const stop = () => child.kill("SIGKILL");
    // `on`, because a stopped group of processes may be told twice.
    process.on("SIGTERM", stop).on("SIGINT", stop);
    child.on("message", (message) => (found = message));
    const finish = (why) => {
      clearTimeout(limit);
      process.off("SIGTERM", stop).off("SIGINT", stop);
      const stopped = megabytesAtTimeout !== undefined;
      const reason = stopped ? `not done after ${plan.timeoutMs} ms` : why;
      resolve(
        found ?? { completed: false, reason, ...(stopped && { megabytes: { peak: megabytesAtTimeout } }) },
      );
    };
    child.on("error", (error) => finish(error.message));
    child.on("close", (code, signal) => finish(`the process ended with ${signal ?? `code ${code}`}`));
  });
}

/** Zero where the system does not say. */
function residentMegabytes(pid) {
  try {
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Math.round((Number(kilobytes ?? 0) * 1_024) / 1_000_000);
  } catch {
    return 0;
  }
}
