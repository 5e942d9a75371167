/**
 * Owns: giving an attempt its worktree before its agent is started. May be cut off at any line: what the log does not know of is
 * made anew, because no agent has worked there.
 */
import { createStepError } from "../../contracts/fact-fields.ts";
import type { AgentId, StepId } from "../../contracts/ids.ts";
import type { MergedPaths, WorktreeAttempt } from "../../contracts/worktree-fields.ts";
import { isWorktreeOver } from "../../dispatch/worktree-effects.ts";
import type { KnownCoordination } from "../../ledger/state.ts";
import { isWorktreeGone, formatWorktreeKey } from "../../ledger/evolve-worktrees.ts";
import type { AttemptOrder } from "../../ports/agent-runner.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import type { OpenStep } from "../log/step-of-child.ts";
import { createFailureOutcome, type AttemptOutcome } from "./attempt-outcome.ts";
import { nameWorktree } from "./worktree-name.ts";

/** The folder that an agent is to work in, or why there is none. */
export type WorkFolderOutcome =
  /** `order`: what the order says of it. */
  | { readonly kind: "ready"; readonly order: Pick<AttemptOrder, "folder"> }
  | { readonly kind: "refused"; readonly message: string }
  /** The attempt is over. */
  | { readonly kind: "late" };

type WorkFolderDependencies = Pick<
  RuntimeDependencies,
  "runs" | "forks" | "worktrees" | "worktreeTurns" | "refOf" | "folderOf" | "logger"
>;

/**
 * Makes and records the worktree that the agent of an attempt is to work in, where the step asks for one, and returns
 * its folder for the start order; no folder where it asks for none. `refused` or `late` where that fails: then nothing
 * may be started. It is also refused where `signal` is aborted before git has time for the worktree.
 */
export async function prepareWorkFolder(
  dependencies: WorkFolderDependencies,
  { state, step }: OpenStep,
  signal: AbortSignal,
): Promise<WorkFolderOutcome> {
  if (!step.spec.isolate) return { kind: "ready", order: {} };
  const { coordinationId } = state;
  const { stepId, agentId } = step.spec;
  const about = { coordinationId, stepId, attempt: step.phase.attempt };
  const name = nameWorktree(dependencies, about);
  // W1: its removal waits, so that what is made when the attempt is over is removed.
  return dependencies.worktreeTurns.run(name, () =>
    openWorktreeUnlessOver(dependencies, about, { name, agentId, signal }),
  );
}

interface WorktreePlace {
  readonly name: string;
  readonly agentId: AgentId;
  readonly signal: AbortSignal;
}

async function openWorktreeUnlessOver(
  dependencies: WorkFolderDependencies,
  about: WorktreeAttempt,
  { name, agentId, signal }: WorktreePlace,
): Promise<WorkFolderOutcome> {
  const { coordinationId, stepId, attempt } = about;
  const attempted = await dependencies.runs.findOnDisk(coordinationId, (state) =>
    state.kind === "open" && !isWorktreeOver(state, about) ? state : undefined,
  );
  if (!attempted) return { kind: "late" };
  const knownFolder = attempted.worktrees.get(formatWorktreeKey(stepId, attempt))?.opened?.folder;
  if (knownFolder !== undefined) return { kind: "ready", order: { folder: knownFolder } };
  const merged = await listMergedPaths(dependencies, attempted);
  const wanted = { ...about, signal };
  const opened = await dependencies.worktrees.open(name, dependencies.folderOf(agentId), wanted, merged);
  if (opened.kind === "refused") return opened;
  const { repository, base, folder } = opened;
  let isRecorded = false;
  try {
    const submitted = await dependencies.runs.submit(coordinationId, [
      { type: "openWorktree", stepId, attempt, repository, base, folder },
    ]);
    isRecorded = submitted.kind !== "refused";
  } finally {
    // W1
    if (!isRecorded) await removeForgottenWorktree(dependencies, about, name);
  }
  return isRecorded ? { kind: "ready", order: { folder } } : { kind: "late" };
}

/** Lists the files that the steps of a plan merged, and those that the plan which it is a fork of had merged before. */
async function listMergedPaths(
  { forks }: Pick<WorkFolderDependencies, "forks">,
  { created: { forkedFrom }, steps }: KnownCoordination,
): Promise<MergedPaths[]> {
  const source = forkedFrom && (await forks.stateAt(forkedFrom));
  const earlier = source && source.kind !== "unopened" ? await listMergedPaths({ forks }, source) : [];
  return [...earlier, ...[...steps.values()].flatMap(({ merged }) => merged ?? [])];
}

/**
 * Removes the worktree of an attempt where the log on disk calls it gone: whoever recorded that found none, because
 * git had not made it yet. One that cannot be removed is only logged.
 */
export async function removeForgottenWorktree(
  { runs, worktrees, logger }: Pick<RuntimeDependencies, "runs" | "worktrees" | "logger">,
  { coordinationId, stepId, attempt }: WorktreeAttempt,
  name: string,
): Promise<void> {
  const isForgotten = await runs.findOnDisk(
    coordinationId,
    (state) => isWorktreeGone(state, { stepId, attempt }) || undefined,
  );
  const left = isForgotten && (await worktrees.remove(name));
  if (left !== undefined) logger.warn({ runId: coordinationId, stepId }, left);
}

/** Returns the command that records an attempt as failed because its worktree could not be made. */
export function createWorktreeFailure(
  { stepId, attempt }: { readonly stepId: StepId; readonly attempt: number },
  message: string,
): AttemptOutcome {
  return createFailureOutcome({ stepId, attempt }, createStepError("worktree_failed", message));
}
