import { describe, expect, it } from "vitest";
import type { Lane } from "../../src/agents/coordination/contracts/envelope.ts";
import type { EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { LaneRunner } from "../../src/agents/coordination/ports/lane-runner.ts";
import { waitUntilSettled, START_MS } from "../support/fake-clock.ts";
import { createAgent, request, createScene, createSession, listStates } from "./lane-scene.ts";

describe("given a lane with a free place", () => {
  it("when work is handed in, it starts and run settles with its value", async () => {
    const { lanes } = createScene();
    await expect(lanes.run(request(), () => Promise.resolve(7))).resolves.toEqual({ kind: "ran", value: 7 });
  });

  it("when work rejects, run rejects with the same error and the place is free", async () => {
    const { lanes, start } = createScene();
    const error = new Error("broke");
    await expect(lanes.run(request(), () => Promise.reject(error))).rejects.toBe(error);
    const next = start("next");
    await waitUntilSettled();
    expect(next.state()).toBe("running");
    expect(lanes.metrics().data.running).toBe(1);
  });

  it("when work throws before it returns a promise, run rejects and the place is free", async () => {
    const { lanes, start } = createScene();
    const error = new Error("broke at once");
    const thrown = lanes.run(request(), () => {
      throw error;
    });
    await expect(thrown).rejects.toBe(error);
    const next = start("next");
    await waitUntilSettled();
    expect(next.state()).toBe("running");
  });
});

describe("given a lane at its concurrency", () => {
  it("when more is handed in, it waits until a place is free", async () => {
    const { start } = createScene({ data: 2 });
    const jobs = ["a", "b", "c"].map((name) => start(name));
    await waitUntilSettled();
    expect(listStates(jobs)).toEqual(["running", "running", "waiting"]);
    jobs[0]!.end();
    await waitUntilSettled();
    expect(listStates(jobs)).toEqual(["ran", "running", "running"]);
  });

  it("when another lane gets work, that does not wait", async () => {
    const { start } = createScene();
    const jobs = [
      start("a"),
      start("b"),
      start("c", { lane: "control" }),
      start("d", { lane: "escalation" }),
    ];
    await waitUntilSettled();
    expect(listStates(jobs)).toEqual(["running", "waiting", "running", "running"]);
  });

  it("when places become free, those that wait start in the order of their ranks", async () => {
    const { start, started } = createScene({ agingMs: 1_000 });
    const first = start("first");
    const jobs = [
      start("low", { priority: "low" }),
      start("short path"),
      start("long path", { criticalPathMs: 9 }),
      start("high", { priority: "high" }),
      start("low for long", { priority: "low", readyAtMs: (START_MS - 5_000) as EpochMs }),
    ];
    first.end();
    for (const job of jobs) job.end();
    await waitUntilSettled();
    expect(started).toEqual(["first", "low for long", "high", "long path", "short path", "low"]);
  });

  it("when an act is asked for, it does not wait behind steps", async () => {
    const { lanes, start } = createScene();
    const jobs = [start("a"), start("b")];
    await expect(lanes.operate("question", () => Promise.resolve("done"))).resolves.toBe("done");
    expect(listStates(jobs)).toEqual(["running", "waiting"]);
  });
});

describe("given acts", () => {
  it("when very many are asked for, eight are under way at once", async () => {
    const { lanes } = createScene();
    const gate = Promise.withResolvers<undefined>();
    let running = 0;
    const acts = Array.from({ length: 20 }, () =>
      lanes.operate("question", async () => {
        running += 1;
        await gate.promise;
        running -= 1;
      }),
    );
    await waitUntilSettled();
    expect(running).toBe(8);
    gate.resolve(undefined);
    await Promise.all(acts);
    expect(running).toBe(0);
  });

  it("when very many of one kind do not end, those of the other kind run", async () => {
    const { lanes } = createScene();
    const gate = Promise.withResolvers<undefined>();
    const questions = Array.from({ length: 20 }, () => lanes.operate("question", () => gate.promise));
    await expect(lanes.operate("stop", () => Promise.resolve("stopped"))).resolves.toBe("stopped");
    gate.resolve(undefined);
    await Promise.all(questions);
  });

  it("when one fails, its promise rejects and the next one runs", async () => {
    const { lanes } = createScene();
    const error = new Error("no answer");
    await expect(lanes.operate("question", () => Promise.reject(error))).rejects.toBe(error);
    await expect(lanes.operate("question", () => Promise.resolve(1))).resolves.toBe(1);
  });
});

describe("given a cap per session or per agent", () => {
  it("when a session is at its cap, its work waits and the work behind it starts", async () => {
    const { start } = createScene({ data: 4, perSessionMax: 1 });
    const jobs = [
      start("a1", createSession("a")),
      start("a2", createSession("a")),
      start("b1", createSession("b")),
    ];
    await waitUntilSettled();
    expect(listStates(jobs)).toEqual(["running", "waiting", "running"]);
    jobs[2]!.end();
    await waitUntilSettled();
    expect(jobs[1]!.state()).toBe("waiting");
    jobs[0]!.end();
    await waitUntilSettled();
    expect(jobs[1]!.state()).toBe("running");
  });

  it("when an agent is at its cap, work of all sessions waits for it", async () => {
    const { start } = createScene({ data: 4, perAgentMax: 1 });
    const jobs = [
      start("a", { ...createSession("a"), ...createAgent("x") }),
      start("b", { ...createSession("b"), ...createAgent("x") }),
      start("c", { ...createSession("a"), ...createAgent("y") }),
    ];
    await waitUntilSettled();
    expect(listStates(jobs)).toEqual(["running", "waiting", "running"]);
  });

  it("when both caps are set, both hold", async () => {
    const { start } = createScene({ data: 9, perSessionMax: 2, perAgentMax: 1 });
    const jobs = [
      start("1", { ...createSession("a"), ...createAgent("x") }),
      start("2", { ...createSession("a"), ...createAgent("x") }),
      start("3", { ...createSession("a"), ...createAgent("y") }),
      start("4", { ...createSession("a"), ...createAgent("z") }),
      start("5", { ...createSession("b"), ...createAgent("z") }),
    ];
    await waitUntilSettled();
    expect(listStates(jobs)).toEqual(["running", "waiting", "running", "waiting", "running"]);
  });

  it("caps count over all lanes, and a place given back on one lane starts work on another", async () => {
    const { start } = createScene({ perSessionMax: 1 });
    const onData = start("data");
    const onControl = start("control", { lane: "control" });
    await waitUntilSettled();
    expect(onControl.state()).toBe("waiting");
    onData.end();
    await waitUntilSettled();
    expect(onControl.state()).toBe("running");
  });

  it.each<[string, Lane, Lane]>([
    ["the lane that gave it back", "data", "control"],
    ["another lane", "control", "data"],
  ])("when %s has the first in rank, that one gets the place", async (_, from, other) => {
    const { start, started } = createScene({ perSessionMax: 1, control: 1 });
    const first = start("first", { lane: "data" });
    start("urgent", { lane: from, priority: "critical" });
    start("later", { lane: other });
    first.end();
    await waitUntilSettled();
    expect(started).toEqual(["first", "urgent"]);
  });

  it("when the first in rank cannot start because its lane is busy, the place goes to another lane", async () => {
    const { start, started } = createScene({ perSessionMax: 1, control: 1 });
    start("busy", { lane: "control", ...createSession("b") });
    const first = start("first", createSession("a"));
    start("urgent", { lane: "control", priority: "critical", ...createSession("a") });
    start("later", createSession("a"));
    first.end();
    await waitUntilSettled();
    expect(started).toEqual(["busy", "first", "later"]);
  });

  it("when a place with a cap is released early, what the cap held back starts", async () => {
    const { start } = createScene({ data: 4, perSessionMax: 1 });
    const jobs = [start("a"), start("b")];
    await waitUntilSettled();
    jobs[0]!.slot().release();
    await waitUntilSettled();
    expect(listStates(jobs)).toEqual(["running", "running"]);
  });
});

describe("given work that gives its place back early", () => {
  it("a parent that waits for a child on a lane of one place does not block it", async () => {
    const { lanes } = createScene({ data: 1, perSessionMax: 1, perAgentMax: 1 });
    const parent = lanes.run(request(), async (slot) => {
      slot.release();
      const child = await lanes.run(request(), () => Promise.resolve("child"));
      return { child };
    });
    await expect(parent).resolves.toEqual({
      kind: "ran",
      value: { child: { kind: "ran", value: "child" } },
    });
  });

  it("when it goes on, it does not count as running and its promise settles with the work", async () => {
    const { lanes, start } = createScene();
    const job = start("a");
    await waitUntilSettled();
    job.slot().release();
    await waitUntilSettled();
    expect([lanes.metrics().data.running, job.state()]).toEqual([0, "running"]);
    job.end();
    await waitUntilSettled();
    expect(job.state()).toBe("ran");
  });

  it("when it fails later, its promise rejects", async () => {
    const { start } = createScene();
    const job = start("a");
    await waitUntilSettled();
    job.slot().release();
    job.fail(new Error("later"));
    await waitUntilSettled();
    expect(job.state()).toBe("failed");
  });

  it("when it releases twice and then ends, one place was given back", async () => {
    const { lanes, start } = createScene();
    const jobs = ["a", "b", "c"].map((name) => start(name));
    await waitUntilSettled();
    jobs[0]!.slot().release();
    jobs[0]!.slot().release();
    jobs[0]!.end();
    await waitUntilSettled();
    expect(listStates(jobs)).toEqual(["ran", "running", "waiting"]);
    expect(lanes.metrics().data.running).toBe(1);
  });
});

describe("idle", () => {
  const isIdle = async (lanes: LaneRunner): Promise<boolean> => {
    let idle = false;
    void lanes.idle().then(() => (idle = true));
    await waitUntilSettled();
    return idle;
  };

  it("when nothing was ever handed in, it resolves", async () => {
    expect(await isIdle(createScene().lanes)).toBe(true);
  });

  it("waits for what is queued, running or released, and for acts", async () => {
    const { lanes, start } = createScene();
    const jobs = ["a", "b"].map((name) => start(name));
    const act = Promise.withResolvers<undefined>();
    void lanes.operate("question", () => act.promise);
    await waitUntilSettled();
    jobs[0]!.slot().release();
    expect(await isIdle(lanes)).toBe(false);
    jobs[1]!.end();
    expect(await isIdle(lanes)).toBe(false);
    jobs[0]!.end();
    expect(await isIdle(lanes)).toBe(false);
    act.resolve(undefined);
    expect(await isIdle(lanes)).toBe(true);
  });

  it("waits for work that a cap holds back", async () => {
    const { lanes, start } = createScene({ perSessionMax: 1 });
    const jobs = [start("a"), start("b", { lane: "control" })];
    await waitUntilSettled();
    jobs[0]!.end();
    expect(await isIdle(lanes)).toBe(false);
    jobs[1]!.end();
    expect(await isIdle(lanes)).toBe(true);
  });

  it("resolves after work that failed", async () => {
    const { lanes, start } = createScene();
    const job = start("a");
    await waitUntilSettled();
    job.fail(new Error("broke"));
    expect(await isIdle(lanes)).toBe(true);
  });
});

describe("metrics", () => {
  it("count what runs, waits, was admitted and refused, and how long it waited", async () => {
    const { clock, lanes, start } = createScene({ queueMax: 2 });
    const jobs = ["a", "b", "c", "d"].map((name) => start(name));
    await waitUntilSettled();
    clock.jump(START_MS + 500);
    jobs[0]!.end();
    await waitUntilSettled();
    clock.jump(START_MS + 700);
    jobs[1]!.end();
    await waitUntilSettled();
    expect(lanes.metrics().data).toEqual({
      concurrency: 1,
      running: 1,
      waiting: 0,
      queueMax: 2,
      admitted: 3,
      refused: 1,
      waitedMs: { total: 1_200, max: 700 },
    });
    expect(lanes.metrics().control).toMatchObject({ concurrency: 2, running: 0, admitted: 0 });
  });

  it("count a clock that was put back as no wait", async () => {
    const { clock, lanes, start } = createScene();
    const jobs = [start("a"), start("b")];
    await waitUntilSettled();
    clock.jump(START_MS - 9_000);
    jobs[0]!.end();
    await waitUntilSettled();
    expect(lanes.metrics().data).toMatchObject({ admitted: 2, waitedMs: { total: 0, max: 0 } });
  });
});
