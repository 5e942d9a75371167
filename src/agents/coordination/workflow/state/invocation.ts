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

type Bound = WorkflowPayloads["coordination.agent_bound"];
type Turned = WorkflowPayloads["coordination.agent_turned"];
type Returned = WorkflowPayloads["agent.toolReturned"];

export interface Invocation {
  readonly started: WorkflowPayloads["agent.invocation.started"];
  readonly bound?: Bound;
  /** The oldest first. */
  readonly turns: readonly Turned[];
  /** Events of the calls that were begun, by the call's id. */
  readonly called: ReadonlyMap<string, EventId>;
  readonly returned: ReadonlyMap<string, Returned>;
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

/** Applies an event of an agent. Without an invocation, events of agents without a manifest are ignored. */
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
      return recordTurn(before, event.payload);
    case "agent.toolCalled":
      return { ...before, called: new Map(before.called).set(event.payload.callId, event.eventId) };
    case "agent.toolReturned": {
      const { payload } = event;
      const chars = before.chars + describeReturned(payload).length;
      return { ...before, chars, returned: new Map(before.returned).set(payload.callId, payload) };
    }
    case "agent.handoff":
      return { ...before, handoff: event.payload };
    case "agent.invocation.completed":
      return { ...before, completed: event.payload };
  }
}

function recordTurn(before: Invocation, turn: Turned): Invocation {
  const args = turn.calls.reduce((sum, { args }) => sum + JSON.stringify(args).length, 0);
  return {
    ...before,
    turns: [...before.turns, turn],
    chars: before.chars + turn.text.length + args,
    tokens: before.tokens + turn.tokens,
  };
}

/** Describes what came back from a call, for the model. */
export function describeReturned({ outcome, error, status }: Returned): string {
  if (error) return `${status ?? "error"}: ${error.message}`;
  const { text } = (typeof outcome === "object" && outcome !== null ? outcome : {}) as { text?: unknown };
  return typeof text === "string" ? text : JSON.stringify(outcome ?? null);
}

/** The calls of the newest turn that are to be made and have not returned, in order. */
export function openCalls({ turns, returned }: Invocation): AskedCall[] {
  return (turns.at(-1)?.calls ?? []).filter(
    ({ callId, problem }) => problem === undefined && !returned.has(callId),
  );
}

/** Calls of all turns that were made. */
export function countCalls({ turns }: Invocation): number {
  return turns.reduce(
    (sum, { calls }) => sum + calls.filter(({ problem }) => problem === undefined).length,
    0,
  );
}

/** I1: how the invocation of a node that ends before its agent did is told of. Nothing where there is none that is open. */
export function draftClosings(
  nodeId: string,
  invocation: Invocation | undefined,
  code?: string,
): Extract<WorkflowDraft, { type: "agent.invocation.completed" }>[] {
  if (!invocation || invocation.completed) return [];
  const { invocationId, agentId } = invocation.started;
  const outcome = code === REFUSED ? "refused" : "failed";
  return [{ type: "agent.invocation.completed", nodeId, payload: { invocationId, agentId, outcome } }];
}
