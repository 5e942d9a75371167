/** Owns: what a type of node is to the run that holds it: a pure function from where the node is to what it does next. */
import type { VerifierConfig } from "../../contracts/workflows/child-gate-config.ts";
import type { EpochMs, EventId } from "../../contracts/ids.ts";
import type { Verdict, VerificationFailure } from "../../contracts/verification.ts";
import type { AgentSource } from "../../contracts/workflows/agent-events.ts";
import type {
  InterruptKind,
  OrchestratorDecision,
  WorkflowDraft,
  WorkflowPayloads,
} from "../../contracts/workflows/workflow-events.ts";
import type { PlannedUpdate, WorkspaceContent } from "../../contracts/workflows/workspace.ts";
import type { AgentEffect, AgentOutcome, ModelAsked } from "./agent-effects.ts";
import type { GraphNode, NodeGraph } from "../state/node-graph.ts";
import {
  computeEventId,
  type NodeRun,
  type RecordedVerdict,
  type WorkflowRun,
} from "../state/workflow-state.ts";
import type { TurnAsk } from "./turn-inputs.ts";
import type { Values } from "../state/values.ts";

/** Settings of the operator and of the host that runs depend on. */
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
  /** Hexadecimal. Absent: no hash of what tools are called with is told (RFC 0064). */
  readonly sha256?: (text: string) => string;
  /** Plays what workflows of the protocol's conformance suite script. Absent: such workflows are refused. */
  readonly play?: NodePlay;
  /** Whether a replay asks live models again, to see whether they refuse now; one that is played is always asked. */
  readonly replayReinvokesModels?: boolean;
  /** Events at most that each turn of a supervisor is told; absent: the bound of the same name. */
  readonly transcriptWindow?: number;
}

/** A node at work. */
export interface NodeView {
  readonly run: WorkflowRun;
  readonly graph: NodeGraph;
  readonly node: GraphNode;
  readonly nodeRun: NodeRun;
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

/** An act outside of the log for a node. Doing one twice must do no harm: each carries its own id. */
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
      /** Root of the host that the run's caller named, where the URL comes of that. */
      readonly peerUrl?: string;
    })
  | (EffectBase & {
      readonly kind: "send_message";
      readonly skill: string;
      readonly message: string;
      readonly url: string;
      /** Root of the host that the run's caller named, where the URL comes of that. */
      readonly peerUrl?: string;
    })
  | (EffectBase & JudgeEffect)
  /** The files of the workspace as they were before an event of the run: those of the paths, or all. */
  | (EffectBase & {
      readonly kind: "read_workspace";
      readonly sequence: number;
      readonly paths: readonly string[];
    })
  | (EffectBase & {
      readonly kind: "write_workspace";
      readonly path: string;
      readonly content: WorkspaceContent;
      /** The newest version that must be there; 0: there is no file. */
      readonly ifVersion?: number;
    })
  /** Something that can be counted, for tests of hosts. */
  | (EffectBase & { readonly kind: "cause_side_effect" })
  | AgentEffect;

/** A run within the run: here, or on another host. */
export interface ChildEffect {
  readonly kind: "run_child";
  readonly cause: "core.dispatch" | "core.subWorkflow";
  readonly workflowId: string;
  /** In place of a workflow: an agent of a manifest. */
  readonly agent?: { readonly agentId: string; readonly source: AgentSource };
  readonly inputs: Values;
  /** The root of another host. */
  readonly peerUrl?: string;
  /** The log knows that it was created. */
  readonly childRunId?: string;
  /** The node is over when its child has begun: nobody waits for the child's end. */
  readonly isLeftAlone?: true;
  readonly memoryScope: string;
  readonly hasIsolatedMemory?: true;
  /** RFC 0063 §D: scopes that the child has at most. */
  readonly principalScope?: readonly string[];
  /** Made out of the place of the handoff, so that trying again is the same child. */
  readonly ordinal: string;
}

/** Reads what a completed child produced, and asks those who rule on it. */
export interface JudgeEffect {
  readonly kind: "judge_child";
  readonly workerId: string;
  readonly childRunId: string;
  readonly peerUrl?: string;
  /** The event that tells of its end. */
  readonly target: EventId;
  /** Counts the node's completed children. */
  readonly attempt: number;
  /** Absent where nobody is asked. */
  readonly verifier?: VerifierConfig;
  /** The conformance play gives the verdict, and no check is made. */
  readonly isPlayed?: true;
  /** A checksum of the outputs is wanted. */
  readonly isAttested: boolean;
}

/** The ruling of one check on a child's outputs, without anything of them. */
export type Judgement =
  | {
      readonly kind: "verdict";
      readonly verdict: Verdict;
      readonly criteria: readonly string[];
      readonly confidence?: number;
    }
  | { readonly kind: "none"; readonly because: VerificationFailure };

export interface ModelAsk {
  /** The conformance play answers. Absent: the model that is configured. */
  readonly isPlayed?: true;
  readonly agentId?: string;
  readonly model?: string;
  /** The provider whose model it is. Absent: the host's choice. */
  readonly provider?: string;
  /** The name of the provider's model for a host that routes to several. Absent with a provider: none of that one is named. */
  readonly routedModel?: string;
  readonly system?: string;
  readonly messages: readonly { readonly role: "user" | "assistant"; readonly content: string }[];
  /** Becomes the last message: how the run stood when the node was entered. */
  readonly turn?: TurnAsk;
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
      /** The keys that a child which completed without reaching its goal did not meet. */
      readonly unmet?: readonly string[];
      /** Outputs of a run of this host that completed. */
      readonly outputs?: Values;
      readonly error?: NodeError;
    }
  | {
      readonly kind: "child_judged";
      /** Variables of the child; absent where they cannot be read. */
      readonly variables?: Values;
      /** Names of those that are for the child's own nodes. */
      readonly sensitive?: readonly string[];
      readonly attestation?: { readonly checksum: string; readonly algorithm: "sha256" };
      /** The verifier is one of those who did the work. */
      readonly isSelf: boolean;
      /** The agent whose decision the child ended with, where no people have agreed to it. */
      readonly actor?: { readonly agentId: string; readonly confidence?: number };
      readonly judgements: readonly Judgement[];
      /** Usage of each answer of the critic's model. */
      readonly calls?: readonly { readonly model: string; readonly usage: Values }[];
    }
  | { readonly kind: "memory_read"; readonly entries: readonly (readonly Values[])[] }
  | { readonly kind: "workspace_read"; readonly files: readonly Values[] }
  /** To be written with the event that tells of it. */
  | { readonly kind: "workspace_written"; readonly update: PlannedUpdate }
  | {
      readonly kind: "model_answered";
      readonly text: string;
      readonly object?: unknown;
      readonly model: string;
      readonly usage: Values;
      readonly asked?: ModelAsked;
      /** How it breaks the schema that was asked for. */
      readonly problems?: readonly string[];
      /** It ends where the bound of its length is. */
      readonly isCutOff?: boolean;
    }
  /** Without what it said: that is content. */
  | {
      readonly kind: "model_refused";
      readonly model: string;
      readonly usage: Values;
      readonly asked?: ModelAsked;
    }
  | {
      readonly kind: "tool_answered";
      readonly ok: boolean;
      readonly text: string;
      readonly content: unknown;
      readonly state?: string;
      readonly durationMs?: number;
    }
  | { readonly kind: "side_effect_caused"; readonly effectId: string }
  | AgentOutcome
  | {
      readonly kind: "failed";
      readonly error: NodeError;
      readonly asked?: ModelAsked;
      /** The duration of a call that was begun. */
      readonly durationMs?: number;
    };

export interface NodeType {
  /** Lists the problems of a node of this type, before a run is created. */
  readonly check?: (node: GraphNode, graph: NodeGraph, settings: WorkflowSettings) => readonly string[];
  readonly step: (view: NodeView) => NodeStep;
  /** Returns the events that an outcome of the node's effect brings. */
  readonly settle?: (view: NodeView, effect: NodeEffect, outcome: EffectOutcome) => readonly WorkflowDraft[];
  /** Whether a pause may stop it in the middle, and a resumption begin it anew. */
  readonly isPausable?: boolean;
}

/**
 * Plays what the protocol's conformance suite scripts within nodes. Pure, as nodes are: a replay of a run that was played is
 * given it too.
 */
export interface NodePlay {
  /** Node types beside the product's, by their names in definitions. */
  readonly nodeTypes: Readonly<Record<string, NodeType>>;
  /** Tells what is wrong with the scripts of a node. */
  check(node: GraphNode): readonly string[];
  /** True when a script answers in place of the node's model. */
  isModelPlayed(node: GraphNode): boolean;
  /** True when a script gives the verdicts on the node's children. */
  isVerdictPlayed(node: GraphNode): boolean;
  /** Returns the verdict on the node's last child; `undefined` where its verifier is asked. */
  playVerdict(view: NodeView, verifier: VerifierConfig): RecordedVerdict | undefined;
  /** Returns the supervisor's turn; `undefined` where its model is asked. */
  playTurn(view: NodeView): PlayedTurn | undefined;
  /** Returns the decision that the script put to people before it was recorded. */
  findDoubtedDecision(view: NodeView): OrchestratorDecision | undefined;
}

/** A supervisor's turn as a script has it. */
export type PlayedTurn =
  | { readonly kind: "decided"; readonly decision: OrchestratorDecision }
  /** People are asked about a decision first. */
  | { readonly kind: "doubted"; readonly step: NodeStep };

/**
 * Returns the event id that the draft at `index` of a batch will have once it is appended, so that another draft can
 * name it.
 */
export function computeDraftEventId({ run }: NodeView, index: number): EventId {
  return computeEventId(run, run.nextSequence + index);
}

/**
 * Returns the id of the agent that a node names; `node:` and the node's own id where it names none, or one of fewer
 * than three characters.
 */
export function readNodeAgentId({ node: { node } }: NodeView): string {
  const agentId = node.agent?.agentId ?? node.config["agentId"];
  return typeof agentId === "string" && agentId.length >= 3 ? agentId : `node:${node.id}`;
}

/** Returns a copy of the draft with the id of the view's node; a draft that names a node keeps that. */
export function withNodeId<T extends WorkflowDraft>(view: { readonly nodeRun: NodeRun }, draft: T): T {
  return { nodeId: view.nodeRun.nodeId, ...draft };
}
