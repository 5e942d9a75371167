/** Owns: what the events of a node mean for it. */
import { assertInvariant } from "../../contracts/errors.ts";
import type { EpochMs } from "../../contracts/ids.ts";
import type { WorkflowEvent } from "../../contracts/workflows/workflow-events.ts";
import { evolveAnswer, evolveHandoff } from "./evolve-handoff.ts";
import { evolveInvocation, type InvocationEvent } from "./invocation.ts";
import {
  hasEnded,
  type Answer,
  type EndedExecution,
  type NodeRun,
  type WorkflowRun,
} from "./workflow-state.ts";

type Of<T extends WorkflowEvent["type"]> = Extract<WorkflowEvent, { type: T }>;

export function evolveNode(run: WorkflowRun, event: WorkflowEvent, atMs: EpochMs): WorkflowRun {
  switch (event.type) {
    case "node.started":
      return startNode(run, event, atMs);
    case "node.skipped":
      return put(run, skipNode(run, event, atMs));
    case "node.retried":
      return change(run, event.payload.nodeId, (node) => ({
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
      return evolveActs(run, event);
    case "agent.toolCalled":
    case "agent.toolReturned":
      return evolveAgent(evolveActs(run, event), event);
    case "agent.invocation.started":
    case "agent.invocation.completed":
    case "coordination.agent_bound":
    case "coordination.agent_turned":
    case "agent.handoff":
      return evolveAgent(run, event);
    default:
      return run;
  }
}

function put(run: WorkflowRun, node: NodeRun): WorkflowRun {
  return { ...run, nodes: run.nodes.set(node.nodeId, node) };
}

function change(run: WorkflowRun, nodeId: string, to: (node: NodeRun) => NodeRun): WorkflowRun {
  const node = run.nodes.get(nodeId);
  assertInvariant(node !== undefined, `node ${nodeId} has not been started`);
  return put(run, to(node));
}

function startNode(run: WorkflowRun, event: Of<"node.started">, atMs: EpochMs): WorkflowRun {
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
      ...findEntry(before, event, atMs),
      variablesAtStart: run.variables,
      answers: [],
      memoryIds: [],
      ...keepAnswers(before),
      ...keepExecutions(before),
      ...countsOf(before),
      loopbacks: loopbacksOf(before, attempt),
    },
  );
}

/** Returns what is counted and listed over all executions of the node. */
function countsOf(
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

function keepAnswers(before: NodeRun | undefined): Pick<NodeRun, "earlierAnswers"> {
  const { earlierAnswers = [], answers = [] }: Partial<NodeRun> = before ?? {};
  const all = [...earlierAnswers, ...answers];
  return all.length > 0 ? { earlierAnswers: all } : {};
}

/** Bounded by the executions that a run may have and the characters of its values. */
function keepExecutions(before: NodeRun | undefined): Pick<NodeRun, "earlierExecutions"> {
  const { earlierExecutions = [] }: Partial<NodeRun> = before ?? {};
  const all = before && hasEnded(before) ? [...earlierExecutions, executionOf(before)] : earlierExecutions;
  return all.length > 0 ? { earlierExecutions: all } : {};
}

function executionOf(nodeRun: EndedExecution): EndedExecution {
  const { status, outputs, startedSequence, enteredSequence, endedSequence } = nodeRun;
  return { status, startedSequence, enteredSequence, endedSequence, ...(outputs && { outputs }) };
}

function loopbacksOf(before: NodeRun | undefined, attempt: number): number {
  return (before?.loopbacks ?? 0) + (before?.endedSequence !== undefined && attempt === 0 ? 1 : 0);
}

/** A retry goes on with what was entered. */
function findEntry(
  before: NodeRun | undefined,
  { sequence, payload: { attempt } }: Of<"node.started">,
  atMs: EpochMs,
): Pick<NodeRun, "enteredSequence" | "enteredAtMs"> {
  const isNew = attempt === 0 || !before;
  return isNew
    ? { enteredSequence: sequence, enteredAtMs: atMs }
    : { enteredSequence: before.enteredSequence, enteredAtMs: before.enteredAtMs };
}

function skipNode(
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
    enteredSequence: before?.enteredSequence ?? event.sequence,
    enteredAtMs: before?.enteredAtMs ?? atMs,
    variablesAtStart: run.variables,
    endedSequence: event.sequence,
    answers: [],
    memoryIds: [],
    ...keepAnswers(before),
    ...keepExecutions(before),
    ...countsOf(before),
  };
}

function endNode(
  run: WorkflowRun,
  nodeId: string,
  { sequence }: WorkflowEvent,
  end: Pick<NodeRun, "status" | "outputs" | "error">,
): WorkflowRun {
  return change(run, nodeId, ({ interrupt: _, isRetrying: _retrying, ...node }) => ({
    ...node,
    ...end,
    endedSequence: sequence,
  }));
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
            isAsked: true,
            data,
            ...(timeoutMs !== undefined && { timeoutMs }),
            ...(resumeSchema && { resumeSchema }),
          },
        }),
      }));
    }
    case "approval.received":
      return change(run, nodeId, (node) => recordVote(node, event.payload));
    case "interrupt.resolved": {
      const answer = readAnswer(event, run.nodes.get(nodeId));
      const after = change(run, nodeId, ({ interrupt: _, ...node }) => ({
        ...node,
        status: "running",
        answers: [...node.answers, answer],
      }));
      return evolveAnswer(clearActor(after, answer), nodeId, answer);
    }
  }
}

/** Whoever answers has a name; the end of the time has none. */
function readAnswer({ eventId, payload }: Of<"interrupt.resolved">, node: NodeRun | undefined): Answer {
  const { interruptId, kind, resumeValue, resolvedBy: by } = payload;
  const answer = { interruptId, kind, resumeValue, eventId, asked: questionOf(node) };
  return by === undefined ? { ...answer, isExpired: true } : { ...answer, by };
}

function questionOf(node: NodeRun | undefined): Answer["asked"] {
  const { data = {}, reason }: Partial<Answer["asked"]> = node?.interrupt ?? {};
  return { data, ...(reason !== undefined && { reason }) };
}

/** Clears the actor: once people answered an agent's doubt, the decision is theirs. */
function clearActor(run: WorkflowRun, { kind, asked: question }: Answer): WorkflowRun {
  const { actor, ...rest } = run;
  return actor && (kind === "low-confidence" || question.reason === "low-confidence") ? rest : run;
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
        return {
          ...node,
          openCall: { eventId: event.eventId, sequence: event.sequence, inputs: event.payload.inputs },
        };
      case "agent.toolReturned":
        return node;
    }
  });
}

function evolveAgent(run: WorkflowRun, event: InvocationEvent): WorkflowRun {
  const { nodeId } = event;
  if (nodeId === undefined || !run.nodes.has(nodeId)) return run;
  return change(run, nodeId, (node) => {
    const invocation = evolveInvocation(node.invocation, event);
    return invocation === node.invocation ? node : { ...node, ...(invocation && { invocation }) };
  });
}

function recordVote(node: NodeRun, { decidedBy, action }: Readonly<Record<string, unknown>>): NodeRun {
  if (!node.interrupt || typeof decidedBy !== "string" || typeof action !== "string") return node;
  const votes = [...node.interrupt.votes.filter(({ by }) => by !== decidedBy), { by: decidedBy, action }];
  return { ...node, interrupt: { ...node.interrupt, votes } };
}
