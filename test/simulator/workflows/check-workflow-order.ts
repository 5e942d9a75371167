/** Owns: what a run may do by the graph of its workflow: the order of nodes, gates that people refused, verdicts, and how a run may end. */
import type { WorkflowDefinition } from "../../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import type { WorkflowEvent } from "../../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import { listBroken } from "../list-broken.ts";
import { makeWorkflows } from "./make-workflows.ts";
import { CONFIDENCE_FLOOR } from "./simulated-host.ts";
import { readOrigin, type WorkflowWorld } from "./workflow-world.ts";

type EventOf<T extends WorkflowEvent["type"]> = Extract<WorkflowEvent, { type: T }>;
type Edge = WorkflowDefinition["edges"][number];
type NodeEnd = "completed" | "failed" | "skipped" | "cancelled";

interface Course {
  readonly workflow: WorkflowDefinition;
  readonly hasLoops: boolean;
  /** Times can be compared: the run is no fork, whose questions begin anew. */
  readonly isTimed: boolean;
  readonly started: Set<string>;
  readonly ends: Map<string, NodeEnd>;
  /** Approval gates that people, or the end of the time, refused since they were started last. */
  readonly refused: Set<string>;
  /** When the open question of a node is over. */
  readonly deadlines: Map<string, number>;
  /** Nodes whose newest child is let through, by its verdict or by people. */
  readonly passed: Set<string>;
}

/** Returns a check of the events of all runs, each in its order. */
export function createWorkflowOrderCheck(
  world: WorkflowWorld,
): (runId: string, event: WorkflowEvent) => string[] {
  const workflows = makeWorkflows(world.schedule.seed);
  const courses = new Map<string, Course>();
  return (runId, event) => {
    if (event.type === "run.started") {
      const workflow = workflows.find(({ id }) => id === event.payload.workflowId);
      if (workflow) courses.set(runId, createCourse(world, workflow, runId));
    }
    const course = courses.get(runId);
    return course ? seeEvent(world, course, event) : [];
  };
}

function createCourse(world: WorkflowWorld, workflow: WorkflowDefinition, runId: string): Course {
  return {
    workflow,
    hasLoops: workflow.nodes.some(({ id }) => isReached(workflow.edges, id, id)),
    isTimed: readOrigin(world, runId) === undefined,
    started: new Set(),
    ends: new Map(),
    refused: new Set(),
    deadlines: new Map(),
    passed: new Set(),
  };
}

/** True when edges lead from one node to the other. */
function isReached(edges: readonly Edge[], from: string, to: string): boolean {
  const seen = new Set<string>();
  const pending = [from];
  for (let id = pending.pop(); id !== undefined; id = pending.pop())
    for (const { sourceNodeId, targetNodeId } of edges) {
      if (sourceNodeId !== id || seen.has(targetNodeId)) continue;
      if (targetNodeId === to) return true;
      seen.add(targetNodeId);
      pending.push(targetNodeId);
    }
  return false;
}

const ENDS: Partial<Record<WorkflowEvent["type"], NodeEnd>> = {
  "node.completed": "completed",
  "node.failed": "failed",
  "node.skipped": "skipped",
  "node.cancelled": "cancelled",
};

function seeEvent(world: WorkflowWorld, course: Course, event: WorkflowEvent): string[] {
  const end = ENDS[event.type];
  if (end !== undefined) return endNode(course, event.nodeId ?? "", end);
  switch (event.type) {
    case "node.started":
      return startNode(course, event);
    case "interrupt.requested":
      return noteDeadline(course, event);
    case "interrupt.resolved":
      return resolveInterrupt(world, course, event);
    case "agent.verified":
      return noteVerdict(course, event);
    case "core.workflowChain.event":
      return seeHandover(course, event);
    case "run.completed":
      return checkCompletion(course);
    default:
      return [];
  }
}

/** D6: in a graph without loops a node that begins for the first time has all that its edges ask for. */
function startNode(course: Course, { payload: { nodeId } }: EventOf<"node.started">): string[] {
  const { workflow, hasLoops, started, refused, deadlines } = course;
  const isFirst = !started.has(nodeId);
  started.add(nodeId);
  refused.delete(nodeId);
  deadlines.delete(nodeId);
  const incoming = workflow.edges.filter(({ targetNodeId }) => targetNodeId === nodeId);
  const isOneEnough = incoming.some(({ triggerRule }) => triggerRule?.startsWith("any_") === true);
  if (!isFirst || hasLoops || isOneEnough) return [];
  return incoming.flatMap((edge) => checkEdge(course, edge));
}

function checkEdge({ ends }: Course, { sourceNodeId, targetNodeId, triggerRule }: Edge): string[] {
  const end = ends.get(sourceNodeId);
  const rule = triggerRule ?? "all_success";
  return listBroken({
    [`D6: ${targetNodeId} begins before ${sourceNodeId} has ended`]: end === undefined,
    [`D6: ${targetNodeId} begins by ${rule} after ${sourceNodeId} is ${end}`]:
      (rule === "all_success" && end !== "completed") || (rule === "none_failed" && end === "failed"),
  });
}

/** G3: a gate that was refused does not open until its node is started again. */
function endNode({ ends, refused }: Course, nodeId: string, end: NodeEnd): string[] {
  ends.set(nodeId, end);
  return listBroken({
    [`G3: ${nodeId} was refused and completes`]: end === "completed" && refused.has(nodeId),
  });
}

function noteDeadline({ deadlines }: Course, event: EventOf<"interrupt.requested">): string[] {
  const { timeoutMs = 0 } = event.payload;
  if (timeoutMs > 0) deadlines.set(event.nodeId ?? "", Date.parse(event.timestamp) + timeoutMs);
  return [];
}

const YES: ReadonlySet<unknown> = new Set(["accept", "edit-accept"]);

function resolveInterrupt(
  world: WorkflowWorld,
  course: Course,
  event: EventOf<"interrupt.resolved">,
): string[] {
  const { nodeId, resumeValue } = event.payload;
  const { action } = (resumeValue ?? {}) as { readonly action?: unknown };
  const isYes = YES.has(action);
  if (isYes) course.passed.add(nodeId);
  if (!isYes && action !== "refine" && isApprovalGate(course, nodeId)) course.refused.add(nodeId);
  return world.hasGoneBack ? [] : checkTime(course, event, action === "timeout");
}

function isApprovalGate({ workflow }: Course, nodeId: string): boolean {
  return workflow.nodes.some(({ id, typeId }) => id === nodeId && typeId === "core.approvalGate");
}

function checkTime(
  course: Course,
  { timestamp, payload: { nodeId, interruptId } }: EventOf<"interrupt.resolved">,
  isTimeout: boolean,
): string[] {
  const deadlineAtMs = course.deadlines.get(nodeId);
  course.deadlines.delete(nodeId);
  if (deadlineAtMs === undefined || !course.isTimed) return [];
  const isOver = Date.parse(timestamp) >= deadlineAtMs;
  return listBroken({
    [`E2: ${interruptId} is answered after its time`]: isOver && !isTimeout,
    [`E2: ${interruptId} is over before its time`]: !isOver && isTimeout,
  });
}

/** A verdict that is not sure enough waits for people. */
function noteVerdict({ passed }: Course, event: EventOf<"agent.verified">): string[] {
  const { verdict, confidence = 1 } = event.payload;
  if (verdict === "pass" && confidence >= CONFIDENCE_FLOOR) passed.add(event.nodeId ?? "");
  return [];
}

/** G1: nothing is merged of a child behind a verifier but by its verdict, or by people. */
function seeHandover({ workflow, passed }: Course, event: EventOf<"core.workflowChain.event">): string[] {
  const { nodeId = "", payload } = event;
  if (payload.phase === "dispatch.began") passed.delete(nodeId);
  if (payload.phase !== "output.harvested") return [];
  const hasVerifier = workflow.nodes.find(({ id }) => id === nodeId)?.config["verifier"] !== undefined;
  return listBroken({
    [`G1: ${payload.childRunId} is merged and nobody let it through`]: hasVerifier && !passed.has(nodeId),
  });
}

/** D5: a failure that no edge takes ends the run as failed. */
function checkCompletion({ workflow, ends }: Course): string[] {
  const handled = new Set(
    workflow.edges
      .filter(({ triggerRule }) => triggerRule === "any_failed" || triggerRule === "all_complete")
      .map(({ sourceNodeId }) => sourceNodeId),
  );
  return [...ends]
    .filter(([nodeId, end]) => end === "failed" && !handled.has(nodeId))
    .map(([nodeId]) => `D5: the run completes although ${nodeId} failed`);
}
