/** Owns: what plays the models, agents and side effects of runs for the protocol's conformance suite, as the host sees it. */
import type { BoundTool } from "../../../contracts/workflows/agent-events.ts";
import type { InstalledAgent } from "../../../contracts/workflows/agent-manifest.ts";
import type { CoordinationId } from "../../../contracts/ids.ts";
import type { WorkflowDraft } from "../../../contracts/workflows/workflow-events.ts";
import type { ChatAnswer, ChatModel } from "../../../ports/outbound.ts";
import type { WorkflowStore } from "../../../ports/workflow-store.ts";
import type { EffectOutcome, NodeEffect, NodePlay } from "../../../workflow/node-contract/node-type.ts";
import type { Values } from "../../../workflow/state/values.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import type { HostRefusal, WorkflowSeams } from "./workflow-host.ts";

/** Plays for one host what the suite scripts. Only a host that is tested has one. */
export interface ConformancePlay {
  /** The play within nodes, for the settings of the host. */
  readonly nodes: NodePlay;
  /** Returns the model that plays a node's; what it says is the host's, and not a run's. */
  modelOf(node: PlayedNode): ChatModel;
  /** Returns the agent that the options of a run script; `undefined` where a live model is to play it. */
  agentOf(configurable: Values | undefined): PlayedAgent | undefined;
  /** Causes the side effect of a node. Causing it again, after a crash, is the same one. */
  causeSideEffect(run: WorkflowRun, effect: NodeEffect): EffectOutcome;
  /** True when a name in the body of an answer is believed to be a voter's: the suite votes for several people with one token. */
  believesVoter(run: WorkflowRun): boolean;
  /** Opens what the suite asks of a host beyond the protocol. */
  openSeams(access: SeamAccess): WorkflowSeams;
}

/** A node whose model is played, and whose run it is. */
export interface PlayedNode {
  readonly tenant: string;
  readonly nodeId: string;
}

/** An agent that no live model plays. */
export interface PlayedAgent {
  readonly model: { readonly model: string; readonly provider: string };
  /** Tools that do nothing, beside those of the agent. */
  readonly tools: readonly BoundTool[];
  /** False when the task is not held against the agent's schema. */
  readonly isTaskChecked: boolean;
  /** Returns what the agent answers in a turn, counted from 1. */
  answer(agent: InstalledAgent, turn: number): ChatAnswer;
  /** Returns the played tool behind one that is bound; `undefined` for every other tool. */
  findTool(tool: BoundTool): PlayedTool | undefined;
}

/** A tool that does nothing. */
export interface PlayedTool {
  readonly requiredScopes: readonly string[];
  /** The rate of its calls counts as reached. */
  readonly isExhausted: boolean;
  /** Its calls fail. */
  readonly fails: boolean;
}

/** The part of the host that the seams may reach. */
export interface SeamAccess {
  readonly store: WorkflowStore;
  /** Hexadecimal. */
  readonly sha256: (text: string) => string;
  readonly runs: SeamRuns;
}

/** The runs of the host, as the seams reach them. */
export interface SeamRuns {
  /** The newest state of a run; `undefined` when there is none. */
  newest(runId: CoordinationId): Promise<{ readonly run: WorkflowRun } | undefined>;
  /** Appends to a run what the request drafts; `undefined` when there is no such run. */
  ask(
    runId: CoordinationId,
    request: (loadedRun: { readonly run: WorkflowRun }) => SeamAnswer,
  ): Promise<{ readonly refused?: HostRefusal } | undefined>;
}

/** The answer of a seam to a run. */
export type SeamAnswer = { readonly drafts: readonly WorkflowDraft[] } | { readonly refused: HostRefusal };
