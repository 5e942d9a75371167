import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CoordinationId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { openTestLedger } from "../support/temp-ledger.ts";
import { findSchemaProblems } from "./levels-schemas.ts";
import { end, createLoop, createNode, pause, work, createWorkflow, WORKERS } from "./levels-workflows.ts";
import {
  childOf,
  filterByType,
  findOnly,
  openWorld,
  type Event,
  type Snapshot,
  type World,
} from "./levels-world.ts";

interface Entry {
  readonly id: string;
  readonly content: string;
  readonly tags: readonly string[];
  readonly createdAt: string;
  readonly expiresAt?: string;
}

const write = (id: string, content: string, config: object = {}) =>
  createNode(id, "openclaw.memory.write", { config: { content, ...config } });
const read = (id: string, into: string) => createNode(id, "openclaw.memory.read", { config: { into } });

const TTL_MS = 3_600_000;
const DELAY_MS = 120;

const DEFINITIONS = [
  ...WORKERS,
  createWorkflow("keeps", { nodes: [write("keep", "a vein of silver", { tags: ["map"] })] }),
  createWorkflow("keeps-for-long", {
    nodes: [pause("dig", DELAY_MS), write("keep", "for an hour", { ttlMs: TTL_MS })],
  }),
  createWorkflow("keeps-slowly", {
    nodes: [write("one", "slow one"), pause("dig", DELAY_MS), write("two", "slow two")],
  }),
  createWorkflow("looks", { nodes: [read("look", "seen")] }),
  createWorkflow("keeps-and-fails", {
    nodes: [write("keep", "before the end"), createNode("end", "core.fail")],
  }),
  createWorkflow("calls", {
    nodes: [
      pause("before", DELAY_MS),
      createNode("call", "core.subWorkflow", { config: { workflowId: "keeps-for-long" } }),
      read("look", "seen"),
    ],
  }),
  createWorkflow("calls-isolated", {
    nodes: [
      createNode("call", "core.subWorkflow", {
        config: { workflowId: "keeps", memoryScopeIsolation: "isolated" },
      }),
      read("look", "seen"),
    ],
  }),
  createLoop("passes-on", {
    plan: [work(["keeps"]), work(["looks"]), end()],
    dispatch: { perWorkerOutputMappings: { looks: { seen: "seen" } } },
  }),
  createLoop("passes-on-isolated", {
    plan: [work(["keeps", "looks"]), end()],
    dispatch: { memoryScopeIsolation: "isolated", perWorkerOutputMappings: { looks: { seen: "seen" } } },
  }),
  createLoop("siblings", {
    plan: [work(["keeps-slowly", "keeps", "looks"]), end()],
    dispatch: { perWorkerOutputMappings: { looks: { seen: "seen" } } },
  }),
  createWorkflow("writes-twice", {
    nodes: [write("one", "first"), write("two", "second"), read("look", "seen")],
  }),
  createWorkflow("short-lived", {
    nodes: [write("keep", "gone soon", { ttlMs: 1 }), pause("while", 30), read("look", "seen")],
  }),
  createWorkflow("tells-a-secret", {
    nodes: [
      createNode("keep", "core.identity", {
        config: { memoryAction: "redaction-probe", byokSecretId: "conformance-test-secret" },
      }),
    ],
  }),
  createWorkflow("looks-elsewhere", {
    nodes: [
      createNode("look", "core.identity", {
        config: { memoryAction: "cross-tenant-probe", probeMemoryRef: "the-others-scope" },
      }),
    ],
  }),
];

let world: World;
beforeAll(async () => {
  world = await openWorld(DEFINITIONS);
});
afterAll(() => world.close());

const listSeen = ({ variables }: Snapshot): readonly Entry[] => variables["seen"] as readonly Entry[];
const listContents = (snapshot: Snapshot): string[] => listSeen(snapshot).map(({ content }) => content);

async function listChildEvents(events: readonly Event[]): Promise<Event[][]> {
  const ids = filterByType(events, "node.dispatched").map(({ payload }) => String(payload["childRunId"]));
  return Promise.all(ids.map((id) => world.client.events(id)));
}

describe("memory across sub-runs (MAE-2)", () => {
  it("L2-40 is kept by tenant and scope: another tenant finds nothing under the same scope", async () => {
    const { client, other } = world;
    await client.run("keeps", { scopeId: "shared-name" });
    const mine = await client.run("looks", { scopeId: "shared-name" });
    expect(listContents(mine.snapshot)).toEqual(["a vein of silver"]);
    const theirs = await other.run("looks", { scopeId: "shared-name" });
    expect(listContents(theirs.snapshot)).toEqual([]);
    const elsewhere = await client.run("looks", { scopeId: "another-name" });
    expect(listContents(elsewhere.snapshot)).toEqual([]);
  });

  it("L2-41 answers a reference to another tenant's memory with nothing at all", async () => {
    await world.other.run("keeps", { scopeId: "the-others-scope" });
    const { snapshot } = await world.client.run("looks-elsewhere");
    expect(snapshot.variables["crossTenantProbe"]).toEqual([]);
    expect(snapshot.variables["ownerProbe"]).toHaveLength(1);
  });

  it("L2-42 is the parent's for a child, unless the dispatch says otherwise", async () => {
    const { runId, events } = await world.client.run("calls");
    const [child = []] = await listChildEvents(events);
    expect(findOnly(child, "memory.written").payload["memoryRef"]).toBe(
      findOnly(events, "run.started").payload["memoryScope"],
    );
    expect(findOnly(child, "run.started").payload["memoryScope"]).toBe(runId);
  });

  it("L2-43 shows the parent what the child wrote, once the child has completed", async () => {
    const { snapshot } = await world.client.run("calls");
    expect(listContents(snapshot)).toEqual(["for an hour"]);
  });

  it("L2-44 shows every later turn, and its workers, what a child wrote", async () => {
    const { snapshot } = await world.client.run("passes-on");
    expect(listContents(snapshot)).toEqual(["a vein of silver"]);
  });

  it("L2-45 is fresh for a child whose dispatch or sub-workflow says isolated", async () => {
    expect(listContents((await world.client.run("calls-isolated")).snapshot)).toEqual([]);
    const { snapshot, events } = await world.client.run("passes-on-isolated");
    expect(listContents(snapshot)).toEqual([]);
    const scopes = (await listChildEvents(events)).map(
      (child) => findOnly(child, "run.started").payload["memoryScope"],
    );
    expect(new Set(scopes).size).toBe(2);
  });

  it("L2-46 expires by the time at which the child wrote, not by the parent's start", async () => {
    const { snapshot, events } = await world.client.run("calls");
    const [entry = expect.fail("nothing was kept")] = listSeen(snapshot);
    const [child = []] = await listChildEvents(events);
    const writtenAt = Date.parse(findOnly(child, "memory.written").timestamp);
    const startedAt = Date.parse(findOnly(events, "run.started").timestamp);
    expect(Math.abs(Date.parse(entry.expiresAt ?? "") - TTL_MS - writtenAt)).toBeLessThan(50);
    expect(Date.parse(entry.expiresAt ?? "") - TTL_MS - startedAt).toBeGreaterThanOrEqual(2 * DELAY_MS);
  });

  it("L2-47 takes the writes of siblings one after the other, as is advertised", async () => {
    const { body } = await world.client.get("/.well-known/openwop");
    const { executionModel } = body["multiAgent"] as { executionModel: object };
    expect(executionModel).toMatchObject({ crossChildMemoryConcurrency: "strict" });
    const { snapshot, events } = await world.client.run("siblings");
    const [slow = [], quick = []] = await listChildEvents(events);
    const end = Date.parse(findOnly(slow, "run.completed").timestamp);
    expect(Date.parse(findOnly(quick, "run.started").timestamp)).toBeGreaterThanOrEqual(end);
    expect(listContents(snapshot)).toEqual(["a vein of silver", "slow two", "slow one"]);
  });

  it("L2-48 keeps what a child wrote that failed behind it", async () => {
    const { runId } = await world.client.run("keeps-and-fails");
    const { snapshot } = await world.client.run("looks", { scopeId: runId });
    expect(listContents(snapshot)).toEqual(["before the end"]);
  });
});

describe("memory and the log (MAE-3)", () => {
  it("L2-50 can be read as of every index of the log", async () => {
    const { runId, events, snapshot } = await world.client.run("writes-twice");
    expect(listContents(snapshot)).toEqual(["second", "first"]);
    const [, second = expect.fail("it was written once")] = filterByType(events, "memory.written");
    const ledger = await openTestLedger(world.ledgerPath, { mode: "read" });
    const asOf = (sequence: number) =>
      ledger.workflows.memory.list(
        { tenant: "first", scope: runId },
        { now: Date.now() as EpochMs, limit: 10, asOf: { runId: runId as CoordinationId, sequence } },
      );
    expect((await asOf(0)).map(({ content }) => content)).toEqual([]);
    expect((await asOf(second.sequence)).map(({ content }) => content)).toEqual(["first"]);
    expect((await asOf(second.sequence + 1)).map(({ content }) => content)).toEqual(["second", "first"]);
    await ledger.close();
  });

  it("L2-51 refuses a fork whose memory it cannot serve, with replay_memory_snapshot_unavailable", async () => {
    // Expired entries of memory are kept as long as runs can be forked.
    const old = await openWorld(DEFINITIONS, { retentionMs: 0 });
    const { runId } = await old.client.run("writes-twice");
    const { status, body } = await old.client.post(`/v1/runs/${runId}:fork`, {
      mode: "replay",
      fromSeq: 0,
    });
    await old.close();
    expect(status).toBe(422);
    expect(body).toMatchObject({
      error: "replay_memory_snapshot_unavailable",
      message: expect.stringMatching(/\S/u) as string,
      details: { fromSeq: 0, sourceRunId: runId, reason: "retention_expired" },
    });
  });
});

describe("what is kept", () => {
  it("L2-60 is told by memory.written, once for each write and without the content, as is advertised", async () => {
    const { body } = await world.client.get("/.well-known/openwop");
    expect(body["memory"]).toMatchObject({
      supported: true,
      attribution: { supported: true, emitsWriteEvents: true },
    });
    const { events } = await world.client.run("writes-twice");
    const memoryEvents = filterByType(events, "memory.written");
    expect(memoryEvents.map(({ nodeId }) => nodeId)).toEqual(["one", "two"]);
    for (const { payload } of memoryEvents) {
      expect(payload).toMatchObject({
        memoryRef: expect.any(String) as string,
        memoryId: expect.any(String) as string,
      });
      expect(JSON.stringify(payload)).not.toMatch(/first|second/u);
    }
  });

  it("L2-61 is an entry of the official schema", async () => {
    const { snapshot } = await world.client.run("writes-twice");
    for (const entry of listSeen(snapshot)) expect(findSchemaProblems("memory-entry", entry)).toEqual([]);
  });

  it("L2-62 does not surface when its time is over", async () => {
    expect(listContents((await world.client.run("short-lived")).snapshot)).toEqual([]);
  });

  it("L2-63 holds no secret: it is masked before it is written, and nothing of it is in the log", async () => {
    const { snapshot, events } = await world.client.run("tells-a-secret");
    const { content } = snapshot.variables["memoryReadback"] as Entry;
    expect(content).toBe("the key is [REDACTED:conformance-test-secret]");
    expect(JSON.stringify([snapshot, events])).not.toContain("canary-secret");
  });

  it("L2-64 of a child is told in the child's own log", async () => {
    const { events } = await world.client.run("calls");
    expect(filterByType(events, "memory.written")).toEqual([]);
    expect(filterByType(await world.client.events(childOf(events)), "memory.written")).toHaveLength(1);
  });
});
