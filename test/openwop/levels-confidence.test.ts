import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { end, createLoop, createNode, work, createWorkflow, WORKERS } from "./levels-workflows.ts";
import {
  chainOf,
  filterByType,
  findOnly,
  openWorld,
  phasesOf,
  type Event,
  type World,
} from "./levels-world.ts";

const DEFINITIONS = [
  ...WORKERS,
  createLoop("doubts", { plan: [work(["worker-good"]), work(["worker-other"], 0.3), end()] }),
  createLoop("doubts-the-end", { plan: [end(0.49), end()] }),
  createLoop("at-the-floor", { plan: [work(["worker-good"], 0.5), end(0.5)] }),
  createLoop("between", { plan: [work(["worker-good"], 0.6), end(0.69)] }),
  createLoop("states-nothing", { plan: [work(["worker-good"]), end()] }),
  createLoop("asks", { plan: [{ kind: "ask-user", prompt: "Which?" }, end()] }),
  createLoop("doubts-twice", { plan: [work(["worker-good"], 0.1), work(["worker-other"], 0), end()] }),
  createLoop("pending", {
    plan: [],
    supervisor: {
      mockDispatchPlan: undefined,
      mockConfidence: 0.5,
      mockPendingDecision: work(["worker-good"]),
    },
  }),
  createWorkflow("agent-doubts", {
    nodes: [
      createNode("agent", "core.conformance.mock-agent", {
        config: { agentId: "agent-one", mockDecision: { decision: "dig", confidence: 0.6 } },
      }),
    ],
  }),
];

const ESCALATED = "core.workflowChain.confidence-escalated";

let world: World;
let strict: World;
beforeAll(async () => {
  world = await openWorld(DEFINITIONS);
  strict = await openWorld(DEFINITIONS, { confidenceFloor: 0.65 });
});
afterAll(() => Promise.all([world.close(), strict.close()]));

async function runUntilHeld(
  workflowId: string,
  at: World = world,
): Promise<{ runId: string; events: Event[] }> {
  const runId = await at.client.start(workflowId);
  await at.client.until(runId, "waiting-approval");
  return { runId, events: await at.client.events(runId) };
}

async function accept(runId: string, at: World = world, value: object = { action: "accept" }) {
  const { status } = await at.client.resolve(runId, "boss", value);
  expect(status).toBe(200);
}

const decisionsOf = (events: readonly Event[]): unknown[] =>
  filterByType(events, "runOrchestrator.decided").map(({ payload }) => [
    payload["iteration"],
    (payload["decision"] as { kind: string }).kind,
  ]);

async function modelOf({ client }: World): Promise<Record<string, unknown>> {
  const { body } = await client.get("/.well-known/openwop");
  return (body["multiAgent"] as { executionModel: Record<string, unknown> }).executionModel;
}

describe("confidence escalation", () => {
  it("L2-01 escalates a next-worker below the floor", async () => {
    const { events } = await runUntilHeld("doubts");
    expect(findOnly(events, ESCALATED).payload).toMatchObject({ confidence: 0.3, floor: 0.5 });
    expect(decisionsOf(events)).toEqual([[1, "next-worker"]]);
  });

  it("L2-02 escalates a terminate below the floor: the run does not end by it", async () => {
    const { runId, events } = await runUntilHeld("doubts-the-end");
    expect(findOnly(events, ESCALATED).payload).toMatchObject({ confidence: 0.49 });
    expect(findOnly(events, ESCALATED).payload).not.toHaveProperty("workerId");
    await accept(runId);
    await world.client.until(runId, "completed");
    expect(decisionsOf(await world.client.events(runId))).toEqual([[1, "terminate"]]);
  });

  it("L2-03 records the escalation before the interrupt fires", async () => {
    const { events } = await runUntilHeld("doubts");
    const escalated = findOnly(events, ESCALATED).sequence;
    expect(findOnly(events, "node.suspended").sequence).toBeGreaterThan(escalated);
    expect(findOnly(events, "interrupt.requested").sequence).toBeGreaterThan(escalated);
  });

  it("L2-04 records the escalation before the worker's dispatch.began, which waits for the answer", async () => {
    const { runId, events } = await runUntilHeld("doubts-twice");
    expect(chainOf(events)).toEqual([]);
    await accept(runId);
    await world.client.until(runId, "waiting-approval");
    const later = await world.client.events(runId);
    const [first = expect.fail("nothing was escalated")] = filterByType(later, ESCALATED);
    const [began = expect.fail("nothing began")] = chainOf(later);
    expect(began.sequence).toBeGreaterThan(first.sequence);
    expect(began.sequence).toBeGreaterThan(findOnly(later, "interrupt.resolved").sequence);
  });

  it("L2-05 advertises its floor, between 0.5 and 1, and escalates below it", async () => {
    expect((await modelOf(world))["confidenceEscalationFloor"]).toBe(0.5);
    expect((await modelOf(strict))["confidenceEscalationFloor"]).toBe(0.65);
    const { events } = await runUntilHeld("between", strict);
    expect(findOnly(events, ESCALATED).payload).toMatchObject({ confidence: 0.6, floor: 0.65 });
  });

  it("L2-06 does not run with a floor below 0.5", async () => {
    const outcome = openWorld(DEFINITIONS, { confidenceFloor: 0.3 }).then(
      async (opened) => {
        await opened.close();
        return "it runs";
      },
      (error: unknown) => (error instanceof CoordinationError ? error.code : error),
    );
    expect(await outcome).toBe("INPUT_INVALID");
  });

  it("L2-07 does not escalate what states no confidence", async () => {
    const { snapshot, events } = await world.client.run("states-nothing");
    expect(snapshot.status).toBe("completed");
    expect(filterByType(events, ESCALATED, "node.suspended")).toEqual([]);
  });

  it("L2-08 does not escalate what is at the floor", async () => {
    const { snapshot, events } = await world.client.run("at-the-floor");
    expect(snapshot.status).toBe("completed");
    expect(filterByType(events, ESCALATED)).toEqual([]);
  });

  it("L2-09 escalates no other kinds of decisions", async () => {
    const runId = await world.client.start("asks");
    await world.client.until(runId, "waiting-input");
    expect(filterByType(await world.client.events(runId), ESCALATED)).toEqual([]);
  });

  it("L2-10 tells confidence, floor, kind of escalation and the decision, and nothing besides", async () => {
    const { runId, events } = await runUntilHeld("doubts");
    expect(findOnly(events, ESCALATED).payload).toEqual({
      confidence: 0.3,
      floor: 0.5,
      escalationKind: "escalate",
      parentRunId: runId,
      workerId: "worker-other",
      originalDecision: work(["worker-other"], 0.3),
    });
  });

  it("L2-11 keeps the floor of decisions apart from the threshold of agents", async () => {
    const { snapshot } = await world.client.run("between");
    expect(snapshot.status).toBe("completed");
    const runId = await world.client.start("agent-doubts");
    await world.client.until(runId, "waiting-approval");
    const events = await world.client.events(runId);
    expect(filterByType(events, ESCALATED)).toEqual([]);
    expect(findOnly(events, "node.suspended").payload).toMatchObject({
      reason: "low-confidence",
      agentId: "agent-one",
      threshold: 0.7,
      observed: 0.6,
    });
  });

  it("L2-12 emits the escalation only as a host that advertises version 2 or more", async () => {
    expect((await modelOf(world))["version"]).toBeGreaterThanOrEqual(2);
  });
});

describe("the kind of the interrupt (RFC 0044)", () => {
  it("L2-20 is the advertised one on every escalation, of workers and of ends", async () => {
    const kind = (await modelOf(world))["confidenceEscalationInterruptKind"];
    for (const workflowId of ["doubts", "doubts-the-end"]) {
      const { runId, events } = await runUntilHeld(workflowId);
      expect(findOnly(events, "node.suspended").payload["kind"]).toBe(kind);
      expect(findOnly(events, "interrupt.requested").payload["kind"]).toBe(kind);
      expect((await world.client.snapshot(runId)).interrupt?.kind).toBe(kind);
    }
  });

  it("L2-21 is a canonical one, so that no vendor's kind needs a document", async () => {
    expect((await modelOf(world))["confidenceEscalationInterruptKind"]).toBe("approval");
  });

  it("L2-22 leaves the kind of escalation in the event to its own two names", async () => {
    const { events } = await runUntilHeld("doubts");
    expect(["clarify", "escalate"]).toContain(findOnly(events, ESCALATED).payload["escalationKind"]);
  });
});

describe("the held decision", () => {
  it("L2-30 is executed once after it was accepted, as the decision of the same iteration", async () => {
    const { runId } = await runUntilHeld("doubts");
    await accept(runId);
    await world.client.until(runId, "completed");
    const events = await world.client.events(runId);
    expect(decisionsOf(events)).toEqual([
      [1, "next-worker"],
      [2, "next-worker"],
      [3, "terminate"],
    ]);
    expect(filterByType(events, ESCALATED)).toHaveLength(1);
    expect(filterByType(events, "node.dispatched").map(({ payload }) => payload["childWorkflowId"])).toEqual([
      "worker-good",
      "worker-other",
    ]);
  });

  it("L2-31 is executed once where it was accepted several times at once", async () => {
    const { runId } = await runUntilHeld("doubts");
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => world.client.resolve(runId, "boss", { action: "accept" })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409]);
    await world.client.until(runId, "completed");
    const events = await world.client.events(runId);
    expect(filterByType(events, "node.dispatched")).toHaveLength(2);
    expect(filterByType(events, "runOrchestrator.decided")).toHaveLength(3);
  });

  it("L2-32 is not executed where it was rejected", async () => {
    const { runId } = await runUntilHeld("doubts");
    await accept(runId, world, { action: "reject" });
    const { error } = await world.client.until(runId, "failed");
    expect(error?.code).toBe("decision_rejected");
    const events = await world.client.events(runId);
    expect(decisionsOf(events)).toEqual([[1, "next-worker"]]);
    expect(phasesOf(events)).toHaveLength(3);
  });

  it("L2-33 gives way to the one that people put in its place", async () => {
    const { runId } = await runUntilHeld("doubts");
    const editedArtifactData = work(["worker-bad"]);
    await accept(runId, world, { action: "edit-accept", editedArtifactData });
    await world.client.until(runId, "completed");
    const events = await world.client.events(runId);
    expect(filterByType(events, "runOrchestrator.decided")[1]?.payload["decision"]).toEqual(
      editedArtifactData,
    );
  });

  it("L2-34 survives a stop of the host in between", async () => {
    const { runId } = await runUntilHeld("doubts");
    await world.restart();
    await accept(runId);
    await world.client.until(runId, "completed");
    const events = await world.client.events(runId);
    expect(decisionsOf(events)).toHaveLength(3);
    expect(filterByType(events, ESCALATED)).toHaveLength(1);
  });

  it("L2-35 of an agent's own doubt is not decided before somebody agrees, and then once", async () => {
    const { runId, events } = await runUntilHeld("pending");
    expect(findOnly(events, "node.suspended").payload["reason"]).toBe("low-confidence");
    expect(decisionsOf(events)).toEqual([]);
    await accept(runId);
    await world.client.until(runId, "completed");
    expect(decisionsOf(await world.client.events(runId))).toEqual([
      [1, "next-worker"],
      [2, "terminate"],
    ]);
  });
});
