import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import { evolve } from "../../src/agents/coordination/ledger/evolve.ts";
import type { KnownCoordination, OpenCoordination } from "../../src/agents/coordination/ledger/state.ts";
import { openOf } from "./claims-scene.ts";
import { idOf, stepOf } from "./plan-progress-scene.ts";
import { OPEN, openScene, RUN, spawn, stepId, type Scene } from "./scene.ts";

describe("OpenWOP events", () => {
  /** The state after an event that follows it. */
  const follow = (scene: Scene, event: object): KnownCoordination => {
    const { nextSequence } = openOf(scene);
    const place = { eventId: createEventId(RUN, nextSequence), runId: RUN, sequence: nextSequence };
    const next = evolve(scene.state, {
      ...scene.log.at(-1)!,
      nodeId: undefined,
      ...place,
      ...event,
    } as never);
    return next as OpenCoordination;
  };
  const decide = (decision: object) => ({
    type: "runOrchestrator.decided",
    payload: { agentId: "agent:main", decision, iteration: 7 },
  });

  it("count the turns of the orchestrator, and lead the chains of the workers that it picks", () => {
    const scene = openScene(OPEN, spawn("a"), spawn("b"), spawn("c"));
    const next = follow(scene, decide({ kind: "next-worker", nextWorkerIds: ["step-1", "step-3"] }));
    expect(next.iterations).toBe(7);
    const chains = ["step-1", "step-2", "step-3"].map((name) => next.steps.get(idOf(name))?.chainEventId);
    const eventId = createEventId(RUN, openOf(scene).nextSequence);
    expect(chains).toEqual([eventId, stepOf(scene, "step-2").chainEventId, eventId]);
  });

  it("end the turns without a worker", () => {
    const scene = openScene(OPEN, spawn("a"));
    const next = follow(scene, decide({ kind: "terminate" }));
    expect(next.iterations).toBe(7);
    expect(next.steps.get(stepId(1))).toEqual(stepOf(scene, "step-1"));
  });

  it("lead the chain of the worker that they name", () => {
    const scene = openScene(OPEN, spawn("a"));
    const next = follow(scene, { type: "core.workflowChain.event", payload: { workerId: "step-1" } });
    expect(next.steps.get(stepId(1))?.chainEventId).toBe(createEventId(RUN, openOf(scene).nextSequence));
  });

  it("mean nothing for the state besides", () => {
    const scene = openScene(OPEN, spawn("a"));
    for (const type of ["node.suspended", "agent.decided"]) {
      const next = follow(scene, { type, payload: {} });
      expect({ ...next, nextSequence: 0 }).toEqual({ ...openOf(scene), nextSequence: 0 });
    }
  });
});
