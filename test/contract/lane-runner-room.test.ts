import { describe, expect, it } from "vitest";
import type { Lane } from "../../src/agents/coordination/contracts/envelope.ts";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import type { StepAdmission } from "../../src/agents/coordination/ports/provider-use.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createAgent, createScene } from "./lane-scene.ts";

describe("given a lane whose queue is full", () => {
  const createFullLane = async (queueMax = 4) => {
    const all = createScene({ queueMax });
    const jobs = Array.from({ length: queueMax + 1 }, (_, index) => all.start(String(index)));
    await waitUntilSettled();
    const heard: Lane[] = [];
    const stop = all.lanes.onRoom((lane) => heard.push(lane));
    return { ...all, jobs, heard, stop };
  };

  it("when more is handed in, it is refused at once and never runs", async () => {
    const { start, started, jobs } = await createFullLane();
    const refused = start("too much");
    await waitUntilSettled();
    expect(refused.state()).toBe("full");
    for (const job of jobs) job.end();
    await waitUntilSettled();
    expect(started).not.toContain("too much");
  });

  it("when some is handed in to another lane, that is not refused", async () => {
    const { start } = await createFullLane();
    const other = start("other", { lane: "escalation" });
    await waitUntilSettled();
    expect(other.state()).toBe("running");
  });

  it("when one place becomes free, there is no room yet; when half is free, there is", async () => {
    const { lanes, jobs, heard } = await createFullLane(4);
    expect(lanes.room("data")).toBe(0);
    jobs[0]!.end();
    await waitUntilSettled();
    expect([lanes.room("data"), heard]).toEqual([0, []]);
    jobs[1]!.end();
    await waitUntilSettled();
    expect([lanes.room("data"), heard]).toEqual([2, ["data"]]);
  });

  it("when it empties further, room is told of once", async () => {
    const { lanes, jobs, heard } = await createFullLane(4);
    for (const job of jobs) job.end();
    await waitUntilSettled();
    expect([lanes.room("data"), heard]).toEqual([4, ["data"]]);
  });

  it("when it fills and empties again, room is told of again", async () => {
    const { start, jobs, heard } = await createFullLane(4);
    for (const job of jobs) job.end();
    await waitUntilSettled();
    const again = Array.from({ length: 5 }, (_, index) => start(`again ${index}`));
    for (const job of again) job.end();
    await waitUntilSettled();
    expect(heard).toEqual(["data", "data"]);
  });

  it("a queue of one has room as soon as its place is free", async () => {
    const { lanes, jobs, heard } = await createFullLane(1);
    expect(lanes.room("data")).toBe(0);
    jobs[0]!.end();
    await waitUntilSettled();
    expect([lanes.room("data"), heard]).toEqual([1, ["data"]]);
  });

  it("when a listener has ended, it hears nothing more", async () => {
    const { jobs, heard, stop } = await createFullLane();
    stop();
    for (const job of jobs) job.end();
    await waitUntilSettled();
    expect(heard).toEqual([]);
  });

  it("a listener may hand in more work at once", async () => {
    const { lanes, jobs, started, start } = await createFullLane(4);
    lanes.onRoom((lane) => {
      while (lanes.room(lane) > 0 && started.length < 50) start(`more ${started.length}`).end();
    });
    for (const job of jobs) job.end();
    await lanes.idle();
    expect(started.length).toBeGreaterThanOrEqual(50);
  });

  it("a lane that never was full tells nothing of room", async () => {
    const { lanes, start } = createScene({ queueMax: 1 });
    const heard: Lane[] = [];
    lanes.onRoom((lane) => heard.push(lane));
    for (const name of ["a", "b", "c"]) {
      start(name).end();
      await waitUntilSettled();
    }
    expect(heard).toEqual([]);
  });
});

/** Holds back the steps of one agent while it is closed. */
function createDoor(agentId: string): StepAdmission & { readonly setClosed: (isClosed: boolean) => void } {
  const listeners = new Set<() => void>();
  let closedFor: ReadonlySet<AgentId> = new Set();
  let version = 0;
  return {
    canBeginStep: (agent) => !closedFor.has(agent),
    heldBackAgents: () => closedFor,
    version: () => version,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    setClosed: (isClosed) => {
      closedFor = new Set(isClosed ? [agentId as AgentId] : []);
      version += 1;
      for (const listener of listeners) listener();
    },
  };
}

describe("given a full queue of requests whose provider closes", () => {
  const createClosedLane = async () => {
    const door = createDoor("main");
    const scene = createScene({ queueMax: 2 }, door);
    const jobs = ["a", "b", "c"].map((name) => scene.start(name));
    await waitUntilSettled();
    const heard: Lane[] = [];
    scene.lanes.onRoom((lane) => heard.push(lane));
    door.setClosed(true);
    return { ...scene, door, jobs, heard };
  };

  it("there is room for others at once, and room is told of", async () => {
    const { lanes, start, started, jobs, heard } = await createClosedLane();
    expect([lanes.room("data"), lanes.metrics().data.waiting]).toEqual([2, 2]);
    expect(heard).toContain("data");
    start("other", createAgent("other"));
    jobs[0]!.end();
    await waitUntilSettled();
    expect(started).toEqual(["a", "other"]);
  });

  it("there is none when it opens, until half of the queue is free again, which is told", async () => {
    const { lanes, start, started, jobs, heard, door } = await createClosedLane();
    const other = start("other", createAgent("other"));
    door.setClosed(false);
    expect(lanes.room("data")).toBe(0);
    heard.length = 0;
    for (const job of [...jobs, other]) job.end();
    await waitUntilSettled();
    expect([started.length, lanes.room("data"), heard]).toEqual([4, 2, ["data"]]);
  });

  it("they begin when nobody is to be held back any more", async () => {
    const { lanes, started, jobs } = await createClosedLane();
    jobs[0]!.end();
    await waitUntilSettled();
    expect(started).toEqual(["a"]);
    lanes.stopHoldingBack();
    for (const job of jobs) job.end();
    await lanes.idle();
    expect(started).toEqual(["a", "b", "c"]);
  });
});
