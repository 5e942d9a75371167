/** Owns: what the events of a node mean for it. */
import { invariant } from "../contracts/errors.ts";
import type { EpochMs } from "../contracts/ids.ts";
import type { WorkflowEvent } from "../contracts/workflow-events.ts";
import type { Handoff, NodeRun, WorkflowRun } from "./state.ts";

type Of<T extends WorkflowEvent["type"]> = Extract<WorkflowEvent, { type: T }>;

export function evolveNode(run: WorkflowRun, event: WorkflowEvent, atMs: EpochMs): WorkflowRun {
  switch (event.type) {
    case "node.started":
      return started(run, event, atMs);
    case "node.skipped":
      return put(run, skipped(run, event, atMs));
    case "node.retried":
      return change(run, event.payload.nodeId, (node) => ({ ...node, attempt: event.payload.attempt }));
    case "node.completed": {
      const { nodeId, outputs = {} } = event.payload;
      return ended(run, nodeId, event, { status: "completed", outputs });
    }
    case "node.failed":
      return ended(run, event.payload.nodeId, event, { status: "failed", error: event.payload.error });
    case "node.cancelled":
      return ended(run, event.payload.nodeId, event, { status: "cancelled" });
    case "node.suspended":
    case "interrupt.requested":
    case "interrupt.resolved":
    case "approval.received":
      return evolveInterrupt(run, event, atMs);
    case "core.workflowChain.event":
    case "node.dispatched":
      return evolveHandoff(run, event);
    case "memory.written":
    case "agent.toolCalled":
    case "agent.toolReturned":
      return evolveActs(run, event);
    default:
      return run;
  }
}

function put(run: WorkflowRun, node: NodeRun): WorkflowRun {
  return { ...run, nodes: run.nodes.set(node.nodeId, node) };
}

function change(run: WorkflowRun, nodeId: string, to: (node: NodeRun) => NodeRun): WorkflowRun {
  const node = run.nodes.get(nodeId);
  invariant(node !== undefined, `node ${nodeId} has not been started`);
  return put(run, to(node));
}

function started(run: WorkflowRun, event: Of<"node.started">, atMs: EpochMs): WorkflowRun {
  const { nodeId, attempt } = event.payload;
  const before = run.nodes.get(nodeId);
  return put(
    { ...run, executions: run.executions + 1 },
    {
      nodeId,
      status: "running",
      executions: (before?.executions ?? 0) + 1,
      attempt,
      startedAtMs: atMs,
      startedSequence: event.sequence,
      startedEventId: event.eventId,
      answers: [],
      memoryIds: [],
      interrupts: before?.interrupts ?? 0,
      loopbacks: (before?.loopbacks ?? 0) + (before?.endedSequence !== undefined && attempt === 0 ? 1 : 0),
    },
  );
}

function skipped(
  run: WorkflowRun,
  { payload: { nodeId }, ...event }: Of<"node.skipped">,
  atMs: EpochMs,
): NodeRun {
  const before = run.nodes.get(nodeId);
  return {
    nodeId,
    status: "skipped",
    executions: before?.executions ?? 0,
    attempt: 0,
    startedAtMs: atMs,
    startedSequence: event.sequence,
    startedEventId: event.eventId,
    endedSequence: event.sequence,
    answers: [],
    memoryIds: [],
    interrupts: before?.interrupts ?? 0,
    loopbacks: before?.loopbacks ?? 0,
  };
}

function ended(
  run: WorkflowRun,
  nodeId: string,
  { sequence }: WorkflowEvent,
  end: Pick<NodeRun, "status" | "outputs" | "error">,
): WorkflowRun {
  return change(run, nodeId, ({ interrupt: _, ...node }) => ({ ...node, ...end, endedSequence: sequence }));
}

type InterruptEvent = Of<
  "node.suspended" | "interrupt.requested" | "interrupt.resolved" | "approval.received"
>;

/** `node.suspended` opens an interrupt, `interrupt.requested` right behind it says what is asked. */
function evolveInterrupt(run: WorkflowRun, event: InterruptEvent, atMs: EpochMs): WorkflowRun {
  const { eventId, nodeId = "" } = event;
  switch (event.type) {
    case "node.suspended": {
      const { interruptId, kind, key, reason } = event.payload;
      const opened = {
        interruptId,
        kind,
        key,
        atMs,
        eventId,
        data: {},
        votes: [],
        ...(reason !== undefined && { reason }),
      };
      return change(run, nodeId, (node) => ({
        ...node,
        status: "suspended",
        interrupts: node.interrupts + 1,
        interrupt: opened,
      }));
    }
    case "interrupt.requested": {
      const { data, timeoutMs, resumeSchema } = event.payload;
      return change(run, nodeId, (node) => ({
        ...node,
        ...(node.interrupt && {
          interrupt: {
            ...node.interrupt,
            data,
            ...(timeoutMs !== undefined && { timeoutMs }),
            ...(resumeSchema && { resumeSchema }),
          },
        }),
      }));
    }
    case "approval.received":
      return change(run, nodeId, (node) => voted(node, event.payload));
    case "interrupt.resolved": {
      const { interruptId, kind, resumeValue } = event.payload;
      return change(run, nodeId, ({ interrupt: _, ...node }) => ({
        ...node,
        status: "running",
        answers: [...node.answers, { interruptId, kind, resumeValue, eventId }],
      }));
    }
  }
}

function evolveActs(
  run: WorkflowRun,
  event: Of<"memory.written" | "agent.toolCalled" | "agent.toolReturned">,
): WorkflowRun {
  const { nodeId } = event;
  if (nodeId === undefined || !run.nodes.has(nodeId)) return run;
  return change(run, nodeId, ({ openCall, ...node }) => {
    switch (event.type) {
      case "memory.written":
        return {
          ...node,
          ...(openCall && { openCall }),
          memoryIds: [...node.memoryIds, event.payload.memoryId],
        };
      case "agent.toolCalled":
        return { ...node, openCall: event.eventId };
      case "agent.toolReturned":
        return node;
    }
  });
}

function voted(node: NodeRun, { decidedBy, action }: Readonly<Record<string, unknown>>): NodeRun {
  if (!node.interrupt || typeof decidedBy !== "string" || typeof action !== "string") return node;
  const votes = [...node.interrupt.votes.filter(({ by }) => by !== decidedBy), { by: decidedBy, action }];
  return { ...node, interrupt: { ...node.interrupt, votes } };
}

/** The handoff state machine (RFC 0037): each phase moves the worker that the node is at. */
function evolveHandoff(
  run: WorkflowRun,
  event: Of<"core.workflowChain.event" | "node.dispatched">,
): WorkflowRun {
  const { nodeId = "", eventId } = event;
  return change(run, nodeId, (node) => {
    if (event.type === "node.dispatched") {
      const { childRunId, childWorkflowId } = event.payload;
      // A sub-workflow has no phases of the handoff state machine.
      const alone = { index: 0, phase: "running", chainEventId: eventId, workerId: childWorkflowId } as const;
      return { ...node, handoff: { ...(node.handoff ?? alone), childRunId } };
    }
    return { ...node, handoff: nextHandoff(node.handoff, event) };
  });
}

function nextHandoff(
  before: Handoff | undefined,
  { eventId, payload }: Of<"core.workflowChain.event">,
): Handoff {
  const { phase, workerId, childRunId } = payload;
  const place = { workerId, chainEventId: eventId, phase: PHASES[phase] };
  if (phase === "dispatch.began" || !before) return { ...place, index: before ? before.index + 1 : 0 };
  const childStatus = CHILD_STATUS[phase];
  return {
    ...before,
    ...place,
    ...(childRunId !== undefined && { childRunId }),
    ...(childStatus && { childStatus }),
  };
}

type ChainPhase = Of<"core.workflowChain.event">["payload"]["phase"];

const PHASES: Readonly<Record<ChainPhase, Handoff["phase"]>> = {
  "dispatch.began": "dispatching",
  "dispatch.succeeded": "running",
  "dispatch.failed": "ended",
  "child.completed": "ended",
  "child.failed": "ended",
  "child.cancelled": "ended",
  "output.harvested": "harvested",
};

const CHILD_STATUS: Partial<Readonly<Record<ChainPhase, NonNullable<Handoff["childStatus"]>>>> = {
  "dispatch.failed": "failed",
  "child.completed": "completed",
  "child.failed": "failed",
  "child.cancelled": "cancelled",
};
