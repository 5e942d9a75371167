/**
 * How long work stands still when the process that drives it is gone, until another process on the same database goes on with it:
 * workflow runs of two `serve`, and plans of two gateways (coordinators in processes of their own, without OpenClaw).
 *
 * Killed: the other one finds out that there is no such process on its machine. Stopped: it can only wait for the lease to pass, as
 * it has to for another machine. The time is that between the signal and the first event that the other process appended.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { killAtExit } from "../support/kill-at-exit.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { startServe } from "../support/serve-process.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createFleetWorkflows } from "../support/workflow-definitions.ts";
import { findMedian, round, type BenchOptions, type BenchRow } from "./bench-row.ts";

const LEASE_MS = 2_000;
const TARGET_MS = 1.5 * LEASE_MS;
const ROUNDS = 20;
const QUICK_ROUNDS = 2;
/** Something is due all the time while a process is gone. */
const STEP_MS = 100;
const STEPS = 100;
const GOES_ON_MS_MAX = 30_000;
const GATEWAY = fileURLToPath(new URL("take-over-gateway.ts", import.meta.url));
const WORKFLOWS = createFleetWorkflows(
  Array.from({ length: STEPS }, (_, index) => `step-${index}`),
  STEP_MS,
);

const SIGNALS = { killed: "SIGKILL", stopped: "SIGSTOP" } as const;
type Way = keyof typeof SIGNALS;

/** A process that drives what it is given. */
interface Driver {
  readonly process: ChildProcess;
  /** Begins work that takes a while, and returns its id. */
  begin(): Promise<string>;
}

interface Kind {
  readonly name: string;
  readonly start: (place: 0 | 1) => Promise<Driver>;
}

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  using folder = createTempFolder();
  const rows: BenchRow[] = [];
  for (const createKind of [createRuns, createPlans])
    for (const way of ["killed", "stopped"] as const) {
      await using schema = await createTestSchema();
      const kind = createKind(schema, folder.path);
      rows.push(
        describeTimes(
          kind,
          way,
          await measureKind(kind, { way, schema, rounds: quick ? QUICK_ROUNDS : ROUNDS }),
        ),
      );
    }
  return rows;
}

function createRuns(schema: TestSchema, folder: string): Kind {
  const args = ["--lease", String(LEASE_MS / 1_000)];
  return {
    name: "a workflow run",
    start: async () => {
      const serve = await startServe({ ledger: schema.url, folder, definitions: WORKFLOWS, args });
      return {
        process: serve.process,
        begin: async () => {
          const { status, body } = await serve.ask("POST", "/v1/runs", { body: { workflowId: "steps" } });
          if (status !== 201) throw new Error(`a run was not accepted: ${status} ${JSON.stringify(body)}`);
          return String(body["runId"]);
        },
      };
    },
  };
}

function createPlans(schema: TestSchema): Kind {
  let plans = 0;
  return {
    name: "a plan",
    start: async (place) => {
      const child = spawn(
        process.execPath,
        [
          GATEWAY,
          JSON.stringify({ url: schema.url, name: `gateway-${place}`, leaseMs: LEASE_MS, stepMs: STEP_MS }),
        ],
        { stdio: ["pipe", "pipe", "inherit"] },
      );
      killAtExit(child);
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      await lines.next();
      return {
        process: child,
        begin: async () => {
          const id = `plan-${(plans += 1)}`;
          child.stdin.write(`${JSON.stringify({ id, steps: STEPS })}\n`);
          const { value: answer } = await lines.next();
          if (answer !== "accepted") throw new Error(`a plan was not accepted: ${String(answer)}`);
          return id;
        },
      };
    },
  };
}

interface TakeOverRounds {
  readonly way: Way;
  readonly schema: TestSchema;
  readonly rounds: number;
}

/** Returns the times in milliseconds. */
async function measureKind({ start }: Kind, { way, schema, rounds }: TakeOverRounds): Promise<number[]> {
  const drivers: [Driver, Driver] = [await start(0), await start(1)];
  const times: number[] = [];
  for (let number = 0; number < rounds; number += 1) {
    const place = number % 2 === 0 ? 0 : 1;
    const driver = drivers[place];
    const runId = await driver.begin();
    // At another moment between two beats each time.
    await delay(LEASE_MS / 4 + (number * LEASE_MS) / (10 * rounds));
    const atMs = Date.now();
    driver.process.kill(SIGNALS[way]);
    times.push(await waitForOther(schema, runId, atMs));
    const ended = once(driver.process, "exit");
    driver.process.kill("SIGKILL");
    if (driver.process.signalCode === null) await ended;
    drivers[place] = await start(place);
  }
  for (const { process: child } of drivers) child.kill("SIGKILL");
  return times;
}

/** All processes read the clock of one machine. Events under way when the signal came were stamped before. */
async function waitForOther(schema: TestSchema, runId: string, afterMs: number): Promise<number> {
  const at = await waitFor(
    async () => {
      const [row] = await schema.query<{ at: string | null }>(
        "select min(timestamp_ms) as at from event join run using (run_key) where run_id = $1 and timestamp_ms > $2",
        [runId, afterMs],
      );
      return row?.at ?? undefined;
    },
    { what: `another process to go on with ${runId}`, timeoutMs: GOES_ON_MS_MAX, everyMs: 50 },
  );
  return Number(at) - afterMs;
}

function describeTimes({ name }: Kind, way: Way, times: readonly number[]): BenchRow {
  const sorted = times.toSorted((a, b) => a - b);
  const p95 = sorted[Math.ceil(0.95 * sorted.length) - 1] ?? Number.NaN;
  return {
    name: `PostgreSQL: ${name} goes on elsewhere after its process was ${way}, p95`,
    compares: `lease of ${LEASE_MS / 1_000} s; from the signal to the first event of the other process; ${times.length} times`,
    value: round(p95),
    unit: "ms",
    target: { is: "at most", value: TARGET_MS },
    detail: {
      medianMs: round(findMedian(times)),
      highestMs: round(sorted.at(-1) ?? Number.NaN),
      leaseMs: LEASE_MS,
    },
  };
}
