/** Owns: what the protocol asks of replays and branches (RFC 0041, replay.md), in real runs over HTTP. */
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { printEvents, fork, FORKED, forkToEnd, forkOf, stripVolatile } from "./levels-forks.ts";
import { filterByType, findOnly, openWorld, type EndedRun, type Event, type World } from "./levels-world.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld(FORKED);
});
afterAll(() => world.close());

/** A run that goes through everything: several turns, a doubt, memory, a worker that fails. */
async function runWork(): Promise<EndedRun> {
  const runId = await world.client.start("works");
  await world.client.until(runId, "waiting-approval");
  expect((await world.client.resolve(runId, "boss", { action: "accept" })).status).toBe(200);
  const snapshot = await world.client.until(runId, "completed");
  return { runId, snapshot, events: await world.client.events(runId) };
}

const countRunsInLedger = (): number => {
  const database = new Database(world.ledgerPath, { readonly: true });
  try {
    return (database.prepare("select count(*) as runs from run").get() as { runs: number }).runs;
  } finally {
    database.close();
  }
};

describe("a replay", () => {
  it("L4-01 from behind every turn of the loop has the state that the run had there, and the same end", async () => {
    const source = await runWork();
    const turns = filterByType(source.events, "runOrchestrator.decided");
    expect(turns.length).toBe(4);
    for (const { sequence } of turns) {
      const { events, snapshot } = await forkToEnd(world.client, source.runId, {
        mode: "replay",
        fromSeq: sequence + 1,
      });
      expect(stripVolatile(events)).toEqual(stripVolatile(source.events));
      expect([snapshot.status, snapshot.variables]).toEqual(["completed", source.snapshot.variables]);
    }
  });

  it("L4-02 begins, from every event on, with the bytes of its source", async () => {
    const source = await runWork();
    for (let fromSeq = 0; fromSeq <= source.events.length; fromSeq += 3)
      for (const mode of ["replay", "branch"]) {
        const copied = await forkOf(world.client, source.runId, { mode, fromSeq });
        const events = await world.client.events(copied);
        expect(printEvents(events.slice(0, fromSeq))).toBe(printEvents(source.events.slice(0, fromSeq)));
        await world.client.post(`/v1/runs/${copied}/cancel`);
      }
  });

  it("L4-03 is its source's whole log, without the volatile keys, with the same causes", async () => {
    const source = await runWork();
    const { events } = await forkToEnd(world.client, source.runId);
    expect(stripVolatile(events)).toEqual(stripVolatile(source.events));
    const ids = new Set(events.map(({ eventId }) => eventId));
    for (const { causationId } of events) if (causationId !== undefined) expect(ids).toContain(causationId);
  });

  it("L4-04 looks like its source in the snapshot too", async () => {
    const source = await runWork();
    const { snapshot, runId } = await forkToEnd(world.client, source.runId);
    const { sourceRunId, fromSeq, mode, ...rest } = snapshot;
    expect({ sourceRunId, fromSeq, mode }).toEqual({ sourceRunId: source.runId, fromSeq: 0, mode: "replay" });
    expect(stripVolatile(rest)).toEqual(stripVolatile(source.snapshot));
    expect((await world.client.get(`/v1/runs/${runId}/ancestry`)).body).toMatchObject({
      runId,
      parent: null,
    });
  });

  it("L4-05 starts no child run, and names those of its source", async () => {
    const source = await runWork();
    const runs = countRunsInLedger();
    const { events } = await forkToEnd(world.client, source.runId);
    expect(countRunsInLedger()).toBe(runs + 1);
    const listChildren = (log: readonly Event[]) =>
      filterByType(log, "node.dispatched").map(({ payload }) => payload["childRunId"]);
    expect(listChildren(events)).toEqual(listChildren(source.events));
    expect(new Set(listChildren(events)).size).toBe(4);
  });

  it("L4-06 takes the answers that people gave, and asks nobody again", async () => {
    const runId = await world.client.start("approves");
    await world.client.until(runId, "waiting-approval");
    await world.client.resolve(runId, "gate", { action: "accept" });
    await world.client.until(runId, "completed");
    const { events, snapshot } = await forkToEnd(world.client, runId);
    expect(snapshot.status).toBe("completed");
    expect(stripVolatile(events)).toEqual(stripVolatile(await world.client.events(runId)));
  });

  it("L4-07 of a run that waits for somebody waits too, and takes an answer of its own", async () => {
    const runId = await world.client.start("approves");
    await world.client.until(runId, "waiting-approval");
    const copied = await forkOf(world.client, runId);
    const { interrupt } = await world.client.until(copied, "waiting-approval");
    expect(stripVolatile(await world.client.events(copied))).toEqual(
      stripVolatile(await world.client.events(runId)),
    );
    const token = interrupt?.interruptToken ?? "";
    const reply = await world.client.post(`/v1/interrupts/${token}`, { resumeValue: { action: "accept" } });
    expect(reply.body).toMatchObject({ runId: copied });
    await world.client.until(copied, "completed");
    expect((await world.client.snapshot(runId)).status).toBe("waiting-approval");
  });

  it("L4-08 tells recorded facts as they were recorded: what was kept, and the limit that was gone over", async () => {
    const kept = await world.client.run("keeps");
    const capped = await world.client.run("counts", { configurable: { recursionLimit: 2 } });
    const looped = await world.client.run("endless", { configurable: { maxLoopIterations: 2 } });
    for (const [source, type] of [
      [kept, "memory.written"],
      [capped, "cap.breached"],
      [looped, "cap.breached"],
    ] as const) {
      const { events } = await forkToEnd(world.client, source.runId);
      expect(filterByType(source.events, type).length).toBeGreaterThan(0);
      expect(printEvents(filterByType(events, type))).toBe(printEvents(filterByType(source.events, type)));
      expect(stripVolatile(events)).toEqual(stripVolatile(source.events));
    }
  });

  it("L4-09 of a failed run fails as it did", async () => {
    const source = await world.client.run("fails");
    const { events, snapshot } = await forkToEnd(world.client, source.runId);
    expect([snapshot.status, snapshot.error]).toEqual(["failed", source.snapshot.error]);
    expect(stripVolatile(events)).toEqual(stripVolatile(source.events));
  });

  it("L4-10 from behind the last event is everything that its source was", async () => {
    const source = await world.client.run("line");
    const { events } = await forkToEnd(world.client, source.runId, {
      mode: "replay",
      fromSeq: source.events.length,
    });
    expect(printEvents(events)).toBe(printEvents(source.events));
  });

  it("L4-11 of a cancelled run does again what is pure, and is not cancelled itself", async () => {
    const runId = await world.client.start("quick-wait");
    await world.client.post(`/v1/runs/${runId}/cancel`);
    const { snapshot, events } = await forkToEnd(world.client, runId);
    expect(snapshot.status).toBe("completed");
    expect(filterByType(events, "node.cancelled", "run.cancelled")).toEqual([]);
    expect(findOnly(events, "run.completed").sequence).toBe(events.length - 1);
  });

  it("L4-12 is the same for a run that was paused, and one whose host was stopped meanwhile", async () => {
    const runId = await world.client.start("quick-wait");
    const paused = await world.client.post(`/v1/runs/${runId}:pause`, { drainPolicy: "immediate" });
    expect(paused.status).toBe(202);
    await world.restart();
    await world.client.post(`/v1/runs/${runId}:resume`);
    await world.client.until(runId, "completed");
    const { events } = await forkToEnd(world.client, runId);
    expect(stripVolatile(events)).toEqual(stripVolatile(await world.client.events(runId)));
  });
});

describe("a branch", () => {
  it("L4-20 does its own work: its children are others, and its events have ids of its own", async () => {
    const source = await world.client.run("calls");
    const fromSeq = findOnly(source.events, "node.dispatched").sequence;
    const { events, runId, snapshot } = await forkToEnd(world.client, source.runId, {
      mode: "branch",
      fromSeq,
    });
    const findChild = (log: readonly Event[]) => findOnly(log, "node.dispatched").payload["childRunId"];
    expect(findChild(events)).not.toBe(findChild(source.events));
    expect(snapshot.variables).toEqual(source.snapshot.variables);
    expect(events.slice(fromSeq).every(({ eventId }) => eventId.startsWith(`${runId}:`))).toBe(true);
  });

  it("L4-21 has the options that were put in place of its source's", async () => {
    const source = await world.client.run("endless", {
      configurable: { maxLoopIterations: 4, mine: "kept" },
    });
    const runOptionsOverlay = { configurable: { maxLoopIterations: 2 } };
    for (const fromSeq of [0, 6]) {
      const { snapshot, events } = await forkToEnd(world.client, source.runId, {
        mode: "branch",
        fromSeq,
        runOptionsOverlay,
      });
      expect(snapshot["configurable"]).toEqual({ maxLoopIterations: 2, mine: "kept" });
      expect(findOnly(events, "cap.breached").payload).toMatchObject({ limit: 2, observed: 3 });
    }
  });

  it("L4-22 refuses options that cannot apply, each with what is wrong", async () => {
    const { runId } = await world.client.run("line");
    for (const [body, message] of [
      [{ mode: "branch", fromSeq: 1, runOptionsOverlay: { tags: ["t"] } }, /tags/],
      [{ mode: "branch", fromSeq: 1, runOptionsOverlay: { metadata: {} } }, /metadata/],
      [{ mode: "branch", fromSeq: 1, runOptionsOverlay: { inputs: {} } }, /inputs/],
      [
        { mode: "branch", fromSeq: 1, runOptionsOverlay: { configurable: { recursionLimit: 0 } } },
        /recursionLimit/,
      ],
      [{ mode: "branch", fromSeq: 1, configurable: {} }, /configurable/],
      [{ mode: "replay", runOptionsOverlay: { configurable: { recursionLimit: 1 } } }, /overlay/],
    ] as const) {
      const reply = await fork(world.client, runId, body);
      expect([reply.status, reply.body["error"]]).toEqual([400, "validation_error"]);
      expect(String(reply.body["message"])).toMatch(message);
    }
    const anew = await forkToEnd(world.client, runId, {
      mode: "branch",
      fromSeq: 0,
      runOptionsOverlay: { tags: ["t"], metadata: { a: 1 } },
    });
    expect(anew.snapshot).toMatchObject({ tags: ["t"], metadata: { a: 1 } });
  });

  it("L4-23 of a run whose time is long over has time of its own", async () => {
    const runId = await world.client.start("waits", { configurable: { runTimeoutMs: 300 } });
    await world.client.until(runId, "failed");
    const copied = await forkOf(world.client, runId, {
      mode: "branch",
      fromSeq: 4,
      runOptionsOverlay: { configurable: { runTimeoutMs: 500 } },
    });
    expect((await world.client.until(copied, "running", "failed")).status).toBe("running");
    expect(await world.client.until(copied, "failed")).toMatchObject({ error: { code: "run_timeout" } });
  });
});
