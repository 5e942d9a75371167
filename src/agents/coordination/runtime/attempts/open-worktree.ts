/**
 * Owns: giving an attempt its worktree before its agent is started. May be cut off at any line: what the log does not know of is
 * made anew, because no agent has worked there.
 */
import { stepError } from "../../contracts/fact-fields.ts";
import type { StepId } from "../../contracts/ids.ts";
import type { OpenCoordination, Step } from "../../ledger/state.ts";
import { worktreeKeyOf } from "../../ledger/evolve-worktrees.ts";
import type { Order } from "../../ports/agent-runner.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { createFailure, type Outcome } from "./attempt-outcome.ts";
import { nameWorktree } from "./worktree-name.ts";

export type Place =
  /** `order`: what the order says of it. */
  | { readonly kind: "ready"; readonly order: Pick<Order, "folder"> }
  | { readonly kind: "refused"; readonly message: string }
  /** The attempt is over. */
  | { readonly kind: "late" };

type Dependencies = Pick<RuntimeDependencies, "logger" | "runs" | "worktrees" | "refOf" | "folderOf">;

interface ToPlace {
  readonly state: OpenCoordination;
  readonly step: Step;
}

/** Finds where the agent is to work. Without a worktree where one is asked for, nothing may be started. */
export async function findPlace(dependencies: Dependencies, { state, step }: ToPlace): Promise<Place> {
  if (!step.spec.isolate) return { kind: "ready", order: {} };
  const { coordinationId } = state;
  const { stepId, agentId } = step.spec;
  const { attempt } = step.phase;
  // D1: nothing is made for a dispatch that may still fail to reach the disk.
  await dependencies.runs.settled(coordinationId);
  const knownFolder = await findFolder(dependencies, { coordinationId, stepId, attempt });
  if (knownFolder !== undefined) return { kind: "ready", order: { folder: knownFolder } };
  const name = nameWorktree(dependencies, { coordinationId, stepId, attempt });
  const opened = await dependencies.worktrees.open(name, dependencies.folderOf(agentId));
  if (opened.kind === "refused") return opened;
  const { repository, base, folder } = opened;
  const submitted = await dependencies.runs.submit(coordinationId, [
    { type: "openWorktree", stepId, attempt, repository, base, folder },
  ]);
  if (submitted.kind !== "refused") return { kind: "ready", order: { folder } };
  // The attempt ended while it was made, and so may its removal have.
  const left = await dependencies.worktrees.remove(name);
  if (left !== undefined) dependencies.logger.warn({ runId: coordinationId, stepId }, left);
  return { kind: "late" };
}

export function createUnplacedFailure(
  { stepId, attempt }: { readonly stepId: StepId; readonly attempt: number },
  message: string,
): Outcome {
  return createFailure({ stepId, attempt }, stepError("worktree_failed", message));
}

async function findFolder(
  { runs }: Pick<Dependencies, "runs">,
  { coordinationId, stepId, attempt }: Parameters<typeof nameWorktree>[1],
): Promise<string | undefined> {
  const state = await runs.state(coordinationId);
  if (state.kind !== "open") return undefined;
  return state.worktrees.get(worktreeKeyOf(stepId, attempt))?.opened?.folder;
}
