/** Owns: looking at the targets of a call, and which of the folders among them its tool can delete. */
import { isClaimCovering, isFileResource, listResourceAndAbove } from "../../contracts/resource-names.ts";
import type { FileLook, ResourceFiles } from "../../ports/resource-files.ts";
import type { LocatedTarget } from "./assessed-target.ts";

/** A target, and what is there now. */
export interface LookedTarget {
  readonly target: LocatedTarget;
  readonly look: FileLook | undefined;
}

export async function lookAtTarget(files: ResourceFiles, target: LocatedTarget): Promise<LookedTarget> {
  if (target.isBelowRemoved) return { target, look: { kind: "absent", version: "absent" } };
  return { target, look: isFileResource(target.resource) ? await files.look(target.resource) : undefined };
}

/** Finds the folders of a call that its tool can delete. */
export async function findDeletableFolders(
  files: ResourceFiles,
  looked: readonly LookedTarget[],
): Promise<ReadonlySet<string>> {
  const deletable = new Set<string>();
  // In the order of resources a folder comes before all that is in it.
  for (const { target, look } of looked.toReversed())
    if (look?.kind === "folder" && (await canDeleteFolder(files, target, { looked, deletable })))
      deletable.add(target.resource);
  return deletable;
}

/** The targets of a call, and those of its folders of which it is known that its tool can delete them. */
interface CallTargets {
  readonly looked: readonly LookedTarget[];
  readonly deletable: ReadonlySet<string>;
}

/**
 * True where a call deletes a folder that its tool can delete: a link to one, or one in which nothing is but what the call takes away,
 * too, and in which it leaves nothing. A call that moves something away does not replace it, and can move files only.
 */
async function canDeleteFolder(
  files: ResourceFiles,
  folder: LocatedTarget,
  targets: CallTargets,
): Promise<boolean> {
  if (!folder.isRemoved || !folder.replaces) return false;
  const isLink = (await files.stamp(folder.resource)) !== undefined;
  if (isLink) return true;
  const removedEntries = await countRemovedEntries(files, folder, targets);
  return removedEntries !== undefined && !(await files.hasMoreEntries(folder.resource, removedEntries));
}

/** Counts the entries of a folder that a call deletes; `undefined` where the call leaves something in the folder. */
async function countRemovedEntries(
  files: ResourceFiles,
  folder: LocatedTarget,
  { looked, deletable }: CallTargets,
): Promise<number | undefined> {
  let count = 0;
  for (const one of looked) {
    const { resource } = one.target;
    if (resource === folder.resource || !isClaimCovering(folder.resource, resource)) continue;
    const isThere = await isThereBefore(files, one.target);
    if (!isDeletedByCall(one, isThere)) return undefined;
    const canGo = one.look?.kind !== "folder" || deletable.has(resource);
    if (isThere && canGo && isEntryOf(folder, resource)) count += 1;
  }
  return count;
}

/** True where something is at the place of a target, a link that leads nowhere included. */
async function isThereBefore(files: ResourceFiles, target: LocatedTarget): Promise<boolean> {
  return !target.isBelowRemoved && (await files.stamp(target.resource)) !== "absent";
}

/** True where the call leaves nothing at the place of a target. */
function isDeletedByCall({ target, look }: LookedTarget, isThere: boolean): boolean {
  const before = readCurrentText(look) ?? (isThere ? "" : undefined);
  return target.propose?.(before).kind === "deleted";
}

function isEntryOf(folder: LocatedTarget, resource: string): boolean {
  return listResourceAndAbove(resource)[1] === folder.resource;
}

/** Returns the text of a file as it is now; `undefined` where there is none, or it was not read. */
export function readCurrentText(look: FileLook | undefined): string | undefined {
  return look?.kind === "text" ? look.text : undefined;
}
