import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { ContentStore } from "../../src/agents/coordination/ports/content-store.ts";
import type { LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { createRandom } from "../support/random.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";
import type { AcknowledgedOperation, ChildDeed } from "./kill-loop-worker.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";

/** `LOOP_ROUNDS=5000` for a night. */
const ROUNDS = chooseCampaignSize("LOOP_ROUNDS", { short: 40, long: 200 });
const SEED = Number(process.env["LOOP_SEED"] ?? 20_261_122);
const CHECK_EVERY = 20;
/** Then another ledger begins, because each check reads all of one. */
const ROUNDS_PER_LEDGER = 500;
const TEST_TIMEOUT_MS = 90_000 + ROUNDS * 1_000;
/** A worker is killed after it has told of so many operations at most, and then so many milliseconds later at most. */
const ACKNOWLEDGEMENTS_MAX = 60;
const DELAY_MS_MAX = 12;

const worker = fileURLToPath(new URL("kill-loop-worker.ts", import.meta.url));

interface Worker {
  readonly process: ChildProcess;
  readonly ready: Promise<unknown>;
}

/** Node takes longer to start than a round takes: the next worker starts while this one works. */
function startWorker(path: string, round: number): Worker {
  const child = spawn(process.execPath, [worker, path, String(round)], {
    env: { ...process.env, NODE_COMPILE_CACHE: `${path}-compiled` },
    stdio: ["pipe", "pipe", "inherit", "pipe"],
  });
  return { process: child, ready: once(child.stdout as Readable, "data") };
}

/** Lets a worker work, kills it at a random moment and returns what it had been told of as done. */
async function workAndKill(
  { process: child, ready }: Worker,
  random: () => number,
): Promise<AcknowledgedOperation[]> {
  const chunks: Buffer[] = [];
  const killAt = Math.floor(random() * ACKNOWLEDGEMENTS_MAX);
  const delayMs = random() * DELAY_MS_MAX;
  let count = 0;
  let killing: NodeJS.Timeout | undefined;
  (child.stdio[3] as Readable).on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    count += chunk.filter((byte) => byte === 10).length;
    if (count >= killAt) killing ??= setTimeout(() => child.kill("SIGKILL"), delayMs);
  });
  await ready;
  child.stdin?.write("go\n");
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  expect({ code, signal }).toEqual({ code: null, signal: "SIGKILL" });
  const lines = Buffer.concat(chunks).toString().split("\n");
  // A line that the kill tore was not acknowledged to anyone.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as AcknowledgedOperation);
}

/** How often each thing happened according to the log, and that every log is gapless. */
async function countHappened(store: LedgerStore): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const count = (subject: string): void => void counts.set(subject, (counts.get(subject) ?? 0) + 1);
  for (let page = await store.list({ limit: 500 }); page.length > 0;) {
    for (const { runId, length } of page) {
      const events = await store.read(runId, { from: 0, limit: 100_000 });
      expect(events.map(({ sequence }) => sequence)).toEqual(Array.from({ length }, (_, index) => index));
      for (const event of events) for (const subject of meaningOf(event)) count(subject);
    }
    page = await store.list({ limit: 500, after: page.at(-1)! });
  }
  return counts;
}

/** Each child does one of these at most, and once. */
const DEEDS_BY_FACT: Partial<Record<RunEvent["type"], ChildDeed>> = {
  "child.observed": "observed",
  "step.progressed": "progressed",
  "result.shortened": "shortened",
  "message.suppressed": "suppressed",
  "privilege.refused": "refused a call",
  "usage.recorded": "used",
};

function meaningOf(event: RunEvent): string[] {
  switch (event.type) {
    case "step.admitted":
      return [`admitted ${event.payload.call.toolCallId}`, `step ${event.runId} ${event.payload.stepId}`];
    case "step.acknowledged":
      return [
        `confirmed ${event.payload.childSessionKey}`,
        `acknowledged ${event.runId} ${event.payload.stepId}`,
      ];
    case "step.completed":
    case "step.failed":
    case "step.timed_out":
      return [`ended ${event.runId} ${event.payload.stepId}`];
    case "coordination.terminal":
      return [`terminal ${event.runId}`];
    default: {
      const deed = DEEDS_BY_FACT[event.type];
      return deed && event.nodeId ? [`${deed} ${event.runId} ${event.nodeId}`] : [];
    }
  }
}

function nameAcknowledged({ operation, runId, stepId, key }: AcknowledgedOperation): string {
  return operation === "admitted" || operation === "confirmed"
    ? `${operation} ${key}`
    : `${operation} ${runId} ${stepId}`;
}

/** Long texts of which the log tells and that cannot be read whole. */
async function listUnreadable(store: LedgerStore & ContentStore): Promise<string[]> {
  const unreadable: string[] = [];
  for (const { runId } of await store.list({ limit: 100_000 }))
    for (const event of await store.read(runId, { from: 0, limit: 100_000 })) {
      if (event.type !== "result.shortened") continue;
      const { text, chars } = event.payload;
      if ((await store.get(text.sha256))?.length !== chars) unreadable.push(text.sha256);
    }
  return unreadable;
}

async function checkLedger(path: string, acknowledged: readonly AcknowledgedOperation[]): Promise<void> {
  const store = await openTestLedger(path, { mode: "read" });
  const counts = await countHappened(store);
  const unreadable = await listUnreadable(store);
  await store.close();
  expect(unreadable).toEqual([]);
  expect(acknowledged.map(nameAcknowledged).filter((subject) => counts.get(subject) !== 1)).toEqual([]);
  expect([...counts].filter(([, times]) => times !== 1)).toEqual([]);
}

interface Rounds {
  readonly first: number;
  readonly count: number;
}

/** Begins a ledger, kills a worker on it in each round, and returns what was acknowledged. */
async function killWorkers({ first, count }: Rounds, random: () => number): Promise<AcknowledgedOperation[]> {
  using folder = createTempFolder();
  const path = folder.file("ledger.sqlite");
  const acknowledged: AcknowledgedOperation[] = [];
  let next = startWorker(path, first);
  for (let round = first; round < first + count; round += 1) {
    const current = next;
    next = startWorker(path, round + 1);
    acknowledged.push(...(await workAndKill(current, random)));
    if (round % CHECK_EVERY === CHECK_EVERY - 1) await checkLedger(path, acknowledged);
  }
  next.process.kill("SIGKILL");
  await checkLedger(path, acknowledged);
  const store = await openTestLedger(path);
  const verification = await verifyLedger(store);
  await store.close();
  expect(verification).toMatchObject({ ok: true, problems: [] });
  return acknowledged;
}

it(
  `no acknowledged operation is lost or done twice when the process is killed ${ROUNDS} times at random moments`,
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const random = createRandom(SEED);
    const operations = new Set<AcknowledgedOperation["operation"]>();
    let acknowledged = 0;
    for (let kills = 0; kills < ROUNDS;) {
      const count = Math.min(ROUNDS_PER_LEDGER, ROUNDS - kills);
      const ofLedger = await killWorkers({ first: kills, count }, random);
      acknowledged += ofLedger.length;
      for (const { operation } of ofLedger) operations.add(operation);
      kills += count;
      process.stdout.write(
        `${kills} kills: ${acknowledged} acknowledged operations, each once in its ledger\n`,
      );
    }
    expect(acknowledged).toBeGreaterThan(ROUNDS * 10);
    expect([...operations]).toEqual(expect.arrayContaining(Object.values(DEEDS_BY_FACT)));
  },
);
