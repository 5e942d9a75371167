/**
 * Owns: merging what an attempt left in its worktree back into the folder of its repository. Nothing is written while a file cannot
 * be merged; where writing itself fails, the log and the question have what was written until then.
 *
 * W2 what is to be written is recorded first. May be cut off at any line and done again: a file that is written already has the
 * version that was recorded for it, and one that is not yet still has the version from before.
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import type { Command, FinishMerge } from "../../contracts/commands.ts";
import type { StepId } from "../../contracts/ids.ts";
import { nameFile } from "../../contracts/resource-names.ts";
import type { UnmergedFile } from "../../contracts/worktree-fields.ts";
import { MERGE_TOOL } from "../../dispatch/decide-worktrees.ts";
import { mustMergeWorktree, type MergeWorktree } from "../../dispatch/worktree-effects.ts";
import { formatWorktreeKey } from "../../ledger/evolve-worktrees.ts";
import type { OpenCoordination, Worktree } from "../../ledger/state.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { ResourceFiles } from "../../ports/resource-files.ts";
import type { TextMerge } from "../../ports/text-merge.ts";
import type { OpenWorktree, WorktreeChange, WorktreeWrite } from "../../ports/worktrees.ts";
import type { TurnsByName } from "../../std/turns-by-name.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { encodeQuestion } from "../questions/question-text.ts";
import { planMergedFiles, type MergedFiles } from "./merge-files.ts";
import { formatMergeQuestion } from "./merge-question.ts";
import { nameWorktree } from "../attempts/worktree-name.ts";

/** The collaborators that merging back needs, with arbitration and the file system. */
export interface MergeDependencies extends RuntimeDependencies {
  readonly files: ResourceFiles;
  readonly textMerge: () => Promise<TextMerge>;
  /** By repository: two merges at once would not see each other's files. */
  readonly merging: TurnsByName;
  readonly arbiter: {
    readonly whileNothingIsRuled: <T>(work: () => Promise<T>) => Promise<T>;
    readonly isHeldByOthers: (state: OpenCoordination, stepId: StepId, resource: string) => Promise<boolean>;
  };
}

/** The merge of one attempt's worktree into the folder that it was made from. */
interface WorktreeMergeTask {
  readonly dependencies: MergeDependencies;
  readonly state: OpenCoordination;
  readonly stepId: StepId;
  readonly attempt: number;
  readonly worktree: OpenWorktree;
  /** Files that an earlier try began to write. */
  readonly begun?: readonly { readonly path: string; readonly before: string; readonly after: string }[];
}

/**
 * Merges an attempt's worktree back in the turn of its repository, or asks people where that fails; does nothing where
 * there is no worktree to merge any more.
 */
export async function mergeWorktree(
  dependencies: MergeDependencies,
  { coordinationId }: OpenCoordination,
  { stepId, attempt }: MergeWorktree,
): Promise<void> {
  const worktree = await findWorktreeToMerge(dependencies, { coordinationId, stepId, attempt });
  if (!worktree) return;
  const { repository } = worktree.opened;
  await dependencies.merging.run(repository, async () => {
    const current = await findWorktreeToMerge(dependencies, { coordinationId, stepId, attempt });
    if (!current) return;
    const { state, opened, merge } = current;
    const name = nameWorktree(dependencies, { coordinationId, stepId, attempt });
    const place = { name, repository, base: opened.base };
    const begun = merge?.status === "begun" ? { begun: merge.files } : {};
    await mergeChangesBack({ dependencies, state, stepId, attempt, worktree: place, ...begun });
  });
}

interface KnownWorktree {
  readonly state: OpenCoordination;
  readonly opened: NonNullable<Worktree["opened"]>;
  readonly merge?: Worktree["merge"];
}

function findWorktreeToMerge(
  { runs }: MergeDependencies,
  { coordinationId, stepId, attempt }: Parameters<typeof nameWorktree>[1],
): Promise<KnownWorktree | undefined> {
  return runs.findOnDisk(coordinationId, (state) => {
    if (state.kind !== "open" || !mustMergeWorktree(state, stepId, attempt)) return undefined;
    const { opened, merge } = state.worktrees.get(formatWorktreeKey(stepId, attempt)) ?? {};
    return opened && { state, opened, ...(merge && { merge }) };
  });
}

/**
 * Compares the worktree, and writes its changes or asks people. A worktree that is absent is a failed merge, unless
 * the merge was begun: then people are asked.
 */
async function mergeChangesBack(merge: WorktreeMergeTask): Promise<void> {
  const compared = await merge.dependencies.worktrees.compare(merge.worktree);
  if (compared.kind === "compared") {
    const merged = await planMergedFiles(merge.dependencies, merge.worktree, compared.changes);
    const problem = await merge.dependencies.arbiter.whileNothingIsRuled(() =>
      writeUnlessHeld(merge, compared.changes, merged),
    );
    // Git may take long to keep the work: calls are ruled on meanwhile.
    if (problem) await askPeopleAboutMerge(merge, problem);
    return;
  }
  const { message } = compared;
  const mayBeWritten = merge.begun !== undefined;
  // Where work is left, or a merge that was begun may be written in part, only people can tell.
  if (compared.kind === "absent" && !mayBeWritten)
    await submitCommands(merge, [{ type: "failMerge", ...pickAttempt(merge), message }]);
  else await askPeopleAboutMerge(merge, { unmerged: [], message, written: 0, mayBeWritten });
}

/**
 * Writes the merged files, or nothing where a file is unmerged or held; a merge that was begun is finished in any
 * case. Returns what people are to be asked about; `undefined` where there is nothing.
 */
async function writeUnlessHeld(
  merge: WorktreeMergeTask,
  changes: readonly WorktreeChange[],
  { writes, unmerged }: MergedFiles,
): Promise<MergeObstacles | undefined> {
  if (merge.begun) return finishWriting(merge, changes, writes);
  const heldFiles = await listHeldFiles(merge, writes);
  const problems = [...unmerged, ...heldFiles];
  if (problems.length > 0) return { unmerged: problems, written: 0 };
  if (writes.length > 0 && !(await recordMergeBegun(merge, writes))) return undefined;
  return writeFiles(merge, writes);
}

/** Records the files that are to be written (W2); false where the attempt is over meanwhile. */
function recordMergeBegun(merge: WorktreeMergeTask, writes: readonly WorktreeWrite[]): Promise<boolean> {
  const files = writes.map(({ path, before, after }) => ({ path, before, after }));
  return submitCommands(merge, [{ type: "beginMerge", ...pickAttempt(merge), files }]);
}

/**
 * Writes what an earlier try began to write, but for files that somebody has changed since. Such a file is neither as
 * it was nor as it was to be.
 */
async function finishWriting(
  merge: WorktreeMergeTask,
  changes: readonly WorktreeChange[],
  writes: readonly WorktreeWrite[],
): Promise<MergeObstacles | undefined> {
  const versions = new Map(changes.map(({ path, ours }) => [path, ours]));
  const isKnown = ({ path, after }: WorktreeWrite): boolean =>
    versions.get(path) === after || writes.some((write) => write.path === path && write.after === after);
  const recorded = (merge.begun ?? []).map(
    (file): WorktreeWrite =>
      writes.find(({ path, after }) => path === file.path && after === file.after) ?? file,
  );
  const lostFiles = recorded
    .filter((write) => !isKnown(write))
    .map(({ path }): UnmergedFile => ({ path, because: "changed_meanwhile" }));
  return writeFiles(merge, recorded.filter(isKnown), lostFiles);
}

/**
 * Writes the files and records the merge as finished. Where one could not be written, or is among `lostFiles`, records
 * those that were written instead, and returns what could not be.
 */
async function writeFiles(
  merge: WorktreeMergeTask,
  writes: readonly WorktreeWrite[],
  lostFiles: readonly UnmergedFile[] = [],
): Promise<MergeObstacles | undefined> {
  const unmerged = [...lostFiles];
  const written: WorktreeWrite[] = [];
  for (const write of writes) {
    const outcome = await merge.dependencies.worktrees.write(merge.worktree, write);
    if (outcome === "written") written.push(write);
    else unmerged.push({ path: write.path, because: outcome });
  }
  const changed = await readWrittenVersions(merge, written);
  if (unmerged.length > 0) {
    await recordChangedFiles(merge, changed);
    return { unmerged, written: changed.length };
  }
  await submitCommands(merge, [{ type: "finishMerge", ...pickAttempt(merge), changed }]);
  return undefined;
}

/**
 * Records the files that a merge wrote before it failed. This comes before git keeps the work, which may take long:
 * whoever writes such a file meanwhile must know of the change.
 */
async function recordChangedFiles(merge: WorktreeMergeTask, changed: readonly ChangedFile[]): Promise<void> {
  const { stepId } = merge;
  const commands = changed.map(({ resource, version }): Command => ({
    type: "recordChange",
    stepId,
    resource,
    version,
    tool: MERGE_TOOL,
  }));
  if (commands.length > 0) await submitCommands(merge, commands);
}

function pickAttempt({ stepId, attempt }: WorktreeMergeTask): {
  readonly stepId: StepId;
  readonly attempt: number;
} {
  return { stepId, attempt };
}

/** Lists the files that another step holds, and the paths that are no files. */
async function listHeldFiles(
  merge: WorktreeMergeTask,
  writes: readonly WorktreeWrite[],
): Promise<UnmergedFile[]> {
  const { dependencies, stepId } = merge;
  const { coordinationId } = merge.state;
  // Steps may have begun since the files were compared, and their plan may declare them.
  const state = await dependencies.runs.state(coordinationId);
  if (state.kind !== "open") return [];
  const heldFiles: UnmergedFile[] = [];
  for (const { path } of writes) {
    const resource = await locateResource(merge, path);
    if (resource === undefined) heldFiles.push({ path, because: "not_a_file" });
    else if (await dependencies.arbiter.isHeldByOthers(state, stepId, resource))
      heldFiles.push({ path, because: "held" });
  }
  return heldFiles;
}

function locateResource(
  { dependencies, worktree }: WorktreeMergeTask,
  path: string,
): Promise<string | undefined> {
  return dependencies.files.locate(`${worktree.repository}/${path}`, worktree.repository);
}

type ChangedFile = FinishMerge["changed"][number];

/** Why the work could not be merged as a whole, and how many files were written all the same. */
interface MergeObstacles {
  readonly unmerged: readonly UnmergedFile[];
  readonly message?: string;
  readonly written: number;
  readonly mayBeWritten?: boolean;
}

/** Reads which version is in each written file now: others may have to know of it before they write. */
async function readWrittenVersions(
  merge: WorktreeMergeTask,
  writes: readonly WorktreeWrite[],
): Promise<ChangedFile[]> {
  const changed: ChangedFile[] = [];
  for (const { path } of writes) {
    const resource =
      (await locateResource(merge, path)) ??
      nameFile(merge.worktree.repository, merge.dependencies.files.machine);
    const look = await merge.dependencies.files.look(resource);
    changed.push({ resource, version: "version" in look ? look.version : "unreadable" });
  }
  return changed;
}

/** Keeps the work on its branch, and asks people about it (W3). */
async function askPeopleAboutMerge(merge: WorktreeMergeTask, problem: MergeObstacles): Promise<void> {
  const { dependencies, worktree, stepId } = merge;
  const place = await dependencies.worktrees.keep(worktree);
  const { repository } = worktree;
  const words = formatMergeQuestion({ ...problem, ...place, repository, stepId });
  const text = encodeQuestion({ question: words });
  const question: ContentInput = { ref: dependencies.refOf(text), text, keepWhileRunning: true };
  const files = problem.unmerged.slice(0, BOUNDS.worktreeFilesMax);
  const asking: Command = {
    type: "askAboutMerge",
    ...pickAttempt(merge),
    files,
    changed: [],
    question: question.ref,
  };
  await submitCommands(merge, [asking], [question]);
}

/** Submits commands about the merge; false where they were refused, because the attempt is over. */
async function submitCommands(
  { dependencies, state }: WorktreeMergeTask,
  commands: readonly Command[],
  contents: readonly ContentInput[] = [],
): Promise<boolean> {
  const submitted = await dependencies.runs.submit(state.coordinationId, commands, contents);
  return submitted.kind !== "refused";
}
