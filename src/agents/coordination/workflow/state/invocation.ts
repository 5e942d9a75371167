/**
 * Owns: how far the invocation of an agent of a manifest is (RFC 0077), folded from the events of its node.
 *
 * I1 `agent.invocation.started` is the first and `agent.invocation.completed` the last of the agent's events, whatever happens.
 * I2 what the model said and what tools returned is in the log before anything follows from it: a crash loses one question at
 * most, and no answer. I3 a call that was begun and has not returned is made again with the same id.
 */
import type { EventId } from "../../contracts/ids.ts";
import type { AskedCall } from "../../contracts/workflows/agent-events.ts";
import {
  REFUSED,
  type WorkflowDraft,
  type WorkflowEvent,
  type WorkflowPayloads,
} from "../../contracts/workflows/workflow-events.ts";

/** The payload of the event that binds an agent to a model and tools. */
type AgentBoundPayload = WorkflowPayloads["coordination.agent_bound"];
/** The payload of the event that records a turn of an agent. */
type AgentTurnedPayload = WorkflowPayloads["coordination.agent_turned"];
/** The payload of the event that records the return of a tool. */
type ToolReturnedPayload = WorkflowPayloads["agent.toolReturned"];

export interface Invocation {
  readonly started: WorkflowPayloads["agent.invocation.started"];
  readonly bound?: AgentBoundPayload;
  /** The oldest first. */
  readonly turns: readonly AgentTurnedPayload[];
  /** Events of the calls that were begun, by the call's id. */
  readonly called: ReadonlyMap<string, EventId>;
  readonly returned: ReadonlyMap<string, ToolReturnedPayload>;
  readonly handoff?: WorkflowPayloads["agent.handoff"];
  readonly completed?: WorkflowPayloads["agent.invocation.completed"];
  /** The size of the answers of model and tools, in UTF-16 code units. */
  readonly chars: number;
  readonly tokens: number;
}

export type InvocationEvent = Extract<
  WorkflowEvent,
  {
    type:
      | "agent.invocation.started"
      | "agent.invocation.completed"
      | "coordination.agent_bound"
      | "coordination.agent_turned"
      | "agent.toolCalled"
      | "agent.toolReturned"
      | "agent.handoff";
  }
>;

/**
 * Returns an agent's invocation after an event: a new one where it starts, the same where it is completed; `undefined`
 * where none was started, because events of agents without a manifest are ignored.
 */
export function evolveInvocation(
  before: Invocation | undefined,
  event: InvocationEvent,
): Invocation | undefined {
  if (event.type === "agent.invocation.started")
    return { started: event.payload, turns: [], called: new Map(), returned: new Map(), chars: 0, tokens: 0 };
  if (!before || before.completed) return before;
  switch (event.type) {
    case "coordination.agent_bound":
      return { ...before, bound: event.payload };
    case "coordination.agent_turned":
      return addTurn(before, event.payload);
    case "agent.toolCalled":
      return { ...before, called: new Map(before.called).set(event.payload.callId, event.eventId) };
    case "agent.toolReturned": {
      const { payload } = event;
      const chars = before.chars + formatToolReturn(payload).length;
      return { ...before, chars, returned: new Map(before.returned).set(payload.callId, payload) };
    }
    case "agent.handoff":
      return { ...before, handoff: event.payload };
    case "agent.invocation.completed":
      return { ...before, completed: event.payload };
  }
}

function addTurn(before: Invocation, turn: AgentTurnedPayload): Invocation {
  const args = turn.calls.reduce((sum, { args }) => sum + JSON.stringify(args).length, 0);
  return {
    ...before,
    turns: [...before.turns, turn],
    chars: before.chars + turn.text.length + args,
    tokens: before.tokens + turn.tokens,
  };
}

/** Returns the text that an agent's model is told of a tool call that returned: its text or JSON, or its error. */
export function formatToolReturn({ outcome, error, status }: ToolReturnedPayload): string {
  if (error) return `${status ?? "error"}: ${error.message}`;
  const { text } = (typeof outcome === "object" && outcome !== null ? outcome : {}) as { text?: unknown };
  return typeof text === "string" ? text : JSON.stringify(outcome ?? null);
}

/** Lists the tool calls of an invocation's newest turn that are to be made and have not returned, in order. */
export function listOpenCalls({ turns, returned }: Invocation): AskedCall[] {
  return (turns.at(-1)?.calls ?? []).filter(
    ({ callId, problem }) => problem === undefined && !returned.has(callId),
  );
}

/** Counts the tool calls of all turns of an invocation, without those that could not be made. */
export function countMadeCalls({ turns }: Invocation): number {
  return turns.reduce(
    (sum, { calls }) => sum + calls.filter(({ problem }) => problem === undefined).length,
    0,
  );
}

/**
 * Drafts the end, refused or failed, of an agent's invocation whose node ends before the agent did; empty where none
 * is open (I1).
 */
export function draftInvocationClosing(
  nodeId: string,
  invocation: Invocation | undefined,
  code?: string,
): Extract<WorkflowDraft, { type: "agent.invocation.completed" }>[] {
  if (!invocation || invocation.completed) return [];
  const { invocationId, agentId } = invocation.started;
  const outcome = code === REFUSED ? "refused" : "failed";
  return [{ type: "agent.invocation.completed", nodeId, payload: { invocationId, agentId, outcome } }];
}
