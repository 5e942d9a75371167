import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  end,
  createLoop,
  createNode,
  createNoop,
  work,
  createWorkflow,
  WORKERS,
} from "./levels-workflows.ts";
import {
  chainOf,
  childOf,
  filterByType,
  findOnly,
  openWorld,
  phasesOf,
  type Event,
  type World,
} from "./levels-world.ts";

const DEFINITIONS = [
  ...WORKERS,
  createLoop("one-worker", { plan: [work(["worker-good"]), end()] }),
  createLoop("two-turns", { plan: [work(["worker-good"]), work(["worker-other"]), end()] }),
  createLoop("several", { plan: [work(["worker-good", "worker-bad", "worker-other"]), end()] }),
  createLoop("ends-at-once", { plan: [end(), work(["worker-good"])] }),
  createLoop("asks", { plan: [{ kind: "ask-user", prompt: "Which mine?" }, work(["worker-good"]), end()] }),
  createLoop("unsure", { plan: [work(["worker-good"], 0.2), end()] }),
  createLoop("never-ends", { plan: Array.from({ length: 8 }, () => work(["worker-good"])) }),
  createLoop("slow-second", { plan: [work(["worker-good"]), work(["worker-gated"]), end()] }),
  // Without an edge, as clients may register it: the pair is a loop all the same.
  createWorkflow("no-edges", {
    nodes: [
      createNode("boss", "core.orchestrator.supervisor", {
        config: { mockDispatchPlan: [work(["worker-good"]), end()] },
      }),
      createNode("handing", "core.dispatch"),
    ],
    edges: [],
  }),
  createWorkflow("behind-others", {
    nodes: [
      createNoop("first"),
      createNode("boss", "core.orchestrator.supervisor", { config: { mockDispatchPlan: [end()] } }),
      createNode("handing", "core.dispatch"),
    ],
    edges: [
      ["first", "boss"],
      ["boss", "handing"],
      ["handing", "boss"],
    ],
  }),
];

let world: World;
beforeAll(async () => {
  world = await openWorld(DEFINITIONS);
});
afterAll(() => world.close());

const decisionsOf = (events: readonly Event[]): unknown[] =>
  filterByType(events, "runOrchestrator.decided").map(
    ({ payload }) => (payload["decision"] as { kind: string }).kind,
  );

const listTypesFrom = (events: readonly Event[], type: string): string[] => {
  const from = events.findIndex((event) => event.type === type);
  return events.slice(from).map((event) => event.type);
};

describe("the execution loop", () => {
  it("L1-01 runs wherever a supervisor feeds a dispatch, with the edges of the loop or without any", async () => {
    for (const workflowId of ["one-worker", "no-edges"]) {
      const { snapshot, events } = await world.client.run(workflowId);
      expect(snapshot.status).toBe("completed");
      expect(decisionsOf(events)).toEqual(["next-worker", "terminate"]);
      expect(phasesOf(events)).toEqual(["dispatch.began", "dispatch.succeeded", "child.completed"]);
    }
  });

  it("L1-02 decides exactly once a turn, and counts the turns from 1", async () => {
    const { events } = await world.client.run("two-turns");
    const turns = filterByType(events, "node.started").filter(({ nodeId }) => nodeId === "boss");
    const decided = filterByType(events, "runOrchestrator.decided");
    expect(turns).toHaveLength(3);
    expect(decided.map(({ payload }) => payload["iteration"])).toEqual([1, 2, 3]);
    for (const [index, { sequence }] of decided.entries()) {
      expect(sequence).toBeGreaterThan(turns[index]?.sequence ?? Infinity);
      expect(sequence).toBeLessThan(turns[index + 1]?.sequence ?? Infinity);
    }
  });

  it("L1-03 appends runOrchestrator.decided with the decision before anything follows from it", async () => {
    const { events } = await world.client.run("one-worker");
    const [first = expect.fail("nothing was decided")] = filterByType(events, "runOrchestrator.decided");
    expect(first.payload["decision"]).toEqual(work(["worker-good"]));
    expect(first.nodeId).toBe("boss");
    const effects = filterByType(events, "core.workflowChain.event", "node.dispatched");
    for (const { sequence } of effects) expect(sequence).toBeGreaterThan(first.sequence);
  });

  it("L1-04 is left at terminate: run.completed follows, and no other decision", async () => {
    const { snapshot, events } = await world.client.run("ends-at-once");
    expect(snapshot.status).toBe("completed");
    expect(decisionsOf(events)).toEqual(["terminate"]);
    expect(listTypesFrom(events, "runOrchestrator.decided")).toEqual([
      "runOrchestrator.decided",
      "run.completed",
    ]);
  });

  it("L1-05 asks people with a clarification, waits for the answer, and goes on", async () => {
    const { client } = world;
    const runId = await client.start("asks");
    const waiting = await client.until(runId, "waiting-input");
    expect(waiting.interrupt).toMatchObject({ kind: "clarification", nodeId: "handing" });
    const before = await client.events(runId);
    expect(decisionsOf(before)).toEqual(["ask-user"]);
    expect(findOnly(before, "interrupt.requested").payload).toMatchObject({
      kind: "clarification",
      data: { questions: [{ id: "q1", question: "Which mine?" }] },
    });
    expect((await client.resolve(runId, "handing", { answers: { q1: "the old one" } })).status).toBe(200);
    await client.until(runId, "completed");
    expect(decisionsOf(await client.events(runId))).toEqual(["ask-user", "next-worker", "terminate"]);
  });

  it("L1-06 escalates with an approval, and waits for the answer", async () => {
    const { client } = world;
    const runId = await client.start("unsure");
    await client.until(runId, "waiting-approval");
    const before = await client.events(runId);
    expect(findOnly(before, "interrupt.requested").payload).toMatchObject({ kind: "approval" });
    expect(before.at(-1)?.type).toBe("interrupt.requested");
    await client.resolve(runId, "boss", { action: "accept" });
    await client.until(runId, "completed");
  });

  it("L1-07 hands over to each worker of the decision, in the order in which it names them", async () => {
    const { events } = await world.client.run("several");
    const began = chainOf(events).filter(({ payload }) => payload["phase"] === "dispatch.began");
    expect(began.map(({ payload }) => payload["workerId"])).toEqual([
      "worker-good",
      "worker-bad",
      "worker-other",
    ]);
  });

  it("L1-08 returns to the supervisor when every worker has ended, also where one failed", async () => {
    const { snapshot, events } = await world.client.run("several");
    expect(snapshot.status).toBe("completed");
    const [, second = expect.fail("there was no second turn")] = filterByType(
      events,
      "runOrchestrator.decided",
    );
    const ends = chainOf(events).filter(({ payload }) => String(payload["phase"]).startsWith("child."));
    expect(ends.map(({ payload }) => payload["phase"])).toEqual([
      "child.completed",
      "child.failed",
      "child.completed",
    ]);
    for (const { sequence } of ends) expect(sequence).toBeLessThan(second.sequence);
  });

  it("L1-09 is entered again behind the same decision by a host that was stopped in it", async () => {
    const { client } = world;
    const runId = await client.start("slow-second");
    await client.until(runId, "waiting-approval");
    const before = await client.events(runId);
    await world.restart();
    await client.until(runId, "waiting-approval");
    const after = await client.events(runId);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(decisionsOf(after)).toEqual(["next-worker", "next-worker"]);
    const gated = String(filterByType(after, "node.dispatched").at(-1)?.payload["childRunId"]);
    await client.resolve(gated, "gate", { action: "accept" });
    await client.until(runId, "completed");
    const whole = await client.events(runId);
    expect(decisionsOf(whole)).toEqual(["next-worker", "next-worker", "terminate"]);
    expect(filterByType(whole, "node.dispatched")).toHaveLength(2);
  });

  it("L1-10 is bounded: turn N + 1 is refused with cap.breached and loop_limit_exceeded", async () => {
    const { snapshot, events } = await world.client.run("never-ends", {
      configurable: { maxLoopIterations: 3 },
    });
    expect(snapshot).toMatchObject({ status: "failed", error: { code: "loop_limit_exceeded" } });
    expect(decisionsOf(events)).toHaveLength(3);
    expect(findOnly(events, "cap.breached").payload).toMatchObject({
      kind: "loop-iterations",
      limit: 3,
      observed: 4,
    });
    expect(findOnly(events, "cap.breached").sequence).toBeLessThan(findOnly(events, "run.failed").sequence);
  });

  it("L1-11 keeps one supervisor for the whole run, and names it in the snapshot", async () => {
    const { snapshot, events } = await world.client.run("two-turns");
    const agents = filterByType(events, "runOrchestrator.decided").map(({ payload }) => payload["agentId"]);
    expect(new Set(agents).size).toBe(1);
    expect(snapshot["runOrchestrator"]).toEqual({ agentId: agents[0] });
  });

  it("L1-12 gives every handoff a child of its own, also to the same worker twice", async () => {
    const { events } = await world.client.run("never-ends", { configurable: { maxLoopIterations: 2 } });
    const children = filterByType(events, "node.dispatched").map(({ payload }) => payload["childRunId"]);
    expect(new Set(children).size).toBe(2);
  });

  it("L1-13 begins when the nodes before it have ended", async () => {
    const { snapshot, events } = await world.client.run("behind-others");
    expect(snapshot.status).toBe("completed");
    const completed = filterByType(events, "node.completed").map(({ nodeId }) => nodeId);
    expect(completed.slice(0, 2)).toEqual(["first", "boss"]);
  });

  it("L1-14 lets the child be a run like any other, which names its parent", async () => {
    const { runId, events } = await world.client.run("one-worker");
    const child = await world.client.snapshot(childOf(events));
    expect(child).toMatchObject({
      status: "completed",
      workflowId: "worker-good",
      parentRunId: runId,
      parentNodeId: "handing",
    });
    await world.client.events(child.runId);
  });
});
