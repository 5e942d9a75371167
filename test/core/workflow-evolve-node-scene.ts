/** Owns: a run with one node for tests of what the events of a node mean for it, and the drafts of what the node and its agent do. */
import { createEventId, formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  WorkflowDraft,
  WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { evolveNode } from "../../src/agents/coordination/workflow/state/evolve-node.ts";
import type {
  Interrupt,
  NodeRun,
  WorkflowRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { BEGUN, RUN, timeAt } from "./workflow-evolve-scene.ts";

/** Applies the drafts; the sequence of the first is `from`, and each happens as many seconds after the start as its sequence says. */
export function apply(run: WorkflowRun, drafts: readonly WorkflowDraft[], from = 1): WorkflowRun {
  return drafts.reduce((before, draft, index) => {
    const sequence = from + index;
    const timestamp = formatTimestamp(timeAt(sequence));
    const event: WorkflowEvent = {
      eventId: createEventId(RUN, sequence),
      runId: RUN,
      sequence,
      timestamp,
      ...draft,
    };
    return evolveNode(before, event, timeAt(sequence));
  }, run);
}

export const nodeOf = (run: WorkflowRun, nodeId = "a"): NodeRun | undefined => run.nodes.get(nodeId);

export const keep = (memoryId: string): WorkflowDraft => ({
  type: "memory.written",
  nodeId: "a",
  payload: { memoryRef: "w", memoryId },
});
export const CALL = { agentId: "acme.writer", toolName: "search", callId: "call-1" };
export const CALLED: WorkflowDraft = {
  type: "agent.toolCalled",
  nodeId: "a",
  payload: { ...CALL, inputs: { q: 1 } },
};
export const RETURNED: WorkflowDraft = { type: "agent.toolReturned", nodeId: "a", payload: CALL };
export const DISPATCHED: WorkflowDraft = {
  type: "node.dispatched",
  nodeId: "a",
  payload: { childRunId: "child-1", childWorkflowId: "w" },
};
export const CHILD_COMPLETED: WorkflowDraft = {
  type: "core.workflowChain.event",
  nodeId: "a",
  payload: { phase: "child.completed", workerId: "w", parentRunId: RUN },
};

/** The node `a` as its start with the sequence makes it. */
export const withStart = (sequence: number) => ({
  startedAtMs: timeAt(sequence),
  startedSequence: sequence,
  startedEventId: createEventId(RUN, sequence),
});
export const withEntry = (sequence: number) => ({ enteredSequence: sequence, enteredAtMs: timeAt(sequence) });

export const NODE: NodeRun = {
  nodeId: "a",
  status: "running",
  executions: 1,
  attempt: 0,
  ...withStart(1),
  ...withEntry(1),
  variablesAtStart: BEGUN.variables,
  answers: [],
  memoryIds: [],
  interrupts: 0,
  completedChildren: 0,
  loopbacks: 0,
};
/** The run in which the node has started. No event is applied while this file loads: a test is to fail, not the file. */
export const RUNNING: WorkflowRun = { ...BEGUN, executions: 1, nodes: BEGUN.nodes.set("a", NODE) };

/** The node `a` asks people, and perhaps says why. */
export const raise = (kind: Interrupt["kind"], reason?: string): WorkflowDraft => ({
  type: "node.suspended",
  nodeId: "a",
  payload: { nodeId: "a", interruptId: "a-1", kind, key: "k", ...(reason !== undefined && { reason }) },
});
