/**
 * Owns: whether what a call changes lies within what its session may change, by where paths really lead.
 *
 * W1 a path is followed through links and `..` as the host's tools do, and compared as the real path of what is there; that of a link
 * which is removed as the real path of the link. W2 a glob is
 * followed up to its first wildcard, from the folder of whom it was set for, never from the caller's. W3 what cannot be told, leads
 * nowhere or has several names is refused. W4 for a glob that begins outside of a worktree, a file in there stands for the one that
 * it will be merged into.
 */
import { expandHome, formatOwnResource, isFileResource } from "../../contracts/resource-names.ts";
import type { ResourceFiles } from "../../ports/resource-files.ts";
import type { MergedTree, PrivilegeBound } from "../../privileges/privilege-bound.ts";
import type { PrivilegeRefusal } from "../../privileges/privilege-sentence.ts";
import { isGlobOfAll, isWithinGlobs, splitGlob, type LocatedGlob } from "../../privileges/write-rule.ts";
import type { WriteCall } from "../arbiter/write-call.ts";
import type { SessionBounds } from "./bounds-of-session.ts";

export interface WriteDependencies {
  readonly files: ResourceFiles;
  /** Where relative globs of a bound begin. */
  readonly folderOf: (bound: PrivilegeBound) => string;
}

/** The changes of a call, as far as they can be told. */
export type CallChanges = Pick<WriteCall, "tool" | "targets" | "undetermined">;

/**
 * Returns the refusal of a tool call by the first bound that its changes break; `undefined` where all of them are
 * allowed. Changes that cannot be determined, and files with a second name, break the nearest bound.
 */
export async function findWriteRefusal(
  dependencies: WriteDependencies,
  { bounds, worktrees }: Pick<SessionBounds, "bounds" | "worktrees">,
  changes: CallChanges,
): Promise<PrivilegeRefusal | undefined> {
  const { tool, undetermined } = changes;
  const narrowing = bounds.filter(({ privilege }) => privilege.write && !privilege.write.some(isGlobOfAll));
  const [nearest] = narrowing;
  if (!nearest) return undefined;
  const files = await locateChangedFiles(dependencies, changes);
  if (!files || undetermined) return { tool, rule: "write.unknown", bound: nearest };
  const trees = await locateWorktrees(dependencies, worktrees);
  for (const bound of narrowing) {
    const globs = await locateGlobs(dependencies, bound);
    const path = files
      .map(({ resource }) => formatOwnResource(resource))
      .find((file) => !isWithinBound(file, globs, trees));
    if (path !== undefined) return { tool, rule: "write", bound, path };
  }
  for (const { resource, isNew } of files)
    if (!isNew && (await dependencies.files.sharedName(resource)) !== undefined)
      return { tool, rule: "write.linked", bound: nearest, path: formatOwnResource(resource) };
  return undefined;
}

interface ChangedFile {
  readonly resource: string;
  /** It lies below something that the call removes before: what is reached by its name now is something else. */
  readonly isNew: boolean;
}

/** Locates the files that a call changes; `undefined` where a path of it leads nowhere. Resources other than files are not for globs. */
async function locateChangedFiles(
  { files }: WriteDependencies,
  { targets }: CallChanges,
): Promise<ChangedFile[] | undefined> {
  const located: ChangedFile[] = [];
  for (const { at, ends = ["target" as const] } of targets) {
    const isNew = ends.some((end) => typeof end === "object");
    const places: readonly (string | undefined)[] =
      "resource" in at
        ? [at.resource]
        : await Promise.all(ends.map((end) => files.locate(at.path, at.folder, end)));
    for (const resource of places) {
      if (resource === undefined) return undefined;
      if (isFileResource(resource)) located.push({ resource, isNew });
    }
  }
  return located;
}

async function locateWorktrees(
  { files }: WriteDependencies,
  worktrees: readonly MergedTree[],
): Promise<MergedTree[]> {
  const located: MergedTree[] = [];
  for (const { tree, repository } of worktrees) {
    const [from, into] = [await files.locate(".", tree), await files.locate(".", repository)];
    if (from !== undefined && into !== undefined)
      located.push({ tree: formatOwnResource(from), repository: formatOwnResource(into) });
  }
  return located;
}

/** W4: true when one of the globs lets a file be changed. */
function isWithinBound(file: string, globs: readonly LocatedGlob[], trees: readonly MergedTree[]): boolean {
  const isIn = (path: string, folder: string): boolean => isWithinGlobs(path, [{ root: folder, rest: [] }]);
  const worktree = trees.find(({ tree }) => isIn(file, tree));
  if (!worktree) return isWithinGlobs(file, globs);
  const { tree, repository } = worktree;
  const merged = repository + file.slice(tree.length);
  return globs.some((glob) => isWithinGlobs(isIn(glob.root, tree) ? file : merged, [glob]));
}

/** Locates where the globs of a bound begin. One whose beginning leads nowhere is left out: it lets nothing through. */
async function locateGlobs(
  { files, folderOf }: WriteDependencies,
  bound: PrivilegeBound,
): Promise<LocatedGlob[]> {
  const folder = folderOf(bound);
  const located: LocatedGlob[] = [];
  for (const glob of bound.privilege.write ?? []) {
    const { root, rest } = splitGlob(expandHome(glob.normalize("NFC"), files.home));
    const resource = await files.locate(root === "" ? "." : root, folder);
    if (resource !== undefined) located.push({ root: formatOwnResource(resource), rest });
  }
  return located;
}
