/** A process that is stopped for longer than its lease writes nothing to what another one took over meanwhile. */
import Database from "better-sqlite3";
import { afterAll, describe, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowEvent } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { openAnyLedger } from "../support/any-ledger.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { startServe, type ServeProcess } from "../support/serve-process.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { checkLog } from "../support/workflow-plays.ts";

const LEASE_MS = 2_000;
/** From the last sign of an owner until its run goes on elsewhere, where the machine is not busy. */
const TAKEOVER_MS_MAX = 1.5 * LEASE_MS;
/** However busy it is. */
const SLOW_TAKEOVER_MS_MAX = 3 * LEASE_MS;
const ROUNDS = 3;
const TIMEOUT_MS = 180_000;

const DEFINITIONS = [
  createWorkflow("paced", {
    nodes: [createNode("wait", "core.delay", { delayMs: 1_000 }), createNode("gate", "core.approvalGate")],
    edges: [createEdge("wait>gate")],
  }),
];

interface LedgerFixture extends AsyncDisposable {
  readonly place: string;
  /** True where nobody is in the middle of writing. */
  isIdle(): boolean;
}

function createFile(): Promise<LedgerFixture> {
  const folder = createTempFolder();
  const place = folder.file("ledger.sqlite");
  return Promise.resolve({
    place,
    isIdle: () => {
      const database = new Database(place, { timeout: 0 });
      try {
        database.exec("begin immediate; rollback");
        return true;
      } catch {
        return false;
      } finally {
        database.close();
      }
    },
    [Symbol.asyncDispose]: () => {
      folder[Symbol.dispose]();
      return Promise.resolve();
    },
  });
}

/** The server ends the transaction of a process that is stopped in its middle. */
async function createSchema(): Promise<LedgerFixture> {
  const schema = await createTestSchema();
  return {
    place: schema.url,
    isIdle: () => true,
    [Symbol.asyncDispose]: () => schema[Symbol.asyncDispose](),
  };
}

/** Stops a process; not where it holds the lock of a ledger file, which others could not take from it. */
async function pause({ process: child }: ServeProcess, place: LedgerFixture): Promise<void> {
  await waitFor(
    () => {
      child.kill("SIGSTOP");
      if (place.isIdle()) return true;
      child.kill("SIGCONT");
      return false;
    },
    { what: "a moment in which the process writes nothing" },
  );
}

async function readEvents(place: string, runId: string): Promise<WorkflowEvent[]> {
  const ledger = await openAnyLedger(place, { mode: "read" });
  const events = await ledger.workflows.read(runId as CoordinationId, { from: 0, limit: 1_000 });
  await ledger.close();
  return events;
}

async function ownerOf(place: string, runId: string): Promise<number | undefined> {
  const ledger = await openAnyLedger(place, { mode: "read" });
  const owners = await ledger.workflows.owners.ownersOf([runId as CoordinationId]);
  await ledger.close();
  return owners.get(runId as CoordinationId)?.token;
}

/** Returns how long it took until the run went on in the other process. */
async function takeOver(place: LedgerFixture, owner: ServeProcess, other: ServeProcess): Promise<number> {
  const { body } = await owner.ask("POST", "/v1/runs", { body: { workflowId: "paced", inputs: {} } });
  const runId = String(body["runId"]);
  await pause(owner, place);
  const pausedAt = performance.now();
  const token = await ownerOf(place.place, runId);
  expect(token).toBe(1);
  await waitFor(async () => (await ownerOf(place.place, runId)) === 2, {
    what: "the run to be taken over",
    timeoutMs: 30_000,
  });
  const tookMs = performance.now() - pausedAt;
  await waitFor(
    async () => (await other.ask("GET", `/v1/runs/${runId}`)).body["status"] === "waiting-approval",
    { what: "the run to go on" },
  );
  const before = await readEvents(place.place, runId);
  owner.process.kill("SIGCONT");
  // It wakes with the delay long over, and would end it: what it answers shows that it has had its turns.
  for (let turn = 0; turn < 5; turn += 1) {
    const answer = await owner.ask("GET", `/v1/runs/${runId}`);
    expect(answer.body["status"]).toBe("waiting-approval");
  }
  expect(await readEvents(place.place, runId)).toEqual(before);
  // From now on, asking it makes a request to the new owner.
  const path = `/v1/runs/${runId}/interrupts/gate`;
  const accept = { body: { resumeValue: { action: "accept" } } };
  expect((await owner.ask("POST", path, accept)).status).toBe(200);
  await waitFor(async () => (await owner.ask("GET", `/v1/runs/${runId}`)).body["status"] === "completed", {
    what: "the run to end",
  });
  const events = await readEvents(place.place, runId);
  checkLog(events);
  expect(events.filter(({ type }) => type === "run.resuming")).toHaveLength(1);
  expect(await ownerOf(place.place, runId)).toBe(2);
  return tookMs;
}

describe.each([
  ["a file", createFile],
  ["a server", createSchema],
] as const)("on %s, an owner that is stopped for longer than its lease", (_, createPlace) => {
  const running: ServeProcess[] = [];

  afterAll(async () => {
    await Promise.all(running.map((serve) => serve.end("SIGKILL")));
  });

  it(
    "loses its runs in time, and writes nothing to them when it goes on",
    async () => {
      await using place = await createPlace();
      using folder = createTempFolder();
      const options = { ledger: place.place, folder: folder.path, definitions: DEFINITIONS };
      const args = ["--lease", String(LEASE_MS / 1_000)];
      const [one, other] = [await startServe({ ...options, args }), await startServe({ ...options, args })];
      running.push(one, other);
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1)
        times.push(round % 2 === 0 ? await takeOver(place, one, other) : await takeOver(place, other, one));
      expect(Math.min(...times)).toBeLessThan(TAKEOVER_MS_MAX);
      expect(Math.max(...times)).toBeLessThan(SLOW_TAKEOVER_MS_MAX);
      await Promise.all(running.map((serve) => serve.end("SIGKILL")));
    },
    TIMEOUT_MS,
  );
});
