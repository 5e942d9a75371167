/** Owns: which recorded events a replay takes as they are because they came from outside, and where it has diverged. */
import { describe, expect, it } from "vitest";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { deriveRecorded } from "../../src/agents/coordination/workflow/replay-workflow.ts";
import { draftRunPause } from "../../src/agents/coordination/workflow/workflow-commands.ts";
import { createEdge, createNode, sendNextWorker, TERMINATE } from "../support/workflow-definitions.ts";
import { CANCELLED, PAUSED, RESUMED } from "./workflow-evolve-scene.ts";
import {
  beginReplay,
  CHILD_ENDED,
  continueRecord,
  createChild,
  recordRun,
  replay,
  settle,
  type RecordedRun,
} from "./workflow-replay-scene.ts";

const ERROR = { code: "x", message: "y" };
const DELAY = createNode("n", "core.delay", { delayMs: 5_000 });

const start = (nodeId: string): WorkflowDraft => ({
  type: "node.started",
  nodeId,
  payload: { nodeId, typeId: "core.noop", attempt: 0 },
});
const end = (nodeId: string, outputs = {}): WorkflowDraft => ({
  type: "node.completed",
  nodeId,
  payload: { nodeId, outputs },
});
const fail = (nodeId: string): WorkflowDraft => ({
  type: "node.failed",
  nodeId,
  payload: { nodeId, error: ERROR },
});
const retry = (nodeId: string): WorkflowDraft => ({
  type: "node.retried",
  nodeId,
  payload: { nodeId, attempt: 1 },
});
const skip = (nodeId: string): WorkflowDraft => ({ type: "node.skipped", nodeId, payload: { nodeId } });
const cancel = (nodeId: string): WorkflowDraft => ({ type: "node.cancelled", nodeId, payload: { nodeId } });
const suspend = (nodeId: string): WorkflowDraft => ({
  type: "node.suspended",
  nodeId,
  payload: { nodeId, interruptId: `${nodeId}~1`, kind: "clarification", key: "k" },
});
const ask = (nodeId: string): WorkflowDraft => ({
  type: "interrupt.requested",
  nodeId,
  payload: { kind: "clarification", key: "k", data: {} },
});
const resolve = (interruptId: string, by: object): WorkflowDraft => ({
  type: "interrupt.resolved",
  nodeId: "n",
  payload: { nodeId: "n", interruptId, kind: "approval", resumeValue: { action: "accept" }, ...by },
});
const approve = (by: object): WorkflowDraft => ({
  type: "approval.received",
  nodeId: "n",
  payload: { nodeId: "n", interruptId: "n~1", action: "accept", ...by },
});
const change: WorkflowDraft = { type: "variable.changed", payload: { name: "v", next: 1 } };
const usage: WorkflowDraft = { type: "provider.usage", nodeId: "n", payload: {} };
const call: WorkflowDraft = {
  type: "agent.toolCalled",
  nodeId: "n",
  payload: { agentId: "node:n", toolName: "search", callId: "n:1" },
};
const returned: WorkflowDraft = {
  type: "agent.toolReturned",
  nodeId: "n",
  payload: { agentId: "node:n", toolName: "search", callId: "n:1" },
};
const closed: WorkflowDraft = {
  type: "agent.invocation.completed",
  nodeId: "n",
  payload: { invocationId: "i", agentId: "acme.writer", outcome: "failed" },
};
const breachRun: WorkflowDraft = {
  type: "cap.breached",
  payload: { kind: "run-duration", limit: 1, observed: 2 },
};
const breach: WorkflowDraft = { ...breachRun, nodeId: "n" };
const failRun: WorkflowDraft = { type: "run.failed", payload: { error: ERROR } };
const completeRun: WorkflowDraft = { type: "run.completed", payload: { outputs: {} } };

/** Records of one node `n` that has begun: two events, and what it did at once. */
const recordDelay = (): RecordedRun => recordRun({ nodes: [DELAY] });
const recordAsking = (): RecordedRun =>
  recordRun({ nodes: [createNode("n", "core.ai.callPrompt", { prompt: "?" })] });
const recordCalling = (): RecordedRun =>
  recordRun({ nodes: [createNode("n", "core.ai.callPrompt", { mcp: { tool: "search" } })] }, [], {
    mcpUrl: "https://mcp.example",
  });
const recordGate = (config = {}): RecordedRun =>
  recordRun({ nodes: [createNode("n", "core.approvalGate", config)] });
const recordNode = (typeId = "core.noop", config = {}): RecordedRun =>
  recordRun({ nodes: [createNode("n", typeId, config)] });
const recordSupervised = (): RecordedRun =>
  recordRun({
    nodes: [
      createNode("n", "core.orchestrator.supervisor", { mockDispatchPlan: [TERMINATE] }),
      createNode("d", "core.dispatch"),
    ],
    edges: [createEdge("n>d"), createEdge("d>n")],
  });

/** A record, as many of its events, and what stands behind them. */
type Case = [
  title: string,
  record: () => RecordedRun,
  count: number,
  ...moments: (readonly [seconds: number, draft: WorkflowDraft])[],
];

const ASKED = { askedEffectId: "n:1:ask" };
const replayCase = ([, record, count, ...moments]: Case) =>
  replay(continueRecord(record(), count, ...moments), ASKED);

describe("what came from outside", () => {
  const cases: readonly Case[] = [
    ["a pause", recordDelay, 2, [1, PAUSED]],
    [
      "the wish for a pause",
      recordDelay,
      2,
      [1, { type: "coordination.pause_requested", payload: { drainPolicy: "immediate" } }],
    ],
    [
      "another process",
      recordDelay,
      2,
      [1, { type: "run.resuming", payload: { process: "p", fromStatus: "x" } }],
    ],
    ["a variable that somebody set", recordDelay, 2, [1, change]],
    [
      "a file that changed",
      recordDelay,
      2,
      [1, { type: "workspace.updated", payload: { path: "a", version: 1 } }],
    ],
    ["a limit of the run", recordDelay, 2, [1, breachRun]],
    [
      "a limit and all that ends with it",
      recordDelay,
      2,
      [1, breach],
      [1, closed],
      [1, fail("n")],
      [1, cancel("n")],
      [1, failRun],
    ],
    ["an answer of somebody", recordGate, 4, [1, resolve("n~1", { resolvedBy: "alice" })]],
    ["the voice of somebody", recordGate, 4, [1, approve({ decidedBy: "alice" })]],
    ["an answer of a model that was asked", recordAsking, 2, [1, usage], [1, end("n", { text: "said" })]],
    ["the end of a call of a model", recordAsking, 2, [1, fail("n")]],
    [
      "a variable, and then the end of its node",
      recordAsking,
      2,
      [1, { ...change, nodeId: "n" }],
      [1, end("n")],
    ],
    ["what a tool returned", recordCalling, 3, [1, returned]],
    ["a call that failed at once", recordCalling, 2, [0, fail("n")]],
    ["a call that failed at once and is tried again", recordCalling, 2, [0, retry("n")]],
    [
      "the outputs of a node that is another each time",
      () => recordNode("core.noop", { nondeterministic: true }),
      2,
      [0, end("n", { a: 1 })],
    ],
    [
      "the failure of a node that is another each time",
      () => recordNode("core.noop", { nondeterministic: true }),
      2,
      [0, fail("n")],
    ],
    ["another decision of a supervisor", recordSupervised, 2, [0, end("n", { decision: "none" })]],
    ["the failure of a supervisor", recordSupervised, 2, [0, fail("n")]],
  ];

  it.each<Case>(cases)("is taken as it was recorded: %s", (...each) => {
    const [, , count, ...moments] = each;
    const { run, events, then } = replayCase(each);
    expect(then).toEqual({ kind: "over" });
    expect(events.slice(count - 1).map(({ type }) => type)).toEqual(moments.map(([, { type }]) => type));
    expect(run.nextSequence).toBe(count + moments.length);
  });

  it("is no model that was asked meanwhile: it is asked again, and nothing of its answer is taken", () => {
    const record = continueRecord(recordAsking(), 2, [1, usage], [1, end("n")]);
    for (const context of [{}, { askedEffectId: "n:0:ask" }]) {
      const { events, then, run } = replay(record, context);
      expect([events.length, run.nextSequence]).toEqual([1, 2]);
      expect(then).toMatchObject({ kind: "ask", effect: { kind: "ask_model", id: "n:1:ask", nodeId: "n" } });
    }
  });

  it("is a model's answer before the place that is derived from: nobody is asked", () => {
    const record = continueRecord(recordAsking(), 2, [1, usage], [1, end("n")]);
    expect(replay(record, { derivesFrom: 3 }).then).toEqual({ kind: "over" });
    expect(replay(record, { derivesFrom: 2 }).then.kind).toBe("ask");
  });

  it("asks the model of the next attempt", () => {
    const record = continueRecord(recordAsking(), 2, [1, retry("n")], [1, start("n")], [1, fail("n")]);
    const { events, then } = replay(record, ASKED);
    expect(events).toHaveLength(3);
    expect(then).toMatchObject({ kind: "ask", effect: { id: "n:2:ask" } });
  });
});

describe("a replay has diverged", () => {
  const cases: readonly Case[] = [
    [
      "by an event of no node that is no command",
      recordDelay,
      2,
      [1, { type: "approval.granted", payload: {} }],
    ],
    ["by the end of a run that goes on", recordDelay, 2, [1, completeRun]],
    ["by the end of a node that still waits", recordDelay, 2, [1, end("n")]],
    ["by the failure of a node that cannot fail", recordDelay, 2, [1, fail("n")]],
    ["by another attempt of such a node", recordDelay, 2, [1, retry("n")]],
    ["by a node that has not begun", recordAsking, 2, [1, end("other")]],
    ["by a second start of a node that waits for a model", recordAsking, 2, [1, start("n")]],
    ["by the skipping of a node that waits for a model", recordAsking, 2, [1, skip("n")]],
    [
      "by an answer to a node that asks nothing",
      recordAsking,
      2,
      [1, resolve("n~1", { resolvedBy: "alice" })],
    ],
    [
      "by an answer to a node that has not begun",
      recordAsking,
      2,
      [1, { ...resolve("other~1", { resolvedBy: "alice" }), nodeId: "other" }],
    ],
    ["by an answer of nobody", recordGate, 4, [1, resolve("n~1", {})]],
    ["by an answer to another question", recordGate, 4, [1, resolve("n~2", { resolvedBy: "alice" })]],
    ["by the voice of nobody", recordGate, 4, [1, approve({})]],
    ["by the end of a node that asks", recordGate, 4, [1, end("n")]],
    ["by a question that a supervisor does not ask", recordSupervised, 2, [0, suspend("n")]],
    ["by what a supervisor is not suspended for", recordSupervised, 2, [0, ask("n")]],
    ["by the end of a node that would call a tool", recordCalling, 2, [0, end("n")]],
    ["by other outputs", recordNode, 2, [0, end("n", { a: 1 })]],
    [
      "by other outputs of a node that is declared badly",
      () => recordNode("core.noop", { nondeterministic: "yes" }),
      2,
      [0, end("n", { a: 1 })],
    ],
    ["by another attempt of a node of unknown type", () => recordNode("x.unknown"), 2, [0, retry("n")]],
  ];

  it.each<Case>(cases)("%s", (...each) => {
    const [, , count] = each;
    const { run, events, then } = replayCase(each);
    expect(then).toMatchObject({ kind: "diverged", divergence: { event: { sequence: count } } });
    expect([events.length, run.nextSequence]).toEqual([count - 1, count]);
  });

  /** The first of the events is taken, and the second is not. */
  const later: readonly Case[] = [
    ["where the run ends with a variable that somebody set", recordDelay, 2, [1, change], [1, completeRun]],
    ["where the run fails with a variable that somebody set", recordDelay, 2, [1, change], [1, failRun]],
    ["where a node is skipped that a model answers", recordAsking, 2, [1, usage], [1, skip("n")]],
    ["where a node ends later than what came from outside", recordCalling, 3, [1, returned], [2, end("n")]],
    [
      "where another node ends with what came from outside",
      recordCalling,
      3,
      [1, returned],
      [1, end("other")],
    ],
    ["where a tool is called otherwise than its node would", recordCalling, 3, [1, returned], [1, call]],
    ["where a node goes on behind a limit", recordDelay, 2, [1, breach], [1, end("n")]],
    ["where a node ends later than the limit", recordDelay, 2, [1, breach], [2, cancel("n")]],
    [
      "where an answer has another effect",
      recordGate,
      4,
      [1, resolve("n~1", { resolvedBy: "alice" })],
      [1, fail("n")],
    ],
  ];

  it.each<Case>(later)("behind what came from outside, %s", (...each) => {
    const [, , count] = each;
    const { run, events, then } = replayCase(each);
    expect(then).toMatchObject({ kind: "diverged", divergence: { event: { sequence: count + 1 } } });
    expect([events.length, run.nextSequence]).toEqual([count, count + 1]);
  });

  it("where a node that asked back ends unanswered", () => {
    const remote = recordRun(
      { nodes: [createNode("n", "core.a2a.invoke")] },
      [[2, settle({ kind: "tool_answered", ok: true, text: "x", content: null, state: "input-required" })]],
      { a2aUrl: "https://a2a.example" },
    );
    const { then, run } = replay(continueRecord(remote, 6, [2, fail("n")]));
    expect([then.kind, run.nextSequence]).toEqual(["diverged", 6]);
  });

  it("where a node is resumed that does not begin again", () => {
    const paused = recordRun({ nodes: [DELAY] }, [
      [1, ({ run }) => draftRunPause(run, { drainPolicy: "immediate" })],
    ]);
    const { then, run } = replay(continueRecord(paused, 3, [2, RESUMED], [7, end("n")]));
    expect([then.kind, run.nextSequence]).toEqual(["diverged", 3]);
  });

  it("where an event is of a node that the workflow does not have", () => {
    const record = continueRecord(recordDelay(), 2, [0, start("ghost")], [0, end("ghost")]);
    const { then, run } = replay(record, { derivesFrom: 3 });
    expect([then.kind, run.nextSequence]).toEqual(["diverged", 3]);
  });

  it("where the next worker is another one than the decision names", () => {
    const { record, at } = recordTwoWorkers();
    const other = record.events.map((event) =>
      event.sequence === at && event.type === "core.workflowChain.event"
        ? { ...event, payload: { ...event.payload, workerId: "c" } }
        : event,
    );
    expect(replay(record).then).toEqual({ kind: "over" });
    expect(replay({ ...record, events: other }).then).toMatchObject({
      kind: "diverged",
      divergence: { point: "core.workflowChain.event of d: payload.workerId" },
    });
  });

  it("from the place on that is derived, and not before it", () => {
    const record = continueRecord(recordNode(), 2, [0, end("n", { a: 1 })], [0, completeRun]);
    expect(replay(record, { derivesFrom: 2 }).then.kind).toBe("diverged");
    expect(replay(continueRecord(record, 3), { derivesFrom: 3 }).then).toEqual({ kind: "over" });
  });

  it("tells that the record lacks an event where the next one follows", () => {
    const record = continueRecord(recordNode(), 1, [0, CANCELLED], [0, start("n")]);
    expect(replay(record).then).toMatchObject({
      divergence: { kind: "missing", point: "run.cancelled does not come before node.started of n" },
    });
  });
});

function recordTwoWorkers() {
  const record = recordRun(
    {
      nodes: [
        createNode("s", "core.orchestrator.supervisor", {
          mockDispatchPlan: [sendNextWorker("a", "b"), TERMINATE],
        }),
        createNode("d", "core.dispatch", { outputMapping: { v: "result" } }),
      ],
      edges: [createEdge("s>d"), createEdge("d>s")],
    },
    [
      [1, createChild("a-1")],
      [2, CHILD_ENDED],
      [3, createChild("b-1")],
      [4, CHILD_ENDED],
    ],
  );
  const at = record.events.findLastIndex(
    ({ payload }) => "phase" in payload && payload.phase === "dispatch.began",
  );
  return { record, at };
}

describe("an empty page", () => {
  it("leaves the run as it is, and wants more", () => {
    const record = recordDelay();
    const run = beginReplay(record);
    const { graph, settings } = record;
    const part = deriveRecorded(run, { graph, settings }, { events: [], isAll: false });
    expect(part).toEqual({ run, events: [], then: { kind: "more" } });
    expect(part.run).toBe(run);
  });
});
