import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CoordinationId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { openTestLedger } from "../support/temp-ledger.ts";
import { schemaProblems } from "./levels-schemas.ts";
import { end, loop, node, pause, work, workflow, WORKERS } from "./levels-workflows.ts";
import { childOf, ofType, only, openWorld, type Event, type Snapshot, type World } from "./levels-world.ts";

interface Entry {
  readonly id: string;
  readonly content: string;
  readonly tags: readonly string[];
  readonly createdAt: string;
  readonly expiresAt?: string;
}

const write = (id: string, content: string, config: object = {}) =>
  node(id, "openclaw.memory.write", { config: { content, ...config } });
const read = (id: string, into: string) => node(id, "openclaw.memory.read", { config: { into } });

const TTL_MS = 3_600_000;
const DELAY_MS = 120;

const DEFINITIONS = [
  ...WORKERS,
  workflow("keeps", { nodes: [write("keep", "a vein of silver", { tags: ["map"] })] }),
  workflow("keeps-for-long", {
    nodes: [pause("dig", DELAY_MS), write("keep", "for an hour", { ttlMs: TTL_MS })],
  }),
  workflow("keeps-slowly", {
    nodes: [write("one", "slow one"), pause("dig", DELAY_MS), write("two", "slow two")],
  }),
  workflow("looks", { nodes: [read("look", "seen")] }),
  workflow("keeps-and-fails", { nodes: [write("keep", "before the end"), node("end", "core.fail")] }),
  workflow("calls", {
    nodes: [
      pause("before", DELAY_MS),
      node("call", "core.subWorkflow", { config: { workflowId: "keeps-for-long" } }),
      read("look", "seen"),
    ],
  }),
  workflow("calls-isolated", {
    nodes: [
      node("call", "core.subWorkflow", { config: { workflowId: "keeps", memoryScopeIsolation: "isolated" } }),
      read("look", "seen"),
    ],
  }),
  loop("passes-on", {
    plan: [work(["keeps"]), work(["looks"]), end()],
    dispatch: { perWorkerOutputMappings: { looks: { seen: "seen" } } },
  }),
  loop("passes-on-isolated", {
    plan: [work(["keeps", "looks"]), end()],
    dispatch: { memoryScopeIsolation: "isolated", perWorkerOutputMappings: { looks: { seen: "seen" } } },
  }),
  loop("siblings", {
    plan: [work(["keeps-slowly", "keeps", "looks"]), end()],
    dispatch: { perWorkerOutputMappings: { looks: { seen: "seen" } } },
  }),
  workflow("writes-twice", { nodes: [write("one", "first"), write("two", "second"), read("look", "seen")] }),
  workflow("short-lived", {
    nodes: [write("keep", "gone soon", { ttlMs: 1 }), pause("while", 30), read("look", "seen")],
  }),
  workflow("tells-a-secret", {
    nodes: [
      node("keep", "core.identity", {
        config: { memoryAction: "redaction-probe", byokSecretId: "conformance-test-secret" },
      }),
    ],
  }),
  workflow("looks-elsewhere", {
    nodes: [
      node("look", "core.identity", {
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

const seen = ({ variables }: Snapshot): readonly Entry[] => variables["seen"] as readonly Entry[];
const contents = (snapshot: Snapshot): string[] => seen(snapshot).map(({ content }) => content);

async function childEvents(events: readonly Event[]): Promise<Event[][]> {
  const ids = ofType(events, "node.dispatched").map(({ payload }) => String(payload["childRunId"]));
  return Promise.all(ids.map((id) => world.client.events(id)));
}

describe("memory across sub-runs (MAE-2)", () => {
  it("L2-40 is kept by tenant and scope: another tenant finds nothing under the same scope", async () => {
    const { client, other } = world;
    await client.run("keeps", { scopeId: "shared-name" });
    const mine = await client.run("looks", { scopeId: "shared-name" });
    expect(contents(mine.snapshot)).toEqual(["a vein of silver"]);
    const theirs = await other.run("looks", { scopeId: "shared-name" });
    expect(contents(theirs.snapshot)).toEqual([]);
    const elsewhere = await client.run("looks", { scopeId: "another-name" });
    expect(contents(elsewhere.snapshot)).toEqual([]);
  });

  it("L2-41 answers a reference to another tenant's memory with nothing at all", async () => {
    await world.other.run("keeps", { scopeId: "the-others-scope" });
    const { snapshot } = await world.client.run("looks-elsewhere");
    expect(snapshot.variables["crossTenantProbe"]).toEqual([]);
    expect(snapshot.variables["ownerProbe"]).toHaveLength(1);
  });

  it("L2-42 is the parent's for a child, unless the dispatch says otherwise", async () => {
    const { runId, events } = await world.client.run("calls");
    const [child = []] = await childEvents(events);
    expect(only(child, "memory.written").payload["memoryRef"]).toBe(
      only(events, "run.started").payload["memoryScope"],
    );
    expect(only(child, "run.started").payload["memoryScope"]).toBe(runId);
  });

  it("L2-43 shows the parent what the child wrote, once the child has completed", async () => {
    const { snapshot } = await world.client.run("calls");
    expect(contents(snapshot)).toEqual(["for an hour"]);
  });

  it("L2-44 shows every later turn, and its workers, what a child wrote", async () => {
    const { snapshot } = await world.client.run("passes-on");
    expect(contents(snapshot)).toEqual(["a vein of silver"]);
  });

  it("L2-45 is fresh for a child whose dispatch or sub-workflow says isolated", async () => {
    expect(contents((await world.client.run("calls-isolated")).snapshot)).toEqual([]);
    const { snapshot, events } = await world.client.run("passes-on-isolated");
    expect(contents(snapshot)).toEqual([]);
    const scopes = (await childEvents(events)).map(
      (child) => only(child, "run.started").payload["memoryScope"],
    );
    expect(new Set(scopes).size).toBe(2);
  });

  it("L2-46 expires by the time at which the child wrote, not by the parent's start", async () => {
    const { snapshot, events } = await world.client.run("calls");
    const [entry = expect.fail("nothing was kept")] = seen(snapshot);
    const [child = []] = await childEvents(events);
    const writtenAt = Date.parse(only(child, "memory.written").timestamp);
    const startedAt = Date.parse(only(events, "run.started").timestamp);
    expect(Math.abs(Date.parse(entry.expiresAt ?? "") - TTL_MS - writtenAt)).toBeLessThan(50);
    expect(Date.parse(entry.expiresAt ?? "") - TTL_MS - startedAt).toBeGreaterThanOrEqual(2 * DELAY_MS);
  });

  it("L2-47 takes the writes of siblings one after the other, as is advertised", async () => {
    const { body } = await world.client.get("/.well-known/openwop");
    const { executionModel } = body["multiAgent"] as { executionModel: object };
    expect(executionModel).toMatchObject({ crossChildMemoryConcurrency: "strict" });
    const { snapshot, events } = await world.client.run("siblings");
    const [slow = [], quick = []] = await childEvents(events);
    const end = Date.parse(only(slow, "run.completed").timestamp);
    expect(Date.parse(only(quick, "run.started").timestamp)).toBeGreaterThanOrEqual(end);
    expect(contents(snapshot)).toEqual(["a vein of silver", "slow two", "slow one"]);
  });

  it("L2-48 keeps what a child wrote that failed behind it", async () => {
    const { runId } = await world.client.run("keeps-and-fails");
    const { snapshot } = await world.client.run("looks", { scopeId: runId });
    expect(contents(snapshot)).toEqual(["before the end"]);
  });
});

describe("memory and the log (MAE-3)", () => {
  it("L2-50 can be read as of every index of the log", async () => {
    const { runId, events, snapshot } = await world.client.run("writes-twice");
    expect(contents(snapshot)).toEqual(["second", "first"]);
    const [, second = expect.fail("it was written once")] = ofType(events, "memory.written");
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
    // What expired in memory is kept as long as runs can be forked.
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
    const told = ofType(events, "memory.written");
    expect(told.map(({ nodeId }) => nodeId)).toEqual(["one", "two"]);
    for (const { payload } of told) {
      expect(payload).toMatchObject({
        memoryRef: expect.any(String) as string,
        memoryId: expect.any(String) as string,
      });
      expect(JSON.stringify(payload)).not.toMatch(/first|second/u);
    }
  });

  it("L2-61 is an entry of the official schema", async () => {
    const { snapshot } = await world.client.run("writes-twice");
    for (const entry of seen(snapshot)) expect(schemaProblems("memory-entry", entry)).toEqual([]);
  });

  it("L2-62 does not surface when its time is over", async () => {
    expect(contents((await world.client.run("short-lived")).snapshot)).toEqual([]);
  });

  it("L2-63 holds no secret: it is masked before it is written, and nothing of it is in the log", async () => {
    const { snapshot, events } = await world.client.run("tells-a-secret");
    const { content } = snapshot.variables["memoryReadback"] as Entry;
    expect(content).toBe("the key is [REDACTED:conformance-test-secret]");
    expect(JSON.stringify([snapshot, events])).not.toContain("canary-secret");
  });

  it("L2-64 of a child is told in the child's own log", async () => {
    const { events } = await world.client.run("calls");
    expect(ofType(events, "memory.written")).toEqual([]);
    expect(ofType(await world.client.events(childOf(events)), "memory.written")).toHaveLength(1);
  });
});
