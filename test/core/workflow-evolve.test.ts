/** Owns: what one event after the other makes of a workflow run: its phase, its size, and what its supervisor decided. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  OrchestratorDecision,
  WorkflowDraft,
  WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { createRunEvent } from "../../src/agents/coordination/workflow/advance-run.ts";
import {
  beginWorkflow,
  evolveWorkflow,
  foldWorkflow,
} from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import type { WorkflowRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import {
  append,
  ask,
  BEGUN,
  CANCELLED,
  createOrigin,
  FIRST,
  PAUSED,
  play,
  resolve,
  RESUMED,
  RUN,
  showRun,
  start,
  STARTED,
  suspend,
  timeAt,
} from "./workflow-evolve-scene.ts";

type ShownRun = ReturnType<typeof showRun>;

/** Expects that an event a minute after the beginning changes these fields of the run, and no others. */
function expectChange(before: WorkflowRun, draft: WorkflowDraft, changes: Partial<ShownRun>): void {
  expect(showRun(append(before, draft, 60))).toStrictEqual({
    ...showRun(before),
    nextSequence: before.nextSequence + 1,
    changedAtMs: timeAt(60),
    ...changes,
  });
}

const FAILURE = { code: "broken", message: "it broke" };
const COMPLETED: WorkflowDraft = { type: "run.completed", payload: { outputs: { out: 1 } } };
const FAILED: WorkflowDraft = { type: "run.failed", payload: { error: FAILURE } };
const PAUSE = { drainPolicy: "drain-current-node", reason: "lunch" } as const;
const PAUSE_REQUESTED: WorkflowDraft = { type: "coordination.pause_requested", payload: PAUSE };

describe("a run that begins", () => {
  const expected = showRun(BEGUN);

  it("is open, and nothing has happened in it", () => {
    expect(showRun(beginWorkflow(FIRST))).toStrictEqual(expected);
    expect(showRun(evolveWorkflow(undefined, FIRST))).toStrictEqual(expected);
  });

  it("as a fork has the options of its source", () => {
    const origin = createOrigin(1);
    expect(showRun(beginWorkflow(FIRST, origin))).toStrictEqual({ ...expected, origin });
  });

  it("as a fork has the options of its caller in place of those of its source", () => {
    const origin = { ...createOrigin(1), configurable: { model: "large", seed: 1 } };
    const configurable = { model: "large", floor: 0.5, seed: 1 };
    expect(beginWorkflow(FIRST, origin).started).toStrictEqual({ ...STARTED, configurable });
  });

  it.each<[string, WorkflowEvent, string]>([
    ["another event", { ...FIRST, ...COMPLETED }, "L2: a run begins with run.completed"],
    ["another place than the first", { ...FIRST, sequence: 1 }, "L2: a run begins with run.started"],
  ])("does not begin with %s", (_title, event, message) => {
    expect(() => beginWorkflow(event)).toThrow(message);
    expect(() => evolveWorkflow(undefined, event)).toThrow(message);
  });
});

describe("a log", () => {
  const second = createRunEvent(BEGUN, start("a"), timeAt(1));

  it("of no events is no run", () => {
    expect(foldWorkflow([])).toBeUndefined();
  });

  it("folds to the run that its events make one after the other", () => {
    const expected = showRun(play(BEGUN, [1, start("a")]));
    expect(showRun(foldWorkflow([FIRST, second])!)).toStrictEqual(expected);
  });

  it("of a fork folds to a run that knows where it comes from", () => {
    const origin = createOrigin(1);
    expect(foldWorkflow([FIRST, second], origin)).toMatchObject({ origin, nextSequence: 2, waitedMs: 1_000 });
  });

  it.each([
    ["leaves out", 2],
    ["repeats", 0],
  ])("that %s a sequence is refused", (_title, sequence) => {
    const event = { ...second, sequence };
    expect(() => evolveWorkflow(BEGUN, event)).toThrow("L2: expected 1 at run-1:1");
  });

  it.each([COMPLETED, FAILED, CANCELLED])("that goes on after $type is refused", (end) => {
    const ended = append(BEGUN, end, 1);
    expect(() => append(ended, start("a"), 2)).toThrow("D5: node.started after the end at run-1:2");
  });
});

describe("an event that ends a run, or pauses it", () => {
  it.each<[string, WorkflowDraft, WorkflowRun["phase"]]>([
    ["completed with its outputs", COMPLETED, { kind: "completed", atMs: timeAt(60), outputs: { out: 1 } }],
    ["failed of itself", FAILED, { kind: "failed", atMs: timeAt(60), error: FAILURE }],
    [
      "failed because of a node",
      { type: "run.failed", payload: { error: FAILURE, failedNodeId: "a" } },
      { kind: "failed", atMs: timeAt(60), error: FAILURE, nodeId: "a" },
    ],
    ["cancelled", CANCELLED, { kind: "cancelled", atMs: timeAt(60) }],
    [
      "cancelled for a reason",
      { type: "run.cancelled", payload: { reason: "late", cancelledBy: "bob" } },
      { kind: "cancelled", atMs: timeAt(60), reason: "late" },
    ],
  ])("leaves it %s", (_title, draft, phase) => {
    expectChange(BEGUN, draft, { phase });
  });

  it("leaves it paused, from that time on waiting", () => {
    expectChange(BEGUN, PAUSED, {
      phase: { kind: "paused", atMs: timeAt(60) },
      waitingSinceMs: timeAt(60),
    });
  });

  it("leaves it open again when it is resumed", () => {
    const run = play(BEGUN, [10, PAUSED], [30, RESUMED]);
    expect(showRun(run)).toStrictEqual({
      ...showRun(BEGUN),
      nextSequence: 3,
      changedAtMs: timeAt(30),
      waitedMs: 20_000,
    });
  });

  it("remembers a pause that is to begin later", () => {
    expectChange(BEGUN, PAUSE_REQUESTED, { pauseRequested: PAUSE });
  });

  it.each([PAUSED, RESUMED, COMPLETED, FAILED, CANCELLED])("forgets that pause at $type", (draft) => {
    const run = play(BEGUN, [1, PAUSE_REQUESTED], [2, start("a")]);
    expect(run).toHaveProperty("pauseRequested");
    expect(append(run, draft, 3)).not.toHaveProperty("pauseRequested");
  });
});

describe("an event that is not about the run as a whole", () => {
  it("keeps the new value of a variable", () => {
    const draft: WorkflowDraft = { type: "variable.changed", payload: { name: "v", previous: 1, next: 2 } };
    const changes = { variables: { v: 2 }, chars: BEGUN.chars + '{"name":"v","previous":1,"next":2}'.length };
    expectChange(BEGUN, draft, changes);
  });

  it("starts a node", () => {
    expect(append(BEGUN, start("a"), 1)).toMatchObject({ executions: 1, chars: BEGUN.chars });
    expect(append(BEGUN, start("a"), 1).nodes.get("a")?.startedAtMs).toBe(timeAt(1));
  });

  it("changes nothing else where nothing follows from it", () => {
    expectChange(BEGUN, { type: "workspace.updated", payload: { path: "notes", version: 1 } }, {});
  });

  it.each([
    [{ agentId: "one" }, { agentId: "one" }],
    [
      { agentId: "one", confidence: 0 },
      { agentId: "one", confidence: 0 },
    ],
  ])("names the agent that decided: %j", (payload, actor) => {
    const draft: WorkflowDraft = { type: "agent.decided", payload: { decision: "yes", ...payload } };
    expectChange(BEGUN, draft, { actor });
    expectChange(play(BEGUN, [1, draft]), draft, { actor });
  });
});

describe("the size of a log", () => {
  const agent = { agentId: "one", invocationId: "i" };
  const call = { agentId: "one", toolName: "t", callId: "c" };

  it.each<WorkflowDraft>([
    { type: "node.completed", payload: { nodeId: "a", outputs: { text: "long" } } },
    { type: "variable.changed", payload: { name: "v", next: [1, 2, 3] } },
    ask("a"),
    resolve("a"),
    { type: "agent.toolCalled", payload: { ...call, inputs: { x: 1 } } },
    { type: "agent.toolReturned", payload: { ...call, outcome: "ok" } },
    { type: "agent.reasoned", payload: { agentId: "one", reasoning: "because" } },
    { type: "coordination.agent_bound", payload: { ...agent, threshold: 0.5, task: "go", tools: [] } },
    {
      type: "coordination.agent_turned",
      payload: { invocationId: "i", turn: 1, text: "t", calls: [], tokens: 1 },
    },
    {
      type: "runOrchestrator.decided",
      payload: { agentId: "boss", decision: { kind: "terminate" }, iteration: 1 },
    },
  ])("grows by the values of $type", (draft) => {
    const run = play(BEGUN, [1, start("a")]);
    expect(append(run, draft, 2).chars).toBe(run.chars + JSON.stringify(draft.payload).length);
  });

  it.each([start("b"), suspend("a"), COMPLETED, PAUSED])("does not grow by $type", (draft) => {
    const run = play(BEGUN, [1, start("a")]);
    expect(append(run, draft, 2).chars).toBe(run.chars);
  });
});

describe("what a supervisor decides", () => {
  const decision: OrchestratorDecision = { kind: "next-worker", nextWorkerIds: ["w"] };
  const other: OrchestratorDecision = { kind: "terminate", reason: "over" };
  const decide = (nodeId: string, iteration: number): WorkflowDraft => ({
    type: "runOrchestrator.decided",
    nodeId,
    payload: { agentId: "boss", decision, iteration },
  });
  const escalateDoubt = (originalDecision?: OrchestratorDecision): WorkflowDraft => ({
    type: "core.workflowChain.confidence-escalated",
    nodeId: "a",
    payload: {
      confidence: 0.2,
      floor: 0.5,
      escalationKind: "escalate",
      parentRunId: RUN,
      ...(originalDecision && { originalDecision }),
    },
  });
  const decided: WorkflowRun["orchestrator"] = {
    revisions: 0,
    agentId: "boss",
    decided: 3,
    last: { decision, eventId: createEventId(RUN, 1), sequence: 1, nodeId: "a" },
  };

  it("is the newest decision, and counts as many as it says", () => {
    expect(append(BEGUN, decide("a", 3), 1).orchestrator).toStrictEqual(decided);
    const last = { decision, eventId: "run-1:2", sequence: 2, nodeId: "b" };
    expect(play(BEGUN, [1, decide("a", 3)], [2, decide("b", 4)]).orchestrator).toStrictEqual({
      ...decided,
      decided: 4,
      last,
      earlier: [decided.last],
    });
    const third = play(BEGUN, [1, decide("a", 3)], [2, decide("b", 4)], [3, decide("a", 5)]).orchestrator;
    expect(third.earlier).toStrictEqual([decided.last, last]);
  });

  it("waits beside the newest decision where it is in doubt", () => {
    const run = play(BEGUN, [1, decide("a", 3)]);
    expectChange(run, escalateDoubt(other), {
      orchestrator: { ...decided, held: [{ nodeId: "a", decision: other, sequence: 2 }] },
    });
  });

  it("waits no longer when the next decision is there", () => {
    expect(play(BEGUN, [1, escalateDoubt(other)], [2, decide("a", 1)]).orchestrator).not.toHaveProperty(
      "held",
    );
  });

  it("goes on waiting when the work of a child is in doubt", () => {
    expectChange(play(BEGUN, [1, escalateDoubt(other)]), escalateDoubt(), {});
  });
});
