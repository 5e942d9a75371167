/** Owns: how a fork begins its own history, and what it says of the rest of the append that it was cut off in. */
import { describe, expect, it } from "vitest";
import { createEventId, type EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { OrchestratorDecision } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { draftForkGoingLive, draftRestOfAppend } from "../../src/agents/coordination/workflow/go-live.ts";
import type { NodeStep, NodeType } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import type {
  Interrupt,
  NodeRun,
  WorkflowRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createNode, TERMINATE } from "../support/workflow-definitions.ts";
import { SETTINGS } from "../support/workflow-settings.ts";
import { actingType, createContext, createPlayed } from "./workflow-advance-scene.ts";
import {
  createAsking,
  createNodeRun,
  createOrigin,
  createRun,
  NOW,
  RUN,
  withNodes,
} from "./workflow-view-scene.ts";

const PROCESS = "process-7";
const resumeFrom = (fromStatus: string) => ({
  type: "run.resuming",
  payload: { process: PROCESS, fromStatus },
});

/** A fork that took its first three events from its source, and what it is beside that. */
const createFork = (change: Partial<WorkflowRun>): WorkflowRun =>
  createRun({ origin: createOrigin(3), nextSequence: 3, ...change });

/** The node asks people, and the log was cut off before it says so, unless `more` says otherwise. */
function createCutOff(more: Partial<Interrupt> = {}, node: Partial<NodeRun> = {}): NodeRun {
  const { interrupt, ...nodeRun } = createAsking("a");
  if (!interrupt) throw new Error("the node asks people");
  return { ...nodeRun, ...node, interrupt: { ...interrupt, ...more } };
}

const PAUSED = { kind: "paused", atMs: NOW } as const;

describe("a fork that has taken all that it takes", () => {
  const goLive = (typeId: string, change: Partial<WorkflowRun>, type: NodeType = actingType) => {
    const settings = typeId === "test.step" ? createPlayed({ "test.step": type }) : SETTINGS;
    const { graph } = createContext({ nodes: [createNode("a", typeId, { delayMs: 5, timeoutMs: 9 })] });
    return draftForkGoingLive(createFork(change), { graph, settings }, PROCESS);
  };
  const ASKING = { waitingSinceMs: NOW, ...withNodes(createCutOff({ isAsked: true })) };

  it.each([
    ["a node is due", "core.noop", {}],
    ["a node waits for its time", "core.delay", withNodes(createNodeRun("a", "running"))],
    [
      "a question has an end",
      "core.approvalGate",
      { ...ASKING, ...withNodes(createCutOff({ isAsked: true, timeoutMs: 9 })) },
    ],
    ["a node acts while people are asked", "test.step", ASKING],
  ] as const)("begins its own history where %s", (_case, typeId, change) => {
    const drafts = goLive(typeId, change);
    expect(drafts).toHaveLength(1);
    expect(drafts).toMatchObject([{ type: "run.resuming", payload: { process: PROCESS } }]);
  });

  it("says the status that it had, and behind that the rest of what it was cut off in", () => {
    const drafts = goLive(
      "core.noop",
      withNodes(createNodeRun("a", "running", { attempt: 1, isRetrying: true })),
    );
    expect(drafts).toMatchObject([
      resumeFrom("running"),
      { type: "node.started", nodeId: "a", payload: { nodeId: "a", typeId: "core.noop", attempt: 1 } },
    ]);
  });

  it("says what is asked also while it is paused", () => {
    const drafts = goLive("core.approvalGate", { phase: PAUSED, ...withNodes(createCutOff()) });
    expect(drafts).toMatchObject([resumeFrom("paused"), { type: "interrupt.requested", nodeId: "a" }]);
  });

  it("counts no time since its last event", () => {
    const changedAtMs = (NOW + 700_000) as EpochMs;
    const seen: number[] = [];
    const type: NodeType = {
      step: ({ now }) => {
        seen.push(now);
        return { kind: "wait" };
      },
    };
    const change = { waitingSinceMs: NOW, changedAtMs, ...withNodes(createNodeRun("a", "running")) };
    expect(goLive("test.step", change, type)).toEqual([]);
    expect([...new Set(seen)]).toEqual([changedAtMs]);
  });

  it("stays as it is where only people can move it", () => {
    expect(goLive("core.approvalGate", ASKING)).toEqual([]);
  });

  it.each([
    ["still takes events", { nextSequence: 2 }],
    ["has begun", { nextSequence: 4 }],
    ["has ended", { phase: { kind: "cancelled", atMs: NOW } }],
  ] as const)("does not begin where it %s", (_case, change) => {
    expect(goLive("core.noop", change)).toEqual([]);
  });
});

describe("the rest of a failed attempt", () => {
  const retrying = createNodeRun("a", "running", { attempt: 2, isRetrying: true });
  const findRestOfRetry = (change: Partial<WorkflowRun>) =>
    draftRestOfAppend(
      createFork({ ...withNodes(retrying), ...change }),
      createContext({ nodes: [createNode("a")] }),
    );

  it("is the next attempt", () => {
    expect(findRestOfRetry({})).toEqual([
      { type: "node.started", nodeId: "a", payload: { nodeId: "a", typeId: "core.noop", attempt: 2 } },
    ]);
  });

  it("is nothing in a paused run, which begins it when it is resumed", () => {
    expect(findRestOfRetry({ phase: PAUSED })).toEqual([]);
  });

  it("is nothing for a node that the workflow does not have", () => {
    const ghost = createNodeRun("ghost", "running", { isRetrying: true });
    expect(findRestOfRetry(withNodes(ghost))).toEqual([]);
  });
});

describe("the rest of a supervisor's turn", () => {
  const SENT: OrchestratorDecision = { kind: "next-worker", nextWorkerIds: ["w"] };
  const decideAt = (sequence: number, nodeId = "a"): Pick<WorkflowRun, "orchestrator"> => ({
    orchestrator: {
      agentId: "acme.chief",
      decided: 4,
      revisions: 0,
      last: { decision: SENT, eventId: createEventId(RUN, sequence), sequence, nodeId },
    },
  });
  const running = createNodeRun("a", "running");
  const endWith = (decision: unknown, endedSequence = 2) =>
    createNodeRun("a", "completed", { endedSequence, outputs: { decision } });
  const findRestOfTurn = (
    nodeRun: NodeRun,
    change: Partial<WorkflowRun> = {},
    typeId = "core.orchestrator.supervisor",
  ) =>
    draftRestOfAppend(
      createFork({ ...withNodes(nodeRun), ...change }),
      createContext({ nodes: [createNode("a", typeId)] }),
    );

  it("is the end of the node that has decided", () => {
    expect(findRestOfTurn(running, decideAt(2))).toEqual([
      { type: "node.completed", nodeId: "a", payload: { nodeId: "a", outputs: { decision: SENT } } },
    ]);
  });

  it("is the last decision where its node has just ended with it", () => {
    expect(findRestOfTurn(endWith(TERMINATE), decideAt(0))).toEqual([
      {
        type: "runOrchestrator.decided",
        nodeId: "a",
        payload: { agentId: "acme.chief", decision: TERMINATE, iteration: 5 },
      },
    ]);
  });

  it("is the last decision of the node's agent where none has decided before", () => {
    expect(findRestOfTurn(endWith(TERMINATE))).toMatchObject([
      { type: "runOrchestrator.decided", payload: { agentId: "node:a", iteration: 1 } },
    ]);
  });

  it.each([
    ["it decided in an earlier turn", running, decideAt(0)],
    ["another node decided", running, decideAt(2, "b")],
    ["nobody has decided", running, {}],
    ["it decided and ended", endWith(TERMINATE), decideAt(2)],
    ["something happened since it ended", endWith(TERMINATE, 1), {}],
    ["it did not complete", { ...endWith(TERMINATE), status: "failed" as const }, {}],
    ["its decision does not end the run", endWith(SENT), {}],
    ["it ended with no decision", endWith({ kind: "unheard" }), {}],
    ["it ended without outputs", createNodeRun("a", "completed", { endedSequence: 2 }), {}],
  ])("is nothing where %s", (_case, nodeRun, change) => {
    expect(findRestOfTurn(nodeRun, change)).toEqual([]);
  });

  it("is nothing for a node that is no supervisor", () => {
    expect(findRestOfTurn(endWith(TERMINATE), {}, "core.noop")).toEqual([]);
  });

  it("is its question where it was cut off before that", () => {
    expect(findRestOfTurn(createCutOff())).toMatchObject([{ type: "interrupt.requested", nodeId: "a" }]);
  });
});

describe("the rest of a question", () => {
  const findRestOfQuestion = (nodeRun: NodeRun, typeId: string, step?: NodeStep | NodeType["step"]) => {
    const type: NodeType = { step: typeof step === "function" ? step : () => step ?? { kind: "wait" } };
    const context = createContext(
      { nodes: [createNode("a", typeId, { title: "Ship it?", timeoutMs: 9_000 })] },
      createPlayed({ "test.step": type }),
    );
    return draftRestOfAppend(createFork(withNodes(nodeRun)), context);
  };

  it("is the question as its node asks it, under the key that is in the log", () => {
    expect(findRestOfQuestion(createCutOff({ key: "source-1:a~1" }), "core.approvalGate")).toEqual([
      {
        type: "interrupt.requested",
        nodeId: "a",
        payload: {
          kind: "approval",
          key: "source-1:a~1",
          data: {
            artifactId: `${RUN}:a`,
            artifactType: "approval",
            title: "Ship it?",
            actions: ["accept", "reject"],
          },
          timeoutMs: 9_000,
        },
      },
    ]);
  });

  it("comes of the node as it was before it asked", () => {
    const step: NodeType["step"] = ({ nodeRun: { status, interrupts, interrupt } }) => ({
      kind: "suspend",
      interrupt: { kind: "custom", data: { status, interrupts, isAsking: interrupt !== undefined } },
    });
    expect(findRestOfQuestion(createCutOff({}, { interrupts: 3 }), "test.step", step)).toMatchObject([
      { payload: { kind: "custom", data: { status: "running", interrupts: 2, isAsking: false } } },
    ]);
  });

  it.each([
    [
      "an approval",
      { kind: "approval" },
      {
        artifactId: "k",
        artifactType: "approval",
        title: "a waits for an answer.",
        actions: ["accept", "reject"],
      },
    ],
    [
      "an approval for a reason",
      { kind: "approval", reason: "low-confidence" },
      {
        artifactId: "k",
        artifactType: "approval",
        title: "a waits: low-confidence.",
        actions: ["accept", "reject"],
      },
    ],
    [
      "anything else",
      { kind: "clarification" },
      { questions: [{ id: "q1", question: "a waits for an answer." }] },
    ],
    [
      "anything else for a reason",
      { kind: "clarification", reason: "auth-required" },
      { questions: [{ id: "q1", question: "a waits: auth-required." }] },
    ],
  ] as const)("is one that says who waits where somebody else asked for %s", (_case, more, data) => {
    expect(findRestOfQuestion(createCutOff(more), "test.step")).toEqual([
      { type: "interrupt.requested", nodeId: "a", payload: { kind: more.kind, key: "k", data } },
    ]);
  });

  it.each([
    ["people were told", createCutOff({ isAsked: true })],
    ["nobody is asked", createNodeRun("a", "running")],
  ])("is nothing where %s", (_case, nodeRun) => {
    expect(findRestOfQuestion(nodeRun, "core.approvalGate")).toEqual([]);
  });
});
