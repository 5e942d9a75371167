/** Owns: what a run looks like from outside (run-snapshot.schema.json). */
import { formatTimestamp, type EpochMs } from "../../contracts/ids.ts";
import {
  hasRunEnded,
  type WorkflowStatus,
  type WorkflowSummary,
} from "../../contracts/workflows/workflow-summary.ts";
import type { GraphNode, NodeGraph } from "./node-graph.ts";
import { assessConvergence } from "./review.ts";
import {
  isAtWork,
  isMaterialising,
  type NodeRun,
  type RunPhase,
  type WorkflowRun,
} from "./workflow-state.ts";
import { readVariables, type Values } from "./values.ts";

export interface ChildRun {
  readonly runId: string;
  readonly status: WorkflowStatus;
  /** True where it asks somebody something while other nodes of it work, or while it is paused. */
  readonly isAsking?: true;
  /** The runs that it waits for in turn. Absent: there are none, or it is not looked into. */
  readonly childRuns?: readonly ChildRun[];
}

/**
 * Returns the status of a run as others are told it. A run whose child, one of `children`, waits for somebody waits
 * for them too.
 */
export function computeRunStatus(run: WorkflowRun, children: readonly ChildRun[] = []): WorkflowStatus {
  const { phase } = run;
  // A fork that still takes events is running: the states that it passes through are its source's past.
  if (isMaterialising(run)) return "running";
  if (phase.kind !== "open") return phase.kind;
  const waiting = findWaitingNode(run);
  if (waiting?.interrupt) return WAITING[waiting.interrupt.kind];
  return children.find(({ status }) => status.startsWith("waiting-"))?.status ?? "running";
}

const WAITING = {
  approval: "waiting-approval",
  "low-confidence": "waiting-approval",
  clarification: "waiting-input",
  custom: "waiting-input",
  "external-event": "waiting-external",
} as const;

/** Creates the summary with which the ledger lists a workflow run. `driver`: the process that goes on with it. */
export function summarizeRun(run: WorkflowRun, driver: string): WorkflowSummary {
  const { owner, workflowId, parent } = run.started;
  const status = computeRunStatus(run);
  const isAsking = isAskingUnseen(run, status);
  return {
    kind: "workflow",
    status,
    tenant: owner.tenant,
    workflowId,
    createdAtMs: run.startedAtMs,
    driver,
    ...(isAsking && { isAsking }),
    // Whoever started a fork's source did not start the fork.
    ...(parent && !run.origin && { parent }),
  };
}

/** True where the run asks somebody something and its status does not tell that: other nodes work, or it is paused. */
function isAskingUnseen(run: WorkflowRun, status: WorkflowStatus): boolean {
  if (hasRunEnded(status) || isMaterialising(run) || status.startsWith("waiting-")) return false;
  return findAskingNode(run) !== undefined;
}

/**
 * Returns the node of a run that has waited longest for somebody's answer; `undefined` where none waits, or another
 * node works.
 */
export function findWaitingNode(run: WorkflowRun): NodeRun | undefined {
  for (const { status } of run.nodes.values()) if (status === "running") return undefined;
  return findAskingNode(run);
}

/**
 * Returns the node of a run whose open question was asked first, whatever else works; `undefined` where none is open.
 */
export function findAskingNode(run: WorkflowRun): NodeRun | undefined {
  let first: NodeRun | undefined;
  for (const node of run.nodes.values())
    if (node.status === "suspended" && (!first || hasAskedBefore(node, first))) first = node;
  return first;
}

function hasAskedBefore(node: NodeRun, other: NodeRun): boolean {
  const [askedMs, otherAskedMs] = [readAskedMs(node), readAskedMs(other)];
  return askedMs === otherAskedMs ? node.startedSequence < other.startedSequence : askedMs < otherAskedMs;
}

function readAskedMs({ interrupt, startedAtMs }: NodeRun): EpochMs {
  return interrupt?.atMs ?? startedAtMs;
}

/** Lists the ids of the child runs that nodes at work wait for, in the order in which the nodes began. */
export function listAwaitedChildRuns(run: WorkflowRun): string[] {
  return [...run.nodes.values()]
    .filter((node) => isAtWork(node) && node.handoff?.phase === "running")
    .toSorted((one, other) => one.startedSequence - other.startedSequence)
    .flatMap(({ handoff }) => handoff?.childRunId ?? []);
}

/**
 * Creates what callers are shown of a run: its status, inputs, variables and nodes, with sensitive variables masked.
 */
export function createRunSnapshot(run: WorkflowRun, graph: NodeGraph, children: readonly ChildRun[]): Values {
  const { started, phase, pauseRequested } = run;
  const status = computeRunStatus(run, children);
  const waiting = findWaitingNode(run);
  return {
    runId: run.runId,
    workflowId: started.workflowId,
    status,
    owner: started.owner,
    ...(waiting && !hasRunEnded(status) && { currentNodeId: waiting.nodeId }),
    startedAt: formatTimestamp(run.startedAtMs),
    ...viewPhase(phase),
    ...(pauseRequested && { pauseRequested }),
    inputs: maskSensitiveVariables(started.inputs, graph),
    variables: maskSensitiveVariables(readVariables(run, graph), graph),
    nodeStates: Object.fromEntries([...run.nodes.values()].map((node) => [node.nodeId, viewNode(node)])),
    ...viewCaller(started, run.origin),
    ...(children.length > 0 && { childRuns: children }),
    ...viewAgents(run, graph),
    ...viewConvergence(run),
    eventLogSchemaVersion: 1,
  };
}

/**
 * Views whether a completed run reached its goal, because one that gave up is completed, too; empty where that is not
 * known (RFC 0090 §C).
 */
function viewConvergence(run: WorkflowRun): Values {
  const convergence = assessConvergence(run);
  return convergence ? { convergence } : {};
}

function viewPhase(phase: RunPhase): Values {
  switch (phase.kind) {
    case "open":
      return {};
    case "paused":
      return { pausedAt: formatTimestamp(phase.atMs) };
    case "completed":
      return { ...viewRunEnd(phase.atMs), outputs: phase.outputs };
    case "failed":
      return { ...viewRunEnd(phase.atMs), error: phase.error };
    case "cancelled":
      return viewRunEnd(phase.atMs);
  }
}

function viewRunEnd(atMs: EpochMs): Values {
  const endedAt = formatTimestamp(atMs);
  return { completedAt: endedAt, endedAt };
}

/** Views what the caller said, and who the caller was. */
function viewCaller(
  { tags, metadata, configurable, parent }: WorkflowRun["started"],
  origin: WorkflowRun["origin"],
): Values {
  return {
    ...(tags && { tags }),
    ...(metadata && { metadata }),
    ...(configurable && { configurable }),
    ...(origin && { sourceRunId: origin.sourceRunId, fromSeq: origin.fromSeq, mode: origin.mode }),
    ...(parent && !origin && { parentRunId: parent.runId }),
    ...(parent?.nodeId !== undefined && !origin && { parentNodeId: parent.nodeId }),
  };
}

function viewNode({ status, executions, attempt, error }: NodeRun): Values {
  return { status, executions, attempt, ...(error && { error }) };
}

export const MASK = "[masked]";

/** Returns the variables with the sensitive ones masked, because those are there for the run's nodes only. */
export function maskSensitiveVariables(values: Values, graph: NodeGraph): Values {
  const shown = { ...values };
  for (const { name, sensitive } of graph.variables)
    if (sensitive && Object.hasOwn(shown, name)) shown[name] = MASK;
  return shown;
}

/** Views the run's supervisor, and the agent whose node was started last. */
function viewAgents(run: WorkflowRun, graph: NodeGraph): Values {
  const { agentId } = run.orchestrator;
  let last: { readonly node: GraphNode; readonly sequence: number } | undefined;
  for (const nodeRun of run.nodes.values()) {
    const node = graph.nodes.get(nodeRun.nodeId);
    const sequence = nodeRun.startedSequence;
    if (node?.node.agent && (!last || sequence > last.sequence)) last = { node, sequence };
  }
  const agent = last?.node.node.agent;
  return {
    ...(agent && { agent: selectAgentRef(agent) }),
    ...(agentId !== undefined && { runOrchestrator: { agentId } }),
  };
}

const AGENT_KEYS = ["agentId", "name", "modelClass", "memoryRef", "version", "channel", "sourceManifestId"];

/** Selects the members that an agent has in agent-ref.schema.json, which is closed. */
function selectAgentRef(agent: Values): Values {
  return Object.fromEntries(
    AGENT_KEYS.filter((key) => agent[key] !== undefined).map((key) => [key, agent[key]]),
  );
}
