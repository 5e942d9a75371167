/**
 * `node disk-process.ts FROM STRIDE`: a process with a ledger on a disk that fails. It plays the same few spawns over and over, each
 * time with another operation of the disk that fails, and checks after each what the ledger says. Prints one JSON object.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isCoordinationError, type ErrorCode } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import type { SqliteLedger } from "../../src/infra/sqlite/sqlite-ledger-store.ts";
import { nameChildSession, OWNER, spawnRequest, testCoordinator } from "../support/ledger-fixtures.ts";
import { openTestLedger } from "../support/temp-ledger.ts";
import { openFailingDisk, type DiskFault } from "./failing-disk.ts";

export interface DiskReport {
  readonly plays: number;
  /** Operations of the disk in an undisturbed play. */
  readonly operations: number;
  readonly failures: number;
  /** Spawns that were refused because of the disk, by what their callers were told. */
  readonly refusals: Readonly<Record<string, number>>;
  readonly problems: readonly string[];
}

const SPAWNS = 3;
/** The names that a failing disk may have. */
const DISK_CODES: ReadonlySet<ErrorCode> = new Set(["LEDGER_FULL", "LEDGER_UNAVAILABLE"]);
const KINDS: readonly Omit<DiskFault, "at">[] = [
  { error: "EIO", isLasting: false, isPartial: false },
  { error: "ENOSPC", isLasting: false, isPartial: false },
  { error: "ENOSPC", isLasting: false, isPartial: true },
  { error: "ENOSPC", isLasting: true, isPartial: false },
  { error: "EIO", isLasting: true, isPartial: true },
];

/** An append that somebody was told of. */
interface AcknowledgedAppend {
  readonly runId: CoordinationId;
  readonly stepId: string;
  readonly type: RunEvent["type"];
}

const folder = process.env["FAILING_DISK_FOLDER"] ?? "";
const disk = openFailingDisk();
const problems: string[] = [];
const refusals: Record<string, number> = {};
let failures = 0;
let opened = 0;

const [from = 1, stride = 1] = process.argv.slice(2).map(Number);
const operations = await play("undisturbed");
let plays = 0;
for (let at = from; at <= operations; at += stride)
  for (const kind of KINDS) {
    const fault = { ...kind, at };
    await play(JSON.stringify(fault), fault);
    plays += 1;
  }
const report: DiskReport = { plays, operations, failures, refusals, problems };
process.stdout.write(`${JSON.stringify(report)}\n`);

/** Returns how many operations of the disk there were since it was mended last. */
async function play(name: string, fault?: DiskFault): Promise<number> {
  const place = join(folder, String((opened += 1)));
  mkdirSync(place);
  const path = join(place, "ledger.sqlite");
  const acknowledged: AcknowledgedAppend[] = [];
  disk.arm(fault);
  const store = await openDespiteFaults(path, name);
  const coordinator = testCoordinator({
    store,
    clock: systemClock,
    newCoordinationId: () => `co-${opened}-${acknowledged.length}` as CoordinationId,
  });
  await coordinator.start();
  for (let call = 0; call < SPAWNS; call += 1)
    await spawnDespiteFaults(coordinator, { call: `call-${call}`, acknowledged, name });
  if (fault?.isLasting) {
    repairDisk();
    await spawnOnMendedDisk(coordinator, { call: "call-mended", acknowledged, name });
  }
  // A failure at the end is no loss.
  await coordinator.stop();
  await store.close().catch((error: unknown) => {
    noteFault(error, name);
  });
  const count = repairDisk();
  await checkPlay(path, acknowledged, name);
  rmSync(place, { recursive: true });
  return count;
}

function repairDisk(): number {
  const counts = disk.disarm();
  failures += counts.failures;
  return counts.operations;
}

/** The gateway has lived through the fault: the same process takes the next spawn. */
async function spawnOnMendedDisk(coordinator: Coordinator, spawning: SpawnOrder): Promise<void> {
  try {
    await spawnAndEnd(coordinator, spawning);
  } catch (error) {
    problems.push(`${spawning.name}, once the disk is mended: ${String(error)}`);
  }
}

/** A gateway that cannot open its ledger says so, and can once the disk is mended. */
async function openDespiteFaults(path: string, name: string): Promise<SqliteLedger> {
  try {
    return await openTestLedger(path, { clock: systemClock });
  } catch (error) {
    noteFault(error, name);
    repairDisk();
    return openTestLedger(path, { clock: systemClock });
  }
}

interface SpawnOrder {
  readonly call: string;
  readonly acknowledged: AcknowledgedAppend[];
  readonly name: string;
}

async function spawnDespiteFaults(coordinator: Coordinator, spawning: SpawnOrder): Promise<void> {
  try {
    await spawnAndEnd(coordinator, spawning);
  } catch (error) {
    noteFault(error, spawning.name);
  }
}

async function spawnAndEnd(coordinator: Coordinator, { call, acknowledged }: SpawnOrder): Promise<void> {
  const admission = await coordinator.admitSpawn(spawnRequest({ call, trace: call }));
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId: runId, stepId } = admission.envelope;
  acknowledged.push({ runId, stepId, type: "step.dispatched" });
  const child = nameChildSession(call);
  const claim = { coordinationId: runId, stepId, sourceSession: OWNER, toolCallId: call };
  await coordinator.confirmSpawn(claim, { childSessionKey: child, childRunId: call });
  acknowledged.push({ runId, stepId, type: "step.acknowledged" });
  await coordinator.endChild(child, { outcome: "completed" });
  acknowledged.push({ runId, stepId, type: "step.completed" });
}

function noteFault(error: unknown, name: string): void {
  const code = isCoordinationError(error) ? error.code : undefined;
  if (code !== undefined && DISK_CODES.has(code)) refusals[code] = (refusals[code] ?? 0) + 1;
  else problems.push(`${name}: ${String(error)}`);
}

/** With the disk mended: nothing that was acknowledged is lost, nothing is damaged, and the ledger takes the next spawn. */
async function checkPlay(
  path: string,
  acknowledged: readonly AcknowledgedAppend[],
  name: string,
): Promise<void> {
  const store = await openTestLedger(path, { clock: systemClock });
  try {
    const after = testCoordinator({
      store,
      clock: systemClock,
      newCoordinationId: () => `co-${opened}-after` as CoordinationId,
    });
    const later: AcknowledgedAppend[] = [];
    await spawnAndEnd(after, { call: "call-after", acknowledged: later, name });
    await after.stop();
    const verified = await verifyLedger(store);
    problems.push(...verified.problems.map((problem) => `${name}: ${JSON.stringify(problem)}`));
    for (const each of [...acknowledged, ...later])
      if (!(await hasEvent(store, each))) problems.push(`${name}: lost ${JSON.stringify(each)}`);
  } catch (error) {
    problems.push(`${name}, afterwards: ${String(error)}`);
  } finally {
    await store.close();
  }
}

async function hasEvent(store: SqliteLedger, { runId, stepId, type }: AcknowledgedAppend): Promise<boolean> {
  const events = await store.read(runId, { from: 0, limit: 1_000 });
  return events.some((event) => event.type === type && event.nodeId === stepId);
}
