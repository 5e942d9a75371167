/**
 * `node --expose-gc long-run-process.ts LEDGER DAYS SPAWNS`: a year of a gateway in one process. Each day has so many spawns, half as
 * many workflow runs, and a prune of what ended 30 days ago; each tenth day the ledger and the coordinator are closed and opened
 * again. Days pass by a jump of the clock once everything has ended. Prints one JSON object.
 */
import { setTimeout as delay } from "node:timers/promises";
import { addMs, type CoordinationId, type EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { pruneLedger } from "../../src/agents/coordination/runtime/prune-ledger.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { createWholeRun } from "../contract/workflow-store-tested.ts";
import { nameChildSession, OWNER, spawnRequest, testCoordinator } from "../support/ledger-fixtures.ts";
import { openTestLedger } from "../support/temp-ledger.ts";

export interface LongRunReport {
  readonly days: readonly DayReport[];
  readonly spawns: number;
  readonly problems: readonly unknown[];
  /** Coordinations that are there, and runs of either kind that were removed. */
  readonly coordinations: number;
  readonly pruned: number;
}

export interface DayReport {
  /** The ledger on disk, with its log. */
  readonly bytes: number;
  /** Used heap after garbage was collected. */
  readonly heapBytes: number;
  /** Median milliseconds from a spawn's request to its admission. */
  readonly admitMs: number;
}

const DAY_MS = 86_400_000;
const KEPT_DAYS = 30;
const RESTART_DAYS = 10;
const SETTLE_MS = 5;

const [, , path = "", dayCount = "365", spawnCount = "4"] = process.argv;
const spawnsPerDay = Number(spawnCount);

let skippedMs = 0;
/** The time of day, with the days that were skipped. */
const clock: Clock = {
  now: () => (Date.now() + skippedMs) as EpochMs,
  wakeAt: (atMs, run) => {
    const timer = setTimeout(run, Math.min(Math.max(0, atMs - clock.now()), 2_000_000_000));
    timer.unref();
    return () => {
      clearTimeout(timer);
    };
  },
};

interface OpenCoordinator {
  readonly store: SqliteLedger;
  readonly coordinator: Coordinator;
}

let opened = 0;

async function openRunning(): Promise<OpenCoordinator> {
  const store = await openTestLedger(path, { clock });
  const coordinator = testCoordinator({
    store,
    clock,
    newCoordinationId: () => `co-${(opened += 1)}` as CoordinationId,
    settings: { settleMs: SETTLE_MS, acknowledgeMs: 1_000, sweepMs: 1_000, contentMs: DAY_MS },
  });
  await coordinator.start();
  return { store, coordinator };
}

async function closeRunning({ store, coordinator }: OpenCoordinator): Promise<void> {
  await coordinator.stop();
  await store.close();
}

/** Returns how long the admission took. */
async function spawnAndEnd({ coordinator }: OpenCoordinator, call: string): Promise<number> {
  const startedAtMs = performance.now();
  const admission = await coordinator.admitSpawn(spawnRequest({ call, trace: `trace-${call}` }));
  const tookMs = performance.now() - startedAtMs;
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId } = admission.envelope;
  const child = nameChildSession(call);
  const claim = { coordinationId, stepId, sourceSession: OWNER, toolCallId: call };
  await coordinator.confirmSpawn(claim, { childSessionKey: child, childRunId: `host-${call}` });
  await coordinator.endChild(child, { outcome: "completed" });
  return tookMs;
}

async function waitUntilEnded({ store }: OpenCoordinator): Promise<void> {
  while ((await store.list({ limit: 1, status: "running" })).length > 0) await delay(SETTLE_MS);
}

async function playDay(running: OpenCoordinator, day: number): Promise<DayReport> {
  const tookMs: number[] = [];
  for (let index = 0; index < spawnsPerDay; index += 1) {
    tookMs.push(await spawnAndEnd(running, `${day}-${index}`));
    if (index % 2 === 0) await running.store.workflows.append(createWholeRun(`${day}-${index}`));
  }
  await waitUntilEnded(running);
  const beforeMs = addMs(clock.now(), -KEPT_DAYS * DAY_MS);
  await pruneLedger(running.store, { beforeMs, isDryRun: false });
  globalThis.gc?.();
  return {
    bytes: await running.store.measureBytes(),
    heapBytes: process.memoryUsage().heapUsed,
    admitMs: tookMs.toSorted((one, other) => one - other)[Math.floor(tookMs.length / 2)] ?? 0,
  };
}

let running = await openRunning();
const days: DayReport[] = [];
for (let day = 1; day <= Number(dayCount); day += 1) {
  days.push(await playDay(running, day));
  skippedMs += DAY_MS;
  if (day % RESTART_DAYS !== 0) continue;
  await closeRunning(running);
  running = await openRunning();
}
const { problems, coordinations } = await verifyLedger(running.store);
const { runs: pruned } = await running.store.pruned.counts();
await closeRunning(running);
const spawns = spawnsPerDay * Number(dayCount);
const report: LongRunReport = { days, spawns, problems, coordinations, pruned };
process.stdout.write(JSON.stringify(report));
