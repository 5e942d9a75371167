/** Several `serve` processes on one PostgreSQL database: any of them answers, any of them may be killed. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { hasRunEnded } from "../../src/agents/coordination/contracts/workflows/workflow-summary.ts";
import { checkLog } from "../support/workflow-plays.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import {
  startServe,
  type ServeAnswer,
  type ServeProcess,
  type StreamedEvent,
} from "../support/serve-process.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createFleetWorkflows } from "../support/workflow-definitions.ts";

const TIMEOUT_MS = 180_000;
const PROCESSES = 3;

const DEFINITIONS = createFleetWorkflows(["a", "b", "c", "d"], 300);

let schema: TestSchema;
let folder: TempFolder;
const fleet: ServeProcess[] = [];

async function start(): Promise<ServeProcess> {
  const args = ["--lease", "2", "--interrupt-key", folder.file("interrupt-key")];
  return startServe({ ledger: schema.url, folder: folder.path, definitions: DEFINITIONS, args });
}

beforeAll(async () => {
  schema = await createTestSchema();
  folder = createTempFolder();
  writeFileSync(folder.file("interrupt-key"), randomBytes(32), { mode: 0o600 });
  fleet.push(...(await Promise.all(Array.from({ length: PROCESSES }, start))));
}, TIMEOUT_MS);

afterAll(async () => {
  await Promise.all(fleet.map((serve) => serve.end("SIGKILL")));
  await schema[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function getMember(index: number): ServeProcess {
  const serve = fleet[index % PROCESSES];
  if (!serve) throw new Error("the fleet has not started");
  return serve;
}

/** As a crash does; another process takes its place. */
async function killAndReplace(index: number): Promise<void> {
  await getMember(index).end("SIGKILL");
  fleet[index % PROCESSES] = await start();
}

async function createRun(serve: ServeProcess, workflowId: string, key?: string): Promise<ServeAnswer> {
  return serve.ask("POST", "/v1/runs", {
    body: { workflowId, inputs: {} },
    headers: key === undefined ? {} : { "idempotency-key": key },
  });
}

async function startRun(serve: ServeProcess, workflowId: string): Promise<string> {
  const { status, body } = await createRun(serve, workflowId);
  expect(status).toBe(201);
  return String(body["runId"]);
}

async function awaitStatus(serve: () => ServeProcess, runId: string, status: string): Promise<ServeAnswer> {
  return waitFor(
    async () => {
      const snapshot = await serve().ask("GET", `/v1/runs/${runId}`);
      return snapshot.body["status"] === status && snapshot;
    },
    { what: `${runId} to be ${status}`, timeoutMs: 60_000 },
  );
}

it(
  "loses no run that was acknowledged and ends each once, whichever process is killed while they go on",
  async () => {
    const acknowledged: string[] = [];
    for (let kill = 0; kill < PROCESSES; kill += 1) {
      const creating = Array.from({ length: 12 }, async (_, index) => {
        const answer = await createRun(getMember(index), index % 3 === 0 ? "nested" : "steps").catch(
          () => undefined,
        );
        if (answer?.status === 201) acknowledged.push(String(answer.body["runId"]));
      });
      // After one more of them than the time before, so that others are in the middle.
      await Promise.any(creating.slice(kill));
      await killAndReplace(kill);
      await Promise.all(creating);
    }
    expect(acknowledged.length).toBeGreaterThan(PROCESSES);
    await using ledger = await openLedger();
    const { workflows } = ledger.store;
    for (const runId of acknowledged) await awaitStatus(() => getMember(1), runId, "completed");
    // The children too, and what was begun without an answer.
    await waitFor(async () => (await workflows.list({ limit: 1, status: "running" })).length === 0, {
      what: "all runs to end",
      timeoutMs: 60_000,
    });
    for (const { runId, length, summary } of await workflows.list({ limit: 1_000 })) {
      expect(hasRunEnded(summary.status)).toBe(true);
      checkLog(await workflows.read(runId, { from: 0, limit: length }));
    }
  },
  TIMEOUT_MS,
);

async function openLedger() {
  const store = await openTestPostgres(schema.url);
  return { store, [Symbol.asyncDispose]: () => store.close() };
}

it(
  "lets an event stream move to another process without a gap, also when the run's owner is killed",
  async () => {
    const runId = await startRun(getMember(0), "steps");
    const seen: StreamedEvent[] = [];
    try {
      for await (const event of getMember(0).follow(runId)) {
        seen.push(event);
        if (event.event === "node.completed") await getMember(0).end("SIGKILL");
      }
    } catch {
      // The connection ended with its process.
    }
    expect(seen.at(-1)?.event).not.toBe("run.completed");
    for await (const event of getMember(1).follow(runId, seen.at(-1)?.id)) seen.push(event);
    fleet[0] = await start();
    expect(seen.at(-1)?.event).toBe("run.completed");
    expect(seen.map(({ id }) => Number(id))).toEqual(seen.map((_, index) => index));
    expect(seen.filter(({ event }) => event === "run.completed")).toHaveLength(1);
  },
  TIMEOUT_MS,
);

it(
  "answers a key with the same answer everywhere, and after the process is gone that gave it",
  async () => {
    const first = await createRun(getMember(0), "gated", "key-1");
    expect(first.status).toBe(201);
    const again = await createRun(getMember(1), "gated", "key-1");
    await killAndReplace(0);
    const later = await createRun(getMember(2), "gated", "key-1");
    for (const { status, body, headers } of [again, later]) {
      expect({ status, body }).toEqual({ status: first.status, body: first.body });
      expect(headers.get("openwop-idempotent-replay")).toBe("true");
    }
  },
  TIMEOUT_MS,
);

it(
  "answers the link of a question at another process, while its owner lives and after it was killed",
  async () => {
    for (const isKilled of [false, true]) {
      const runId = await startRun(getMember(0), "gated");
      const { body } = await awaitStatus(() => getMember(0), runId, "waiting-approval");
      const { interruptToken = "" } = body["interrupt"] as { readonly interruptToken?: string };
      const path = `/v1/interrupts/${interruptToken}`;
      if (isKilled) await killAndReplace(0);
      expect((await getMember(1).ask("GET", path)).status).toBe(200);
      const answered = await getMember(1).ask("POST", path, { body: { resumeValue: { action: "accept" } } });
      expect(answered.status).toBe(200);
      await awaitStatus(() => getMember(2), runId, "completed");
      await using ledger = await openLedger();
      const events = await ledger.store.workflows.read(runId as CoordinationId, { from: 0, limit: 1_000 });
      checkLog(events);
      expect(events.filter(({ type }) => type === "interrupt.resolved")).toHaveLength(1);
    }
  },
  TIMEOUT_MS,
);

it(
  "cancels, at any process, what another one drives",
  async () => {
    const runId = await startRun(getMember(0), "nested");
    expect((await getMember(1).ask("POST", `/v1/runs/${runId}/cancel`, { body: {} })).status).toBe(200);
    await awaitStatus(() => getMember(2), runId, "cancelled");
    await using ledger = await openLedger();
    const { workflows } = ledger.store;
    const isOpen = async (): Promise<boolean> =>
      (await workflows.list({ limit: 99, status: "running" })).some(
        ({ summary }) => summary.parent?.runId === runId,
      );
    await waitFor(async () => !(await isOpen()), { what: "the child to end" });
  },
  TIMEOUT_MS,
);
