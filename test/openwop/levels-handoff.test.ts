import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { waitFor } from "../support/wait-for.ts";
import { findSchemaProblems } from "./levels-schemas.ts";
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
  openWorld,
  phasesOf,
  type Event,
  type World,
} from "./levels-world.ts";

const MAPPED = { outputMapping: { treasure: "found" } };

const DEFINITIONS = [
  ...WORKERS,
  createWorkflow("worker-told", { nodes: [createNoop("only")] }),
  createLoop("mapped", {
    plan: [work(["worker-good"]), end()],
    dispatch: MAPPED,
    variables: { treasure: "" },
  }),
  createLoop("unmapped", { plan: [work(["worker-good"]), end()], variables: { treasure: "none" } }),
  createLoop("empty-mapping", { plan: [work(["worker-good"]), end()], dispatch: { outputMapping: {} } }),
  createLoop("failing", {
    plan: [work(["worker-bad"]), end()],
    dispatch: MAPPED,
    variables: { treasure: "none" },
  }),
  createLoop("slow", {
    plan: [work(["worker-slow"]), end()],
    dispatch: MAPPED,
    variables: { treasure: "none" },
  }),
  createLoop("unknown-worker", { plan: [work(["worker-nobody"]), end()], dispatch: MAPPED }),
  createLoop("mixed", {
    plan: [
      work(["worker-good", "worker-nobody", "worker-bad", "worker-other"]),
      work(["worker-good"]),
      end(),
    ],
    dispatch: MAPPED,
  }),
  createLoop("telling", {
    plan: [work(["worker-told"]), end()],
    dispatch: { inputMapping: { greeting: "word", missing: "nothing" } },
    variables: { word: "Glück auf", nothing: undefined },
  }),
  createLoop("relay", {
    plan: [work(["worker-good", "worker-told"]), end()],
    dispatch: {
      inputMapping: { given: "own" },
      perWorkerInputMappings: { "worker-told": { given: "treasure" } },
      ...MAPPED,
    },
    variables: { own: "mine" },
  }),
  createWorkflow("no-loop", {
    nodes: [
      createNoop("before"),
      createNode("call", "core.subWorkflow", { config: { workflowId: "worker-good" } }),
    ],
  }),
];

let world: World;
beforeAll(async () => {
  world = await openWorld(DEFINITIONS);
});
afterAll(() => world.close());

/** The event before in the chain, by what it says that caused it. */
function causeOf(events: readonly Event[], event: Event | undefined): Event | undefined {
  return events.find(({ eventId }) => eventId === event?.causationId);
}

function findPhase(events: readonly Event[], name: string): Event {
  return (
    chainOf(events).find(({ payload }) => payload["phase"] === name) ?? expect.fail(`there is no ${name}`)
  );
}

/** A run whose only child was cancelled from outside. */
async function cancelChild(): Promise<readonly Event[]> {
  const { client } = world;
  const runId = await client.start("slow");
  const childRunId = await waitFor(async () => childOf(await client.events(runId)), { what: "the child" });
  expect((await client.post(`/v1/runs/${childRunId}/cancel`)).status).toBe(200);
  await client.until(runId, "completed");
  return client.events(runId);
}

describe("the handoff state machine", () => {
  it("L1-20 takes a worker from pending over dispatching and running to harvested, one event each", async () => {
    const { events } = await world.client.run("mapped");
    expect(phasesOf(events)).toEqual([
      "dispatch.began",
      "dispatch.succeeded",
      "child.completed",
      "output.harvested",
    ]);
  });

  it("L1-21 pending to dispatching: dispatch.began, caused by the decision", async () => {
    const { events } = await world.client.run("mapped");
    const cause = causeOf(events, findPhase(events, "dispatch.began"));
    expect(cause?.type).toBe("runOrchestrator.decided");
    expect(cause?.payload["decision"]).toEqual(work(["worker-good"]));
  });

  it("L1-22 dispatching to running: dispatch.succeeded, caused by dispatch.began, while the child runs", async () => {
    const { client } = world;
    const runId = await client.start("slow");
    const events = await waitFor(
      async () => {
        const found = await client.events(runId);
        return phasesOf(found).includes("dispatch.succeeded") && found;
      },
      { what: "dispatch.succeeded", everyMs: 15 },
    );
    expect(causeOf(events, findPhase(events, "dispatch.succeeded"))).toEqual(
      findPhase(events, "dispatch.began"),
    );
    expect((await client.snapshot(childOf(events))).status).toBe("running");
    await client.post(`/v1/runs/${runId}/cancel`);
  });

  it("L1-23 dispatching to failed: dispatch.failed, caused by dispatch.began, where no child could be created", async () => {
    const { snapshot, events } = await world.client.run("unknown-worker");
    expect(snapshot.status).toBe("completed");
    expect(phasesOf(events)).toEqual(["dispatch.began", "dispatch.failed"]);
    expect(causeOf(events, findPhase(events, "dispatch.failed"))).toEqual(
      findPhase(events, "dispatch.began"),
    );
  });

  it("L1-24 running to completed: child.completed, caused by dispatch.succeeded", async () => {
    const { events } = await world.client.run("mapped");
    expect(causeOf(events, findPhase(events, "child.completed"))).toEqual(
      findPhase(events, "dispatch.succeeded"),
    );
  });

  it("L1-25 running to failed: child.failed, caused by dispatch.succeeded", async () => {
    const { events } = await world.client.run("failing");
    expect(causeOf(events, findPhase(events, "child.failed"))).toEqual(
      findPhase(events, "dispatch.succeeded"),
    );
  });

  it("L1-26 running to cancelled: child.cancelled, caused by dispatch.succeeded", async () => {
    const events = await cancelChild();
    expect(causeOf(events, findPhase(events, "child.cancelled"))).toEqual(
      findPhase(events, "dispatch.succeeded"),
    );
  });

  it("L1-27 completed to harvested: output.harvested, caused by child.completed, naming the parent's keys", async () => {
    const { snapshot, events } = await world.client.run("mapped");
    const harvested = findPhase(events, "output.harvested");
    expect(causeOf(events, harvested)).toEqual(findPhase(events, "child.completed"));
    expect(harvested.payload["harvestedKeys"]).toEqual(["treasure"]);
    expect(snapshot.variables["treasure"]).toBe("gold");
  });

  it("L1-28 every event of the chain leads back to the decision, worker by worker", async () => {
    const { events } = await world.client.run("mixed");
    for (const event of chainOf(events)) {
      let at: Event | undefined = event;
      for (let steps = 0; at?.type === "core.workflowChain.event" && steps < 5; steps += 1) {
        expect(at.payload["workerId"]).toBe(event.payload["workerId"]);
        const cause: Event | undefined = causeOf(events, at);
        expect(cause?.sequence).toBeLessThan(at.sequence);
        at = cause;
      }
      expect(at?.type).toBe("runOrchestrator.decided");
    }
    const decided = filterByType(events, "runOrchestrator.decided").map(({ eventId }) => eventId);
    const began = chainOf(events).filter(({ payload }) => payload["phase"] === "dispatch.began");
    expect(began.map(({ causationId }) => decided.indexOf(causationId ?? ""))).toEqual([0, 0, 0, 0, 1]);
  });

  it("L1-29 harvests exactly where the child completed and something is mapped", async () => {
    const countHarvests = async (workflowId: string): Promise<number> => {
      const { events } = await world.client.run(workflowId);
      return phasesOf(events).filter((name) => name === "output.harvested").length;
    };
    expect(await countHarvests("mapped")).toBe(1);
    expect(await countHarvests("unmapped")).toBe(0);
    expect(await countHarvests("empty-mapping")).toBe(0);
    expect(await countHarvests("mixed")).toBe(3);
  });

  it("L1-30 never harvests a child that failed or was cancelled", async () => {
    const failed = await world.client.run("failing");
    expect(phasesOf(failed.events)).not.toContain("output.harvested");
    expect(failed.snapshot.variables["treasure"]).toBe("none");
    const cancelled = await cancelChild();
    expect(phasesOf(cancelled)).not.toContain("output.harvested");
    expect(filterByType(cancelled, "variable.changed")).toEqual([]);
  });

  it("L1-31 emits no phase that did not happen", async () => {
    const { events: failed } = await world.client.run("failing");
    expect(phasesOf(failed)).toEqual(["dispatch.began", "dispatch.succeeded", "child.failed"]);
    const { events: refused } = await world.client.run("unknown-worker");
    expect(phasesOf(refused)).toEqual(["dispatch.began", "dispatch.failed"]);
    expect(filterByType(refused, "node.dispatched")).toEqual([]);
  });

  it("L1-32 tells a cancelled child from a failed one", async () => {
    expect(phasesOf(await cancelChild())).toEqual([
      "dispatch.began",
      "dispatch.succeeded",
      "child.cancelled",
    ]);
  });

  it("L1-33 lets a later sibling see what an earlier one brought, and a worker's own mapping replace the common one", async () => {
    const { events } = await world.client.run("relay");
    const [first, second] = filterByType(events, "node.dispatched").map(({ payload }) =>
      String(payload["childRunId"]),
    );
    expect((await world.client.snapshot(first ?? "")).inputs).toEqual({ given: "mine" });
    expect((await world.client.snapshot(second ?? "")).inputs).toEqual({ given: "gold" });
  });

  it("L1-34 projects the mapped inputs into the child; what the parent has not set is absent", async () => {
    const { events } = await world.client.run("telling");
    expect((await world.client.snapshot(childOf(events))).inputs).toEqual({ greeting: "Glück auf" });
  });
});

describe("the payload of core.workflowChain.event", () => {
  it("L1-40 has phase, workerId and parentRunId, and nothing that its schema does not name", async () => {
    const { runId, events } = await world.client.run("mixed");
    for (const { payload } of chainOf(events)) {
      expect(payload).toMatchObject({
        phase: expect.any(String) as string,
        workerId: expect.stringMatching(/^worker-/u) as string,
        parentRunId: runId,
      });
      const knownNames = ["phase", "workerId", "parentRunId", "childRunId", "harvestedKeys", "error"];
      expect(Object.keys(payload).filter((key) => !knownNames.includes(key))).toEqual([]);
    }
  });

  it("L1-41 names the child from dispatch.succeeded on, and not before or where there is none", async () => {
    const { events } = await world.client.run("mixed");
    for (const { payload } of chainOf(events)) {
      const isWithout = payload["phase"] === "dispatch.began" || payload["phase"] === "dispatch.failed";
      expect("childRunId" in payload, String(payload["phase"])).toBe(!isWithout);
    }
  });

  it("L1-42 carries the error of what failed or was cancelled", async () => {
    const { events: failed } = await world.client.run("failing");
    expect(findPhase(failed, "child.failed").payload["error"]).toEqual({
      code: "mine_flooded",
      message: "there is water",
    });
    const { events: refused } = await world.client.run("unknown-worker");
    expect(findPhase(refused, "dispatch.failed").payload["error"]).toMatchObject({
      code: expect.stringMatching(/\S/u) as string,
      message: expect.stringMatching(/worker-nobody/u) as string,
    });
    expect(findPhase(await cancelChild(), "child.cancelled").payload["error"]).toMatchObject({
      code: "cancelled",
      message: expect.stringMatching(/\S/u) as string,
    });
  });

  it("L1-43 is emitted only by runs with a loop, on a host that advertises the execution model", async () => {
    const { events } = await world.client.run("no-loop");
    expect(chainOf(events)).toEqual([]);
    expect(filterByType(events, "node.dispatched")).toHaveLength(1);
  });
});

describe("the advertisement", () => {
  it("L1-50 says that the model is supported, and up to which version, at the root and for older readers", async () => {
    const { body } = await world.client.get("/.well-known/openwop");
    expect(findSchemaProblems("capabilities", body)).toEqual([]);
    const model = { executionModel: { supported: true, version: 6 } };
    expect(body["multiAgent"]).toMatchObject(model);
    expect(body["capabilities"]).toMatchObject({ multiAgent: model });
  });

  it("L1-51 names every level below too: the mapping, the orchestrator and the dispatch", async () => {
    const { body } = await world.client.get("/.well-known/openwop");
    expect(body["agents"]).toMatchObject({
      supported: true,
      orchestrator: true,
      dispatch: true,
      dispatchMapping: true,
    });
    expect(body["subWorkflow"]).toEqual({ inputMapping: true });
  });

  it("L1-52 names every part of every level, and nothing that is not implemented", async () => {
    const { body } = await world.client.get("/.well-known/openwop");
    expect(body["multiAgent"]).toMatchObject({
      executionModel: {
        replayDeterminism: {
          supported: true,
          llmCacheKeyRecipe: "spec-rfc-0041",
          refusalDivergenceEmission: true,
        },
        statefulResume: true,
        transcriptWindow: 200,
        verifier: { supported: true, gating: true },
      },
    });
    expect(body["replay"]).toEqual({
      supported: true,
      modes: ["replay", "branch"],
      sideEffectSuppression: "recorded-outcome",
      retention: { windowSeconds: 7 * 24 * 3_600 },
    });
    expect(body["agents"]).toMatchObject({ subRunAttestation: true });
    for (const absent of ["webhooks", "heartbeat", "dispatch"]) expect(body).not.toHaveProperty(absent);
  });
});
