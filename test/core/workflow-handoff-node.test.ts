/** Owns: how a node hands work over to a child run and takes it back: its steps, and the events that an outcome brings. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { EffectOutcome } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import {
  createHandoffBeginStep,
  settleHandoff,
  stepHandoff,
  type HandoffTerms,
} from "../../src/agents/coordination/workflow/nodes/handoff.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import type { Handoff } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createHandoff, createView, REPLAY_ORIGIN, type Scene } from "./workflow-node-view-scene.ts";
import { RUN } from "./workflow-view-scene.ts";

const CAUSE = createEventId(RUN, 9);
const CHAIN = createEventId(RUN, 2);
const VERIFIER: Values = { verifier: { agentId: "acme.critic" } };

function createHandover(change: Partial<HandoffTerms> = {}): HandoffTerms {
  return { cause: "core.dispatch", inputMapping: {}, outputMapping: {}, ordinal: "1:0", ...change };
}

/** Returns what an event of the handoff says. */
function createChainEvent(payload: Values, causationId: string = CHAIN) {
  return {
    type: "core.workflowChain.event",
    nodeId: "a",
    causationId,
    payload: { workerId: "writer", parentRunId: RUN, ...payload },
  };
}

describe("the beginning of a handoff", () => {
  it("is on record, with what it follows from", () => {
    expect(
      createHandoffBeginStep(createView(), "writer", createHandover({ causationId: CAUSE })),
    ).toStrictEqual({
      kind: "record",
      drafts: [createChainEvent({ phase: "dispatch.began" }, CAUSE)],
    });
  });

  it("is that of the source's run in a replay, and follows from nothing where nothing is named", () => {
    const view = createView({ run: { origin: REPLAY_ORIGIN } });
    expect(createHandoffBeginStep(view, "writer", createHandover())).toStrictEqual({
      kind: "record",
      drafts: [
        {
          type: "core.workflowChain.event",
          nodeId: "a",
          payload: { phase: "dispatch.began", workerId: "writer", parentRunId: "source-1" },
        },
      ],
    });
  });
});

describe("the step of a handoff", () => {
  function step(handoff: Partial<Handoff>, scene: Scene = {}, handover: Partial<HandoffTerms> = {}) {
    return stepHandoff(createView(scene), createHandoff(handoff), createHandover(handover));
  }

  it("starts the child of a worker that has begun", () => {
    const started = { inputs: { goal: "win" } };
    expect(step({ phase: "dispatching" }, { started }, { inputMapping: { topic: "goal" } })).toStrictEqual({
      kind: "act",
      effect: {
        kind: "run_child",
        id: "a:1:0",
        nodeId: "a",
        ordinal: "a:1:0",
        cause: "core.dispatch",
        workflowId: "writer",
        inputs: { topic: "win" },
        memoryScope: "w",
      },
    });
  });

  it("waits for the child that runs", () => {
    expect(step({ phase: "running", childRunId: "child-1" })).toMatchObject({
      kind: "act",
      effect: { kind: "run_child", childRunId: "child-1" },
    });
  });

  it("gives the child no more scopes than the gate says", () => {
    const config = { outputAttestation: { principalScope: ["read"] } };
    expect(step({}, { config })).toHaveProperty("effect.principalScope", ["read"]);
    expect(step({}, { config: VERIFIER })).not.toHaveProperty("effect.principalScope");
  });

  it("tells a worker that is sent back of what it did not meet, as another child", () => {
    const handoff = { revision: 2, unmet: ["style"] };
    expect(step(handoff, { config: VERIFIER })).toMatchObject({
      effect: { id: "a:1:0:r2", ordinal: "a:1:0:r2", inputs: { revisionCriteria: ["style"] } },
    });
    expect(step(handoff)).toHaveProperty("effect.inputs", {});
    expect(step(handoff, { config: { outputAttestation: {} } })).toHaveProperty("effect.inputs", {});
  });

  it("tells a worker nothing of the kind before it is sent back", () => {
    expect(step({ unmet: ["style"] }, { config: VERIFIER })).toHaveProperty("effect.inputs", {});
  });

  it("is none where the worker is over", () => {
    expect(step({ phase: "harvested" })).toBeUndefined();
    expect(step({ phase: "ended", childStatus: "completed" })).toBeUndefined();
  });

  it("is that of the gate where the child completed behind one", () => {
    const ended = { phase: "ended", childStatus: "completed", childRunId: "child-1", revision: 1 } as const;
    expect(step(ended, { config: VERIFIER })).toMatchObject({
      kind: "act",
      effect: { kind: "judge_child", id: "a:1:0:r1:judge", childRunId: "child-1" },
    });
    const config = { outputAttestation: {} };
    expect(step(ended, { config }, { outputMapping: { result: "text" } })).toMatchObject({ kind: "act" });
    expect(step(ended, { config })).toBeUndefined();
  });

  describe("where the worker is to be sent back", () => {
    const verdict = { agentId: "acme.critic", verdict: "revise" } as const;
    const ENDED = { phase: "ended", childStatus: "completed", verdict } as const;

    it("begins it anew", () => {
      expect(step(ENDED, { config: VERIFIER }, { causationId: CAUSE })).toStrictEqual({
        kind: "record",
        drafts: [createChainEvent({ phase: "dispatch.began" }, CAUSE)],
      });
    });

    it("ends the run at the limit of the loop", () => {
      const ended = step(ENDED, { config: VERIFIER, settings: { loopIterationsMax: 0 } });
      expect(ended).toMatchObject({
        kind: "end",
        drafts: [{ type: "cap.breached" }, { type: "node.failed" }, { type: "run.failed" }],
      });
    });
  });
});

describe("the outcome of a handoff", () => {
  const MAPPED = { outputMapping: { result: "text" } };
  const ERROR = { code: "broken", message: "it broke" };

  interface HandoffScene extends Scene {
    readonly handoff?: Partial<Handoff>;
    readonly handover?: Partial<HandoffTerms>;
  }

  function settle(outcome: EffectOutcome, settling: HandoffScene = {}): readonly WorkflowDraft[] {
    const handoff = createHandoff({ childRunId: "child-1", ...settling.handoff });
    return settleHandoff(createView(settling), handoff, createHandover(settling.handover), outcome);
  }

  type ChildEndOutcome = EffectOutcome & { readonly kind: "child_ended" };

  function createEnded(
    status: ChildEndOutcome["status"],
    more: Partial<ChildEndOutcome> = {},
  ): ChildEndOutcome {
    return { kind: "child_ended", status, variables: { text: "hi" }, ...more };
  }

  it("is that a child was created, once", () => {
    const created = { kind: "child_created", childRunId: "child-2" } as const;
    const handoff = { phase: "dispatching" } as const;
    expect(settle(created, { handoff, handover: { causationId: CAUSE } })).toStrictEqual([
      {
        type: "node.dispatched",
        nodeId: "a",
        causationId: CAUSE,
        payload: { childRunId: "child-2", childWorkflowId: "writer" },
      },
      createChainEvent({ phase: "dispatch.succeeded", childRunId: "child-2" }),
    ]);
    expect(settle(created, { handoff })[0]).toStrictEqual({
      type: "node.dispatched",
      nodeId: "a",
      payload: { childRunId: "child-2", childWorkflowId: "writer" },
    });
    expect(settle(created)).toEqual([]);
  });

  it.each(["child_refused", "failed"] as const)(
    "is that there is no child, or that it failed: %s",
    (kind) => {
      const outcome = { kind, error: ERROR };
      expect(settle(outcome, { handoff: { phase: "dispatching" } })).toStrictEqual([
        createChainEvent({ phase: "dispatch.failed", error: ERROR }),
      ]);
      expect(settle(outcome)).toStrictEqual([
        createChainEvent({ phase: "child.failed", error: ERROR, childRunId: "child-1" }),
      ]);
    },
  );

  it("merges what a child produced that completed", () => {
    const run = { nextSequence: 20 };
    expect(settle(createEnded("completed"), { run, handover: MAPPED })).toStrictEqual([
      createChainEvent({ phase: "child.completed", childRunId: "child-1" }),
      {
        type: "variable.changed",
        nodeId: "a",
        payload: { name: "result", next: "hi", nodeId: "a" },
      },
      createChainEvent(
        { phase: "output.harvested", childRunId: "child-1", harvestedKeys: ["result"] },
        createEventId(RUN, 20),
      ),
    ]);
  });

  it("says of a child that gave up what it did not meet, before its outputs are merged", () => {
    const drafts = settle(createEnded("completed", { unmet: ["style"] }), { handover: MAPPED });
    expect(drafts.map(({ type }) => type)).toEqual([
      "core.workflowChain.event",
      "coordination.child_gave_up",
      "variable.changed",
      "core.workflowChain.event",
    ]);
    const unmerged = settle(createEnded("completed", { unmet: ["style"] }));
    expect(unmerged.map(({ type }) => type)).toEqual([
      "core.workflowChain.event",
      "coordination.child_gave_up",
    ]);
  });

  it.each<[title: string, outcome: ChildEndOutcome, settling: HandoffScene]>([
    [
      "that failed",
      { kind: "child_ended", status: "failed", variables: { text: "hi" }, error: ERROR },
      { handover: MAPPED },
    ],
    ["that was cancelled", { kind: "child_ended", status: "cancelled", variables: {} }, { handover: MAPPED }],
    ["of which nothing is wanted", { kind: "child_ended", status: "completed", variables: {} }, {}],
    [
      "that has a gate before it",
      { kind: "child_ended", status: "completed", variables: { text: "hi" } },
      { config: VERIFIER, handover: MAPPED },
    ],
  ])("merges nothing of a child %s", (_title, outcome, settling) => {
    const { status, error } = outcome;
    expect(settle(outcome, settling)).toStrictEqual([
      createChainEvent({ phase: `child.${status}`, childRunId: "child-1", ...(error && { error }) }),
    ]);
  });

  it("is the ruling of the gate where the child has ended", () => {
    const judged = {
      kind: "child_judged",
      variables: {},
      isSelf: false,
      judgements: [{ kind: "verdict", verdict: "pass", criteria: [] }],
    } as const;
    const handoff = { phase: "ended", childStatus: "completed" } as const;
    expect(settle(judged, { config: VERIFIER, handoff })).toMatchObject([
      { type: "agent.verified", payload: { verdict: "pass", target: "child-1" } },
    ]);
    expect(settle(judged, { config: VERIFIER })).toEqual([]);
  });

  it("is nothing where its outputs were merged before", () => {
    expect(settle(createEnded("completed"), { handoff: { phase: "harvested" } })).toEqual([]);
  });

  it("is nothing where it is about something else", () => {
    expect(settle({ kind: "side_effect_caused", effectId: "e" })).toEqual([]);
  });

  it("names no child where none is on record", () => {
    const outcome = createEnded("cancelled");
    const handoff = createHandoff();
    expect(settleHandoff(createView(), handoff, createHandover(), outcome)).toStrictEqual([
      createChainEvent({ phase: "child.cancelled" }),
    ]);
  });
});
