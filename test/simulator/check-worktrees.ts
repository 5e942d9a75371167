/** Owns: worktrees, by the logs and by the disk: recorded before written, all or nothing, and none is left (W1 to W3). */
import type { HostRun } from "../crash/plan-host.ts";
import { listBroken } from "./list-broken.ts";
import type { FactOf } from "./journal.ts";
import { ABSENT, folderOf, isAtWork, type MadeWrite } from "./simulated-worktrees.ts";
import { mayMergeAll, type World } from "./world.ts";

type WorktreeFact = FactOf<"worktree.opened">;

interface Attempt {
  readonly runId: string;
  readonly stepId: string;
  readonly attempt: number;
}

function findOpened({ journal }: World, name: string): WorktreeFact | undefined {
  return journal.filter("worktree.opened").find(({ payload }) => payload.folder === folderOf(name));
}

function describeAttempt({ runId, payload }: { runId: string; payload: Omit<Attempt, "runId"> }): string {
  return `${runId}/${payload.stepId}:${payload.attempt}`;
}

/** W2: a write is in the log before it is made. A2: it is made beside no claim of another step. */
export function checkWrite(world: World, { name, path, before, after }: MadeWrite): string[] {
  world.journal.readNew();
  const opened = findOpened(world, name);
  if (!opened) return [`W1: ${name} is merged and was never opened`];
  const attempt = describeAttempt(opened);
  const isAnnounced = world.journal
    .filter("worktree.merge_begun")
    .filter((begun) => describeAttempt(begun) === attempt)
    .some(({ payload: { files } }) =>
      files.some((file) => file.path === path && file.before === before && file.after === after),
    );
  const others = listOtherHolders(world, opened, path);
  return [
    ...(isAnnounced ? [] : [`W2: ${attempt} writes ${path} before that is in the log`]),
    ...others.map((holder) => `A2: ${attempt} writes ${path} beside ${holder}`),
  ];
}

function listOtherHolders(world: World, opened: WorktreeFact, path: string): string[] {
  const { ledger, files, clock } = world;
  if (path === "merge.md" || mayMergeAll(world) || world.areClocksApart) return [];
  const nowMs = clock.now();
  const isOther = ({ runId, stepId }: { readonly runId: string; readonly stepId: string }): boolean =>
    // The owner has its steps work on what it holds itself.
    stepId !== "@owner" && (runId !== opened.runId || stepId !== opened.payload.stepId);
  return [...ledger.claims.entries.values()]
    .filter(({ resource, expiresAtMs }) => resource === `file:${files.folder}/${path}` && expiresAtMs > nowMs)
    .filter(isOther)
    .map(({ runId, stepId }) => `${runId}/${stepId}`);
}

/** An agent that can be stopped is stopped before its worktree is removed. */
export function checkRemoval({ gateways }: World, name: string, run: HostRun | undefined): string[] {
  // A gateway that took a plan over cannot stop the agents of another one.
  if (!isAtWork(run) || gateways.length > 1 || !run.manner.cancel.startsWith("stops")) return [];
  return [`W1: ${name} is removed while its agent is at work`];
}

/** At the end: no worktree is left unless its log says so, and what did not count was not written without people knowing of it. */
export function checkWorktreesAtEnd(world: World): string[] {
  const { journal, repository } = world;
  const { names, unremovable } = repository;
  const left = [...names].filter((name) => !unremovable.has(name));
  const early = journal.filter("step.failed").filter(({ payload }) => payload.error.message === ABSENT);
  return [
    ...left.map((name) => `W1: the worktree ${name} is left`),
    ...early.map((failed) => `W2: the worktree of ${describeAttempt(failed)} is removed before it is merged`),
    ...listUnsaid(world).map((name) => `W1: the worktree ${name} is left, and nobody is told`),
    ...journal.filter("worktree.opened").flatMap((opened) => checkFate(world, opened)),
  ];
}

/** Whoever finds that a worktree cannot be removed says so, unless it ends right then. */
function listUnsaid({ repository, lines, deaths, gateways }: World): string[] {
  if (deaths.length > 0 || gateways.length > 1) return [];
  return [...repository.unremovable].filter((name) => !lines.some((line) => line.includes(name)));
}

function checkFate({ journal, repository }: World, opened: WorktreeFact): string[] {
  const attempt = describeAttempt(opened);
  const { folder, ...about } = opened.payload;
  const types = new Set(
    journal.eventsOf(opened.runId).flatMap(({ type, payload }) => {
      const isOfAttempt = "attempt" in payload && "stepId" in payload && payload.attempt === about.attempt;
      return isOfAttempt && payload.stepId === about.stepId ? [type] : [];
    }),
  );
  const isWritten = repository.writes.some(({ name }) => folderOf(name) === folder);
  const isCounted = types.has("step.completed");
  const isConflicted = types.has("worktree.conflicted");
  const isMerged = types.has("worktree.merged");
  const unmerged = repository.listUnmerged(folder.slice(folderOf("").length));
  return listBroken({
    [`W1: the worktree of ${attempt} is never removed`]: !types.has("worktree.removed"),
    [`W2: ${attempt} counts and was neither merged nor asked about`]: isCounted && !isMerged && !isConflicted,
    [`W2: ${attempt} is merged without ${unmerged.join(" and ")}`]:
      isMerged && !isConflicted && unmerged.length > 0,
    [`W2: ${attempt} does not count, and was written without a word`]:
      isWritten && !isCounted && !isConflicted,
  });
}
