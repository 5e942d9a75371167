/**
 * Owns: whether what a call changes lies within what its session may change, by where paths really lead.
 *
 * W1 a path is followed through links and `..` as the host's tools do, and compared as the real path of what is there. W2 a glob is
 * followed up to its first wildcard, from the folder of whom it was set for, never from the caller's. W3 what cannot be told, leads
 * nowhere or has several names is refused.
 */
import { formatOwnResource, isFile } from "../../contracts/resource-names.ts";
import type { ResourceFiles } from "../../ports/resource-files.ts";
import type { PrivilegeBound } from "../../privileges/privilege-bound.ts";
import type { PrivilegeRefusal } from "../../privileges/privilege-sentence.ts";
import { isCatchingAll, isWithinGlobs, splitGlob, type LocatedGlob } from "../../privileges/write-rule.ts";
import type { WriteCall } from "../arbiter/write-call.ts";

export interface WriteDependencies {
  readonly files: ResourceFiles;
  /** Where relative globs of a bound begin. */
  readonly folderOf: (bound: PrivilegeBound) => string;
}

/** The changes of a call, as far as they can be told. */
export type Changes = Pick<WriteCall, "tool" | "targets" | "undetermined">;

/** `undefined`: all that the call changes may be changed. */
export async function findWriteRefusal(
  dependencies: WriteDependencies,
  bounds: readonly PrivilegeBound[],
  changes: Changes,
): Promise<PrivilegeRefusal | undefined> {
  const { tool, undetermined } = changes;
  const narrowing = bounds.filter(({ privilege }) => privilege.write && !privilege.write.some(isCatchingAll));
  const [nearest] = narrowing;
  if (!nearest) return undefined;
  const files = await locateFiles(dependencies, changes);
  if (!files || undetermined) return { tool, rule: "write.unknown", bound: nearest };
  for (const bound of narrowing) {
    const globs = await locateGlobs(dependencies, bound);
    const path = files.map(formatOwnResource).find((file) => !isWithinGlobs(file, globs));
    if (path !== undefined) return { tool, rule: "write", bound, path };
  }
  for (const resource of files)
    if ((await dependencies.files.sharedName(resource)) !== undefined)
      return { tool, rule: "write.linked", bound: nearest, path: formatOwnResource(resource) };
  return undefined;
}

/** Locates the files that a call changes; `undefined` where a path of it leads nowhere. Resources other than files are not for globs. */
async function locateFiles(
  { files }: WriteDependencies,
  { targets }: Changes,
): Promise<string[] | undefined> {
  const located: string[] = [];
  for (const { at } of targets) {
    const resource = "resource" in at ? at.resource : await files.locate(at.path, at.folder);
    if (resource === undefined) return undefined;
    if (isFile(resource)) located.push(resource);
  }
  return located;
}

/** A glob whose beginning leads nowhere lets nothing through. */
async function locateGlobs(
  { files, folderOf }: WriteDependencies,
  bound: PrivilegeBound,
): Promise<LocatedGlob[]> {
  const folder = folderOf(bound);
  const located: LocatedGlob[] = [];
  for (const glob of bound.privilege.write ?? []) {
    const { root, rest } = splitGlob(glob.normalize("NFC"));
    const resource = await files.locate(root === "" ? "." : root, folder);
    if (resource !== undefined) located.push({ root: formatOwnResource(resource), rest });
  }
  return located;
}
