/** Owns: what an agent's invocation needs of the outside, and what comes of it. */
import type { AgentSource, AskedCall, BoundTool } from "../../contracts/workflows/agent-events.ts";
import type { WorkflowPayloads } from "../../contracts/workflows/workflow-events.ts";

import type { Values } from "../state/values.ts";

interface AgentBase {
  readonly id: string;
  readonly nodeId: string;
  readonly agentId: string;
  /** sha256 of the agent as it was installed when the run began. */
  readonly manifest: string;
}

export type AgentMessage =
  | { readonly role: "user"; readonly content: string }
  | { readonly role: "assistant"; readonly content: string; readonly calls: readonly ModelCallAsked[] }
  | { readonly role: "tool"; readonly callId: string; readonly call: string; readonly content: string };

export interface ModelCallAsked {
  readonly callId: string;
  readonly call: string;
  readonly args: Values;
}

/** The same effect has the same id, also after a restart. */
export type AgentEffect =
  /** Steps 1 to 4, and the check of the task. */
  | (AgentBase & {
      readonly kind: "prepare_agent";
      readonly invocationId: string;
      readonly source: AgentSource;
      readonly task: unknown;
      readonly memoryRef?: string;
    })
  /** Step 5: one turn of the model. */
  | (AgentBase & {
      readonly kind: "ask_agent";
      readonly turn: number;
      readonly messages: readonly AgentMessage[];
      readonly callsLeft: number;
    })
  | (AgentBase & { readonly kind: "call_agent_tool"; readonly call: AskedCall; readonly tool: BoundTool });

/** The payload of the event that starts an agent's invocation. */
type InvocationStartedPayload = WorkflowPayloads["agent.invocation.started"];
/** The payload of the event that binds an agent to a model and tools. */
type AgentBoundPayload = WorkflowPayloads["coordination.agent_bound"];
/** The payload of the event that records a turn of an agent. */
type AgentTurnedPayload = WorkflowPayloads["coordination.agent_turned"];
/** The error that a node failed with. */
type FailedNodeError = WorkflowPayloads["node.failed"]["error"];

export type AgentOutcome =
  | {
      readonly kind: "agent_prepared";
      readonly started: InvocationStartedPayload;
      readonly prompt: WorkflowPayloads["agent.promptResolved"];
      readonly bound: AgentBoundPayload;
      /** Why it goes no further: a task that is not of its schema, no model. */
      readonly refusal?: FailedNodeError;
    }
  | {
      readonly kind: "agent_turned";
      readonly turn: Omit<AgentTurnedPayload, "invocationId" | "turn">;
      readonly reasoning: string;
      readonly usage: Values;
      readonly model: string;
      readonly asked?: ModelAsked;
      /** The problem of the last turn's answer. */
      readonly refusal?: FailedNodeError;
    }
  | {
      readonly kind: "agent_tool_returned";
      readonly returned: Pick<
        WorkflowPayloads["agent.toolReturned"],
        "outcome" | "error" | "status" | "durationMs"
      >;
    };

/** A request to a model, told apart from every other one. */
export interface ModelAsked {
  readonly provider: string;
  readonly model: string;
  /** The request's key by recipe v2 (openwop/llm-cache-key.ts): sha256, hexadecimal. */
  readonly digest: string;
}
