/** Owns: what the performers of effects need, and the way in which they hand in a command. */
import type { Command } from "../../contracts/commands.ts";
import type { CoordinationId, IdempotencyKey } from "../../contracts/ids.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import type { LaneRunner } from "../../ports/lane-runner.ts";
import type { SpawnObserver } from "../../ports/spawn-observer.ts";
import type { TurnsByName } from "../../std/turns-by-name.ts";
import type { OwnerTurns } from "../environment/owner-turns.ts";
import type { QuestionWaits } from "../questions/question-waits.ts";
import type { MergeDependencies } from "../worktrees/merge-worktree.ts";

export interface EffectDependencies extends MergeDependencies {
  readonly turns: OwnerTurns;
  readonly lanes: LaneRunner;
  readonly runner: SpawnObserver;
  /** Whose child a session is, is looked up and recorded by one at a time. */
  readonly childTurns: TurnsByName;
  /** Aborted when the coordinator stops: then no answer is waited for. */
  readonly stopping: AbortSignal;
  readonly waits: QuestionWaits;
  /** Looks at a coordination again when something is recorded in another one. */
  readonly lookAfter: (runId: CoordinationId, otherId: CoordinationId) => void;
  /** Ends what this process does for an attempt. Resolves when no start of it is under way, as far as the host answers. */
  readonly halt: (attemptKey: IdempotencyKey) => Promise<void>;
}

/**
 * Submits one command to a coordination's log, and drops the result. A refusal is no failure: the state that called
 * for the effect is not there any more.
 */
export async function submitCommand(
  { runs }: EffectDependencies,
  { coordinationId }: OpenCoordination,
  command: Command,
): Promise<void> {
  await runs.submit(coordinationId, [command]);
}
