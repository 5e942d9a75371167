/** Owns: what a type of node is to the run that holds it: a pure function from where the node is to what it does next. */
import { eventIdAt, type EpochMs, type EventId } from "../contracts/ids.ts";
import type { InterruptKind, WorkflowDraft, WorkflowPayloads } from "../contracts/workflow-events.ts";
import type { GraphNode, NodeGraph } from "./graph.ts";
import type { NodeRun, WorkflowRun } from "./state.ts";
import type { Values } from "./values.ts";

/** What the operator allows, and what the host is, as far as runs depend on it. */
export interface WorkflowSettings {
  readonly hostId: string;
  /** Below it, an orchestrator's decision waits for people: 0.5 to 1. */
  readonly confidenceFloor: number;
  /** Below it, an agent's own decision waits for people. */
  readonly escalationThreshold: number;
  readonly nodeExecutionsMax: number;
  readonly loopIterationsMax: number;
  readonly runDurationMsMax: number;
  /** Where tool and agent nodes go that name no address. */
  readonly mcpUrl?: string;
  readonly a2aUrl?: string;
  /** Node types of the protocol's conformance suite are refused outside of it. */
  readonly allowsMocks: boolean;
}

/** A node at work. */
export interface NodeView {
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
  readonly node: GraphNode;
  readonly own: NodeRun;
  readonly now: EpochMs;
  readonly settings: WorkflowSettings;
}

export type NodeError = WorkflowPayloads["node.failed"]["error"];

export type NodeStep =
  /** `before` comes ahead of `node.completed`, `after` behind it. */
  | {
      readonly kind: "complete";
      readonly outputs?: Values;
      readonly before?: readonly WorkflowDraft[];
      readonly after?: readonly WorkflowDraft[];
    }
  | { readonly kind: "fail"; readonly error: NodeError; readonly before?: readonly WorkflowDraft[] }
  /** Progress that is recorded before anything else is done; the node is asked again on the new state. */
  | {
      readonly kind: "record";
      readonly drafts: readonly WorkflowDraft[];
      readonly memory?: readonly MemoryNote[];
    }
  /** Something outside is to be done, or is being done; its outcome comes to `settle`. */
  | { readonly kind: "act"; readonly effect: NodeEffect }
  | { readonly kind: "suspend"; readonly interrupt: NewInterrupt; readonly before?: readonly WorkflowDraft[] }
  /** Nothing to do before `atMs`; without it, before an answer comes. */
  | { readonly kind: "wait"; readonly atMs?: EpochMs }
  /** The node ends the run. */
  | { readonly kind: "end"; readonly drafts: readonly WorkflowDraft[] };

export interface NewInterrupt {
  readonly kind: InterruptKind;
  readonly data: Values;
  readonly timeoutMs?: number;
  readonly resumeSchema?: Values;
  readonly reason?: string;
  readonly agentId?: string;
  readonly threshold?: number;
  readonly observed?: number;
}

/** A memory write in the order of its event among the drafts. */
export interface MemoryNote {
  readonly scope: string;
  readonly id: string;
  readonly content: string;
  readonly tags: readonly string[];
  readonly ttlMs?: number;
}

interface EffectBase {
  /** The same effect has the same id, also after a restart. */
  readonly id: string;
  readonly nodeId: string;
}

/** What is done outside of the log for a node. Doing one twice must do no harm: each carries its own id. */
export type NodeEffect =
  | (EffectBase & ChildEffect)
  /** The entries of each scope. */
  | (EffectBase & {
      readonly kind: "read_memory";
      readonly scopes: readonly string[];
      readonly tag?: string;
      readonly limit?: number;
    })
  | (EffectBase & { readonly kind: "ask_model"; readonly request: ModelAsk })
  | (EffectBase & {
      readonly kind: "call_tool";
      readonly tool: string;
      readonly args: Values;
      readonly url: string;
    })
  | (EffectBase & {
      readonly kind: "send_message";
      readonly skill: string;
      readonly message: string;
      readonly url: string;
    });

/** A run within the run: here, or on another host. */
export interface ChildEffect {
  readonly kind: "run_child";
  readonly cause: "core.dispatch" | "core.subWorkflow";
  readonly workflowId: string;
  readonly inputs: Values;
  /** The root of another host. */
  readonly peerUrl?: string;
  /** The log knows that it was created. */
  readonly childRunId?: string;
  readonly memoryScope: string;
  /** Made out of the place of the handoff, so that trying again is the same child. */
  readonly ordinal: string;
}

export interface ModelAsk {
  readonly agentId?: string;
  readonly model?: string;
  readonly system?: string;
  readonly messages: readonly { readonly role: "user" | "assistant"; readonly content: string }[];
  readonly schema?: Values;
  readonly temperature?: number;
  readonly maxTokens?: number;
}

export type EffectOutcome =
  | {
      readonly kind: "child_created";
      readonly childRunId: string;
    }
  | { readonly kind: "child_refused"; readonly error: NodeError }
  | {
      readonly kind: "child_ended";
      readonly status: "completed" | "failed" | "cancelled";
      readonly variables: Values;
      readonly error?: NodeError;
    }
  | { readonly kind: "memory_read"; readonly entries: readonly (readonly Values[])[] }
  | {
      readonly kind: "model_answered";
      readonly text: string;
      readonly object?: unknown;
      readonly model: string;
      readonly usage: Values;
    }
  | { readonly kind: "model_refused" }
  | {
      readonly kind: "tool_answered";
      readonly ok: boolean;
      readonly text: string;
      readonly content: unknown;
      readonly state?: string;
    }
  | { readonly kind: "failed"; readonly error: NodeError };

export interface NodeType {
  /** What is wrong with a node of this type; checked before a run is created. */
  readonly check?: (node: GraphNode, graph: NodeGraph) => readonly string[];
  readonly step: (view: NodeView) => NodeStep;
  /** What an outcome of the node's effect means. */
  readonly settle?: (view: NodeView, effect: NodeEffect, outcome: EffectOutcome) => readonly WorkflowDraft[];
  /** Whether a pause may stop it in the middle, and a resumption begin it anew. */
  readonly isPausable?: boolean;
}

/** The id that the draft at `index` of a batch will have, for what another one of the batch is caused by. */
export function idOfDraft({ run }: Pick<NodeView, "run">, index: number): EventId {
  return eventIdAt(run.runId, run.nextSequence + index);
}

export function agentIdOf({ node: { node } }: NodeView): string {
  const own = node.agent?.agentId ?? node.config["agentId"];
  return typeof own === "string" && own.length >= 3 ? own : `node:${node.id}`;
}

/** Names the node in an event. */
export function of<T extends WorkflowDraft>(view: { readonly own: NodeRun }, draft: T): T {
  return { nodeId: view.own.nodeId, ...draft };
}
