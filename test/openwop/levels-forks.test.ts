/** Owns: the memory of forks (RFC 0039, MAE-3), what is refused of them, and what the protocol's suite asserts, over HTTP. */
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fork, FORKED, forkToEnd, forkOf, stripVolatile } from "./levels-forks.ts";
import { filterByType, openWorld, type Event, type World } from "./levels-world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld(FORKED);
});
afterAll(() => world.close());

describe("memory of forks (MAE-3)", () => {
  const listContents = (entries: unknown): string[] =>
    (entries as readonly { readonly content: string }[]).map(({ content }) => content);

  it("L4-30 is what was there at the place of the fork, not what is there now", async () => {
    const source = await world.client.run("keeps", { scopeId: "shared-30" });
    expect(listContents(source.snapshot.variables["seen"])).toEqual(["second", "first"]);
    const [, second] = filterByType(source.events, "memory.written");
    await world.client.run("keeps", { scopeId: "shared-30" });
    const { snapshot } = await forkToEnd(world.client, source.runId, {
      mode: "branch",
      fromSeq: second?.sequence,
    });
    expect(listContents(snapshot.variables["seen"])).toEqual(["second", "first"]);
    const replay = await forkToEnd(world.client, source.runId);
    expect(replay.snapshot.variables).toEqual(source.snapshot.variables);
  });

  it("L4-31 is written apart from its source's: neither finds what the other keeps", async () => {
    const runId = await world.client.start("keeps-and-asks", { scopeId: "shared-31" });
    await world.client.until(runId, "waiting-approval");
    const fork = await forkOf(world.client, runId, {
      mode: "branch",
      fromSeq: (await world.client.events(runId)).length,
    });
    for (const id of [fork, runId]) {
      await world.client.resolve(id, "gate", { action: "accept" });
      const { variables } = await world.client.until(id, "completed");
      expect(listContents(variables["seen"])).toEqual(["second", "first"]);
    }
    const later = await world.client.run("keeps", { scopeId: "shared-31" });
    expect(listContents(later.snapshot.variables["seen"]).length).toBe(4);
  });

  it("L4-32 is the same for a fork of a fork", async () => {
    const source = await world.client.run("keeps");
    const [, second] = filterByType(source.events, "memory.written");
    const first = await forkToEnd(world.client, source.runId, { mode: "branch", fromSeq: second?.sequence });
    const again = await forkToEnd(world.client, first.runId, { mode: "replay" });
    expect(stripVolatile(again.events)).toEqual(stripVolatile(first.events));
    const branch = await forkToEnd(world.client, again.runId, { mode: "branch", fromSeq: second?.sequence });
    expect(listContents(branch.snapshot.variables["seen"])).toEqual(["second", "first"]);
  });
});

describe("what is refused of a fork", () => {
  it("L4-40 is a place behind the end of the log, before anything else is looked at", async () => {
    const old = await openWorld(FORKED, { retentionMs: 0 });
    try {
      const { runId, events } = await old.client.run("line");
      const reply = await fork(old.client, runId, { mode: "replay", fromSeq: events.length + 1 });
      expect([reply.status, reply.body["error"]]).toEqual([422, "invalid_from_seq"]);
      expect(reply.body["details"]).toMatchObject({ fromSeq: events.length + 1, maxFromSeq: events.length });
    } finally {
      await old.close();
    }
  });

  it("L4-41 is a run that ended longer ago than runs can be forked", async () => {
    const old = await openWorld(FORKED, { retentionMs: 0 });
    try {
      const { runId } = await old.client.run("line");
      for (const mode of ["replay", "branch"]) {
        const reply = await fork(old.client, runId, { mode, fromSeq: 0 });
        expect([reply.status, reply.body["error"]]).toEqual([422, "replay_memory_snapshot_unavailable"]);
        expect(reply.body["details"]).toMatchObject({
          fromSeq: 0,
          sourceRunId: runId,
          reason: "retention_expired",
        });
      }
    } finally {
      await old.close();
    }
  });

  it("L4-42 is a run whose log is damaged before the place, with what and where", async () => {
    const broken = await openWorld(FORKED);
    try {
      const { runId, events } = await broken.client.run("line");
      await broken.stop();
      const database = new Database(broken.ledgerPath);
      database.exec("drop trigger event_no_update");
      database.exec(
        `update event set payload = '{"nodeId":"a","outputs":{"forged":true}}' where sequence = 2`,
      );
      database.close();
      await broken.restart();
      for (const [mode, fromSeq] of [
        ["replay", 0],
        ["branch", 3],
      ] as const) {
        const reply = await fork(broken.client, runId, { mode, fromSeq });
        expect([reply.status, reply.body["error"]]).toEqual([422, "replay_memory_snapshot_unavailable"]);
        expect(reply.body["details"]).toMatchObject({
          fromSeq,
          sourceRunId: runId,
          reason: "event_log_unavailable",
          sequence: 2,
          problem: "event_changed",
          oldestAvailableIdx: 0,
          newestAvailableIdx: 2,
        });
      }
      expect((await fork(broken.client, runId, { mode: "branch", fromSeq: 2 })).status).toBe(201);
      expect(events.length).toBe(8);
    } finally {
      await broken.close();
    }
  });

  it("L4-43 is a run of another tenant, like one that is not there; the fork is its source's owner's", async () => {
    const source = await world.client.run("line");
    for (const [id, client] of [
      ["nobody", world.client],
      [source.runId, world.other],
    ] as const) {
      const reply = await fork(client, id, { mode: "replay" });
      expect([reply.status, reply.body["error"]]).toEqual([404, "not_found"]);
    }
    const copied = await forkToEnd(world.client, source.runId);
    expect(copied.snapshot["owner"]).toEqual(source.snapshot["owner"]);
    expect((await world.other.get(`/v1/runs/${copied.runId}`)).status).toBe(404);
  });

  it("L4-44 is nothing that was asked under the same key before: that is answered again", async () => {
    const { runId } = await world.client.run("line");
    const headers = { "idempotency-key": "fork-once" };
    const path = `/v1/runs/${runId}:fork`;
    const first = await world.client.post(path, { mode: "replay" }, headers);
    const again = await world.client.post(path, { mode: "replay" }, headers);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect(again.headers["openwop-idempotent-replay"]).toBe("true");
    const other = await world.client.post(path, { mode: "branch", fromSeq: 1 }, headers);
    expect([other.status, other.body["error"]]).toEqual([409, "idempotency_key_mismatch"]);
  });
});

describe("the protocol's suite", () => {
  it("B-85 forks in both modes, and refuses what makes no sense", async () => {
    const { runId } = await world.client.run("line");
    for (const body of [
      { fromSeq: 0, mode: "replay" },
      { fromSeq: 0, mode: "branch", runOptionsOverlay: {} },
    ]) {
      const reply = await fork(world.client, runId, body);
      expect([reply.status, reply.body]).toMatchObject([
        201,
        { sourceRunId: runId, mode: body.mode, fromSeq: 0 },
      ]);
      expect(reply.body["runId"]).not.toBe(runId);
      await world.client.until(String(reply.body["runId"]), "completed");
    }
    const refused = [
      [runId, { fromSeq: -1, mode: "branch" }, 400],
      [runId, { fromSeq: 1.5, mode: "replay" }, 400],
      [runId, { fromSeq: 99_999, mode: "branch" }, 422],
      [
        runId,
        { fromSeq: 0, mode: "replay", runOptionsOverlay: { configurable: { recursionLimit: 50 } } },
        400,
      ],
      ["openwop-conformance-no-such-run-id", { fromSeq: 0, mode: "replay" }, 404],
      [runId, { mode: "branch" }, 400],
    ] as const;
    for (const [id, body, status] of refused)
      expect((await fork(world.client, id, body)).status).toBe(status);
  });

  it("B-86 forks from behind a node in the middle, and two such forks are the same", async () => {
    const source = await world.client.run("line");
    const completed = source.events.find(({ type, nodeId }) => type === "node.completed" && nodeId === "b");
    const fromSeq = (completed?.sequence ?? 0) + 1;
    const tails = await Promise.all(
      [1, 2].map(async () => {
        const { runId } = await forkToEnd(world.client, source.runId, { mode: "replay", fromSeq });
        const { body } = await world.client.get(`/v1/runs/${runId}/events/poll?lastSequence=0&timeout=1`);
        const events = (body["events"] as Event[]).filter(({ sequence }) => sequence >= fromSeq);
        return events.map(({ type, nodeId = null, payload }) => ({ type, nodeId, payload }));
      }),
    );
    expect(tails[0]?.length).toBe(3);
    expect(tails[1]).toEqual(tails[0]);
    const branch = await forkToEnd(world.client, source.runId, {
      mode: "branch",
      fromSeq,
      runOptionsOverlay: {},
    });
    expect(branch.snapshot.status).toBe("completed");
  });

  it("B-87 replays a run twice to the same events", async () => {
    const source = await world.client.run("line");
    const both = await Promise.all(
      [1, 2].map(() => forkToEnd(world.client, source.runId, { mode: "replay", fromSeq: 0 })),
    );
    const [one, other] = both.map(({ events }) =>
      events.map(({ type, nodeId, payload }) => ({ type, nodeId, payload })),
    );
    expect(other).toEqual(one);
  });

  it("B-88 takes what a node did that is another each time for what it was", async () => {
    const source = await world.client.run("varies");
    const { events } = await forkToEnd(world.client, source.runId);
    expect(stripVolatile(events)).toEqual(stripVolatile(source.events));
    const listStripped = (log: readonly Event[]) =>
      stripVolatile(log.filter(({ nodeId }) => nodeId === "tool"));
    expect(listStripped(events)).toEqual(listStripped(source.events));
  });

  it("B-89 tells the same entries of memory in a replay, and no other", async () => {
    const source = await world.client.run("keeps");
    const { events } = await forkToEnd(world.client, source.runId);
    const listIds = (log: readonly Event[]) =>
      filterByType(log, "memory.written").map(({ payload }) => payload["memoryId"]);
    expect(listIds(source.events).length).toBe(2);
    expect(listIds(events)).toEqual(listIds(source.events));
  });
});
