/** Owns: whether a file may be changed under the globs of a bound. Does not own: where a path really leads (`runtime/privileges/`). */
import { ACROSS_FOLDERS, isFittingAll } from "../std/fit-wildcards.ts";

/** A glob whose beginning was followed to where it really leads. */
export interface LocatedGlob {
  /** The real path of all before the first wildcard. */
  readonly root: string;
  /** The rest, from the first wildcard on. */
  readonly rest: readonly string[];
}

/** Splits a glob before its first name with a wildcard in it. */
export function splitGlob(glob: string): { readonly root: string; readonly rest: readonly string[] } {
  const names = glob.split("/");
  const at = names.findIndex((name) => /[*?]/u.test(name));
  if (at < 0) return { root: glob, rest: [] };
  const root = names.slice(0, at).join("/");
  return {
    root: root === "" && glob.startsWith("/") ? "/" : root,
    rest: names.slice(at).filter((name) => name !== "" && name !== "."),
  };
}

/** True when a real path fits one of the globs. A glob without wildcards means the file, and all that is below a folder. */
export function isWithinGlobs(path: string, globs: readonly LocatedGlob[]): boolean {
  return globs.some(({ root, rest }) => {
    const below = findBelow(path, root);
    if (below === undefined) return false;
    return rest.length === 0 || isFittingAll(below, rest, ACROSS_FOLDERS);
  });
}

/** The names of a path below a folder; `undefined` where it is not there. */
function findBelow(path: string, root: string): readonly string[] | undefined {
  if (path === root) return [];
  const start = root.endsWith("/") ? root : `${root}/`;
  return path.startsWith(start) ? path.slice(start.length).split("/") : undefined;
}

/** True for a glob that every file fits: it narrows nothing. */
export function isCatchingAll(glob: string): boolean {
  const { root, rest } = splitGlob(glob);
  return root === "/" && rest.every((name) => name === "**");
}
