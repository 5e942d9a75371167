/** Owns: what the events of a node mean for it. */
import { assertInvariant } from "../../contracts/errors.ts";
import type { EpochMs } from "../../contracts/ids.ts";
import type { WorkflowEvent } from "../../contracts/workflows/workflow-events.ts";
import { applyMergeAnswer, evolveHandoff } from "./evolve-handoff.ts";
import { evolveInvocation, type InvocationEvent } from "./invocation.ts";
import {
  hasEnded,
  type InterruptAnswer,
  type EndedExecution,
  type NodeRun,
  type WorkflowRun,
} from "./workflow-state.ts";

/** A workflow event of one type. */
type WorkflowEventOfType<T extends WorkflowEvent["type"]> = Extract<WorkflowEvent, { type: T }>;

/** Returns the run after an event about one of its nodes; the same run for any other event. */
export function evolveNode(run: WorkflowRun, event: WorkflowEvent, atMs: EpochMs): WorkflowRun {
  switch (event.type) {
    case "node.started":
      return startNode(run, event, atMs);
    case "node.skipped":
      return putNode(run, skipNode(run, event, atMs));
    case "node.retried":
      return changeNode(run, event.payload.nodeId, (node) => ({
        ...node,
        attempt: event.payload.attempt,
        isRetrying: true,
      }));
    case "node.completed": {
      const { nodeId, outputs = {} } = event.payload;
      return endNode(run, nodeId, event, { status: "completed", outputs });
    }
    case "node.failed":
      return endNode(run, event.payload.nodeId, event, { status: "failed", error: event.payload.error });
    case "node.cancelled":
      return endNode(run, event.payload.nodeId, event, { status: "cancelled" });
    case "node.suspended":
    case "interrupt.requested":
    case "interrupt.resolved":
    case "approval.received":
      return evolveInterrupt(run, event, atMs);
    case "core.workflowChain.event":
    case "node.dispatched":
    case "agent.verified":
    case "coordination.child_gave_up":
      return evolveHandoff(run, event);
    case "memory.written":
      return evolveNodeActs(run, event);
    case "agent.toolCalled":
    case "agent.toolReturned":
      return evolveNodeInvocation(evolveNodeActs(run, event), event);
    case "agent.invocation.started":
    case "agent.invocation.completed":
    case "coordination.agent_bound":
    case "coordination.agent_turned":
    case "agent.handoff":
      return evolveNodeInvocation(run, event);
    default:
      return run;
  }
}

function putNode(run: WorkflowRun, node: NodeRun): WorkflowRun {
  return { ...run, nodes: run.nodes.set(node.nodeId, node) };
}

function changeNode(run: WorkflowRun, nodeId: string, to: (node: NodeRun) => NodeRun): WorkflowRun {
  const node = run.nodes.get(nodeId);
  assertInvariant(node !== undefined, `node ${nodeId} has not been started`);
  return putNode(run, to(node));
}

function startNode(run: WorkflowRun, event: WorkflowEventOfType<"node.started">, atMs: EpochMs): WorkflowRun {
  const { nodeId, attempt } = event.payload;
  const before = run.nodes.get(nodeId);
  return putNode(
    { ...run, executions: run.executions + 1 },
    {
      nodeId,
      status: "running",
      executions: (before?.executions ?? 0) + 1,
      attempt,
      startedAtMs: atMs,
      startedSequence: event.sequence,
      startedEventId: event.eventId,
      ...carryEntry(before, event, atMs),
      variablesAtStart: run.variables,
      answers: [],
      memoryIds: [],
      ...carryAnswers(before),
      ...carryExecutions(before),
      ...carryCounts(before),
      loopbacks: countLoopbacks(before, attempt),
    },
  );
}

/** Returns what is counted and listed over all executions of the node. */
function carryCounts(
  before: NodeRun | undefined,
): Pick<NodeRun, "interrupts" | "completedChildren" | "childRunIds" | "loopbacks"> {
  const {
    interrupts = 0,
    completedChildren = 0,
    childRunIds,
    loopbacks = 0,
  } = before ?? ({} as Partial<NodeRun>);
  return { interrupts, completedChildren, ...(childRunIds && { childRunIds }), loopbacks };
}

function carryAnswers(before: NodeRun | undefined): Pick<NodeRun, "earlierAnswers"> {
  const { earlierAnswers = [], answers = [] }: Partial<NodeRun> = before ?? {};
  const all = [...earlierAnswers, ...answers];
  return all.length > 0 ? { earlierAnswers: all } : {};
}

/**
 * Returns the node's earlier executions. The executions that a run may have, and the characters of its values, bound
 * them.
 */
function carryExecutions(before: NodeRun | undefined): Pick<NodeRun, "earlierExecutions"> {
  const { earlierExecutions = [] }: Partial<NodeRun> = before ?? {};
  const all =
    before && hasEnded(before) ? [...earlierExecutions, createEndedExecution(before)] : earlierExecutions;
  return all.length > 0 ? { earlierExecutions: all } : {};
}

function createEndedExecution(nodeRun: EndedExecution): EndedExecution {
  const { status, outputs, startedSequence, enteredSequence, endedSequence } = nodeRun;
  return { status, startedSequence, enteredSequence, endedSequence, ...(outputs && { outputs }) };
}

function countLoopbacks(before: NodeRun | undefined, attempt: number): number {
  return (before?.loopbacks ?? 0) + (before?.endedSequence !== undefined && attempt === 0 ? 1 : 0);
}

/** Returns when the node was entered; a retry goes on with what was entered. */
function carryEntry(
  before: NodeRun | undefined,
  { sequence, payload: { attempt } }: WorkflowEventOfType<"node.started">,
  atMs: EpochMs,
): Pick<NodeRun, "enteredSequence" | "enteredAtMs"> {
  const isNew = attempt === 0 || !before;
  return isNew
    ? { enteredSequence: sequence, enteredAtMs: atMs }
    : { enteredSequence: before.enteredSequence, enteredAtMs: before.enteredAtMs };
}

function skipNode(
  run: WorkflowRun,
  { payload: { nodeId }, ...event }: WorkflowEventOfType<"node.skipped">,
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
    enteredSequence: before?.enteredSequence ?? event.sequence,
    enteredAtMs: before?.enteredAtMs ?? atMs,
    variablesAtStart: run.variables,
    endedSequence: event.sequence,
    answers: [],
    memoryIds: [],
    ...carryAnswers(before),
    ...carryExecutions(before),
    ...carryCounts(before),
  };
}

function endNode(
  run: WorkflowRun,
  nodeId: string,
  { sequence }: WorkflowEvent,
  end: Pick<NodeRun, "status" | "outputs" | "error">,
): WorkflowRun {
  return changeNode(run, nodeId, ({ interrupt: _, isRetrying: _retrying, ...node }) => ({
    ...node,
    ...end,
    endedSequence: sequence,
  }));
}

type InterruptEvent = WorkflowEventOfType<
  "node.suspended" | "interrupt.requested" | "interrupt.resolved" | "approval.received"
>;

/**
 * Applies an event of a question. A `node.suspended` opens it; `interrupt.requested` right behind it says what is
 * asked.
 */
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
      return changeNode(run, nodeId, (node) => ({
        ...node,
        status: "suspended",
        interrupts: node.interrupts + 1,
        interrupt: opened,
      }));
    }
    case "interrupt.requested": {
      const { data, timeoutMs, resumeSchema } = event.payload;
      return changeNode(run, nodeId, (node) => ({
        ...node,
        ...(node.interrupt && {
          interrupt: {
            ...node.interrupt,
            isAsked: true,
            data,
            ...(timeoutMs !== undefined && { timeoutMs }),
            ...(resumeSchema && { resumeSchema }),
          },
        }),
      }));
    }
    case "approval.received":
      return changeNode(run, nodeId, (node) => recordVote(node, event.payload));
    case "interrupt.resolved": {
      const answer = readAnswer(event, run.nodes.get(nodeId));
      const after = changeNode(run, nodeId, ({ interrupt: _, ...node }) => ({
        ...node,
        status: "running",
        answers: [...node.answers, answer],
      }));
      return applyMergeAnswer(clearDoubtedActor(after, answer), nodeId, answer);
    }
  }
}

/** Reads the answer to the node's open question. Whoever answers has a name; the end of the time has none. */
function readAnswer(
  { eventId, payload }: WorkflowEventOfType<"interrupt.resolved">,
  node: NodeRun | undefined,
): InterruptAnswer {
  const { interruptId, kind, resumeValue, resolvedBy: by } = payload;
  const answer = { interruptId, kind, resumeValue, eventId, asked: readAskedQuestion(node) };
  return by === undefined ? { ...answer, isExpired: true } : { ...answer, by };
}

function readAskedQuestion(node: NodeRun | undefined): InterruptAnswer["asked"] {
  const { data = {}, reason }: Partial<InterruptAnswer["asked"]> = node?.interrupt ?? {};
  return { data, ...(reason !== undefined && { reason }) };
}

/** Forgets which agent decided once people answered its doubt: the decision is theirs. */
function clearDoubtedActor(run: WorkflowRun, { kind, asked: question }: InterruptAnswer): WorkflowRun {
  const { actor, ...rest } = run;
  return actor && (kind === "low-confidence" || question.reason === "low-confidence") ? rest : run;
}

/** Applies a kept note or a tool call to its node. */
function evolveNodeActs(
  run: WorkflowRun,
  event: WorkflowEventOfType<"memory.written" | "agent.toolCalled" | "agent.toolReturned">,
): WorkflowRun {
  const { nodeId } = event;
  if (nodeId === undefined || !run.nodes.has(nodeId)) return run;
  return changeNode(run, nodeId, ({ openCall, ...node }) => {
    switch (event.type) {
      case "memory.written":
        return {
          ...node,
          ...(openCall && { openCall }),
          memoryIds: [...node.memoryIds, event.payload.memoryId],
        };
      case "agent.toolCalled":
        return {
          ...node,
          openCall: { eventId: event.eventId, sequence: event.sequence, inputs: event.payload.inputs },
        };
      case "agent.toolReturned":
        return node;
    }
  });
}

function evolveNodeInvocation(run: WorkflowRun, event: InvocationEvent): WorkflowRun {
  const { nodeId } = event;
  if (nodeId === undefined || !run.nodes.has(nodeId)) return run;
  return changeNode(run, nodeId, (node) => {
    const invocation = evolveInvocation(node.invocation, event);
    return invocation === node.invocation ? node : { ...node, ...(invocation && { invocation }) };
  });
}

function recordVote(node: NodeRun, { decidedBy, action }: Readonly<Record<string, unknown>>): NodeRun {
  if (!node.interrupt || typeof decidedBy !== "string" || typeof action !== "string") return node;
  const votes = [...node.interrupt.votes.filter(({ by }) => by !== decidedBy), { by: decidedBy, action }];
  return { ...node, interrupt: { ...node.interrupt, votes } };
}
