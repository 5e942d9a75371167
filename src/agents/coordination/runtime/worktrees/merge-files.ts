/** Owns: what becomes of each file that an attempt changed in its worktree. Writes nothing. */
import type { UnmergedFile } from "../../contracts/worktree-fields.ts";
import type { TextMerge } from "../../ports/text-merge.ts";
import type { OpenWorktree, WorktreeChange, WorktreeWrite, Worktrees } from "../../ports/worktrees.ts";

export interface MergedFiles {
  readonly writes: readonly WorktreeWrite[];
  readonly unmerged: readonly UnmergedFile[];
}

interface FileMergeDependencies {
  readonly worktrees: Pick<Worktrees, "texts" | "versionOf">;
  readonly textMerge: () => Promise<TextMerge>;
}

type FileFate =
  | { readonly kind: "nothing" }
  | { readonly kind: "write"; readonly write: WorktreeWrite }
  | { readonly kind: "unmerged"; readonly file: UnmergedFile };

/**
 * Returns which of a worktree's changed files are written back and which are left unmerged. Reads their texts where
 * both sides changed them; writes nothing.
 */
export async function planMergedFiles(
  dependencies: FileMergeDependencies,
  worktree: OpenWorktree,
  changes: readonly WorktreeChange[],
): Promise<MergedFiles> {
  const fates: FileFate[] = [];
  for (const change of changes)
    fates.push(decideFileByVersions(change) ?? (await mergeFileTexts(dependencies, worktree, change)));
  return {
    writes: fates.flatMap((fate) => (fate.kind === "write" ? [fate.write] : [])),
    unmerged: fates.flatMap((fate) => (fate.kind === "unmerged" ? [fate.file] : [])),
  };
}

/**
 * Returns what becomes of a changed file by its versions alone; `undefined` where both sides changed a plain file, so
 * that its text decides.
 */
export function decideFileByVersions({ path, base, theirs, ours }: WorktreeChange): FileFate | undefined {
  if (theirs === base) return { kind: "nothing" };
  // Two folders may hold anything: only versions of files say what is in them.
  if (!isFileVersion(theirs) || !isFileVersion(ours)) return createUnmergedFate(path, "not_a_file");
  if (theirs === ours) return { kind: "nothing" };
  if (ours === base) return { kind: "write", write: { path, before: ours, after: theirs } };
  const isText = [base, theirs, ours].every((version) => PLAIN.test(version));
  return isText ? undefined : createUnmergedFate(path, "both_changed");
}

const PLAIN = /^100(?:644|755) /u;

/** True for what git can have in place of a file: nothing, a plain file or a link. */
function isFileVersion(version: string): boolean {
  return version === "absent" || version.startsWith("120000 ") || PLAIN.test(version);
}

/** Merges the texts of a file that both sides changed. It is unmerged where they do not fit together. */
async function mergeFileTexts(
  { worktrees, textMerge }: FileMergeDependencies,
  worktree: OpenWorktree,
  { path, base, theirs, ours }: WorktreeChange,
): Promise<FileFate> {
  const texts = await worktrees.texts(worktree, path);
  const merge = await textMerge();
  const merged =
    texts && merge.merge({ base: texts.base, current: texts.ours, proposed: texts.theirs, path });
  if (merged?.kind !== "clean") return createUnmergedFate(path, "both_changed");
  const mode = readFileMode(readFileMode(theirs) === readFileMode(base) ? ours : theirs);
  const after = await worktrees.versionOf(worktree, { path, text: merged.text, mode });
  if (after === undefined) return createUnmergedFate(path, "both_changed");
  if (after === ours) return { kind: "nothing" };
  return { kind: "write", write: { path, before: ours, after, text: merged.text } };
}

function readFileMode(version: string): string {
  return version.slice(0, version.indexOf(" "));
}

function createUnmergedFate(path: string, because: UnmergedFile["because"]): FileFate {
  return { kind: "unmerged", file: { path, because } };
}
