/** Owns: what effects are performed with. */
import type { CoordinationId } from "../../../contracts/ids.ts";
import type { NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import type { AgentBook } from "../agents/agent-book.ts";
import type { AskDependencies } from "../models/ask-model.ts";
import type { CreateDependencies } from "../driving/create-run.ts";
import type { JudgeDependencies } from "./judge-child.ts";
import type { AgentDependencies } from "../agents/perform-agent.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";
import type { WorkspaceDependencies } from "../records/run-workspace.ts";

export interface EffectDependencies
  extends
    CreateDependencies,
    AskDependencies,
    Omit<JudgeDependencies, "driver">,
    Omit<AgentDependencies, "agentBook">,
    WorkspaceDependencies,
    Pick<WorkflowHostDependencies, "store" | "peers" | "tools" | "chat" | "sha256" | "baseUrl"> {
  readonly agentBook: AgentBook;
  /** Ends a child that its parent has ended without. */
  readonly abandon: (childRunId: CoordinationId, parent: ChildsParent) => Promise<void>;
  /** Resolves when the run has ended, or with `undefined` when `signal` aborts. */
  readonly awaitEnd: (runId: CoordinationId, signal: AbortSignal) => Promise<LoadedRun | undefined>;
}

export interface ChildsParent {
  readonly parentRunId: CoordinationId;
  readonly tenant: string;
}

/** The effect of a node that has this kind. */
export type EffectOfKind<K extends NodeEffect["kind"]> = NodeEffect & { readonly kind: K };

/** An effect that is being performed, and the signal that stops it. */
export interface EffectAct<E> {
  readonly effect: E;
  readonly signal: AbortSignal;
}
