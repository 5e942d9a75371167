/** Owns: the collaborators and the memory of the driver of workflow runs, and how effects are performed for it. */
import type { WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import type { EffectOutcome, NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import type { OwnRuns } from "../../ownership/own-runs.ts";
import type { LoadedRun, RunBook } from "../records/run-book.ts";
import type { DrivenRuns } from "./driven-runs.ts";
import type { PlanDependencies } from "./plan-runs.ts";
import type { AskAgain } from "./take-events.ts";

/** Appends the outcomes of an effect to its run; those that come after the effect was stopped are dropped. */
export type OutcomeSink = (outcomes: readonly EffectOutcome[]) => Promise<void>;

/** The rest of an effect that only waits for something outside; it holds nothing of its run. */
export interface WaitingEffect {
  /** As far as its outcome is settled by it. */
  readonly effect: NodeEffect;
  readonly wait: (deliver: OutcomeSink) => Promise<void>;
}

/** How one effect of a run is performed. */
export interface EffectPerformance {
  readonly signal: AbortSignal;
  readonly deliver: OutcomeSink;
  /** True where an earlier try, perhaps of another process, may have begun the effect outside. */
  readonly isTakenUp: boolean;
}

/** Resolves when the effect is done, or with what is left to wait for. */
export type EffectPerformer = (
  loadedRun: LoadedRun,
  effect: NodeEffect,
  performing: EffectPerformance,
) => Promise<WaitingEffect | undefined>;

/** The collaborators of the driver of workflow runs. */
export interface DriverDependencies extends PlanDependencies {
  readonly book: RunBook;
  readonly ownRuns: OwnRuns;
  readonly perform: EffectPerformer;
  readonly askAgain: AskAgain;
}

/** The driver of workflow runs: its collaborators, the runs that it drives, and whether it stops. */
export interface RunDriverState extends DriverDependencies, DrivenRuns {
  readonly listeners: ((loadedRun: LoadedRun, events: readonly WorkflowEvent[]) => void)[];
  isStopping: boolean;
  readonly stopping: AbortController;
}
