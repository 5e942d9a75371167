/** Owns: runs of a workflow at one moment, put together from their members, for tests of what is read from a run. */
import { Map as ImmutableMap } from "immutable";
import {
  createEventId,
  formatTimestamp,
  type CoordinationId,
  type EpochMs,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { RunOrigin } from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import type {
  InterruptKind,
  OrchestratorDecision,
  WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { evolveWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { compileWorkflow } from "../../src/agents/coordination/workflow/state/graph.ts";
import type { NodeGraph } from "../../src/agents/coordination/workflow/state/node-graph.ts";
import type {
  NodeRun,
  NodeStatus,
  WorkflowRun,
} from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { createNode, createWorkflow, type SmallWorkflow } from "../support/workflow-definitions.ts";

export const RUN = "run-1" as CoordinationId;
export const OWNER = { tenant: "acme", principal: "alice" };
/** When the run began: 2023-11-14T22:13:20.000Z. */
export const NOW = 1_700_000_000_000 as EpochMs;
/** A minute later. */
export const LATER = 1_700_000_060_000 as EpochMs;

const DEFINITION = "0".repeat(64);

/** The first event of a run; `started` stands in place of what begins it otherwise. */
export function createFirstEvent(
  started: Partial<WorkflowRun["started"]> = {},
): WorkflowEvent & { type: "run.started" } {
  return {
    eventId: createEventId(RUN, 0),
    runId: RUN,
    sequence: 0,
    timestamp: formatTimestamp(NOW),
    type: "run.started",
    payload: {
      workflowId: "w",
      inputs: {},
      transport: "rest",
      owner: OWNER,
      definition: DEFINITION,
      memoryScope: "w",
      ...started,
    },
  };
}

/** `change` stands in place of what a run is that has just begun, `started` of what began it. */
export function createRun(
  change: Partial<WorkflowRun> = {},
  started: Partial<WorkflowRun["started"]> = {},
): WorkflowRun {
  return { ...evolveWorkflow(undefined, createFirstEvent(started)), ...change };
}

export function createNodeRun(nodeId: string, status: NodeStatus, more: Partial<NodeRun> = {}): NodeRun {
  return {
    nodeId,
    status,
    executions: 1,
    attempt: 0,
    startedAtMs: NOW,
    startedSequence: 1,
    startedEventId: createEventId(RUN, 1),
    enteredSequence: 1,
    enteredAtMs: NOW,
    variablesAtStart: ImmutableMap(),
    answers: [],
    interrupts: 0,
    completedChildren: 0,
    memoryIds: [],
    loopbacks: 0,
    ...more,
  };
}

export function createAsking(
  nodeId: string,
  { kind = "approval", atMs = NOW }: { readonly kind?: InterruptKind; readonly atMs?: EpochMs } = {},
): NodeRun {
  const eventId = createEventId(RUN, 2);
  const interrupt = { interruptId: "i", kind, key: "k", atMs, eventId, data: {}, votes: [] };
  return createNodeRun(nodeId, "suspended", { interrupt, interrupts: 1 });
}

export function withNodes(...nodeRuns: readonly NodeRun[]): Pick<WorkflowRun, "nodes"> {
  return { nodes: ImmutableMap(nodeRuns.map((nodeRun) => [nodeRun.nodeId, nodeRun])) };
}

/** The newest decision of the supervisor. */
export function withDecision(decision: OrchestratorDecision): Pick<WorkflowRun, "orchestrator"> {
  const last = { decision, eventId: createEventId(RUN, 5), sequence: 5, nodeId: "supervisor" };
  return { orchestrator: { decided: 1, revisions: 0, last } };
}

/** The origin of a run that takes its first events, those below `until`, from another one. */
export function createOrigin(until: number): RunOrigin {
  const sourceRunId = "source-1" as CoordinationId;
  return { mode: "branch", sourceRunId, fromSeq: 4, until, identity: RUN, ids: [] };
}

export function createGraph(small: SmallWorkflow = { nodes: [createNode("a"), createNode("b")] }): NodeGraph {
  const compiled = compileWorkflow(createWorkflow("w", small), DEFINITION);
  if (!compiled.ok) throw new Error(compiled.problems.join());
  return compiled.graph;
}
