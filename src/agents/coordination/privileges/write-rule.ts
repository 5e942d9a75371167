/** Owns: whether a file may be changed under the globs of a bound. Does not own: where a path really leads (`runtime/privileges/`). */
import { ACROSS_FOLDERS, isMatchingWildcards } from "../std/fit-wildcards.ts";

/** A glob whose beginning was followed to where it really leads. */
export interface LocatedGlob {
  /** The real path of all before the first wildcard. */
  readonly root: string;
  /** The rest, from the first wildcard on. */
  readonly rest: readonly string[];
}

/**
 * Splits a glob of files into the path before its first name with a wildcard, and the names from there on; none where
 * it has no wildcard.
 */
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

/**
 * True when the real path of a file fits one of the globs. A glob without wildcards means the file, and all that is
 * below a folder.
 */
export function isWithinGlobs(path: string, globs: readonly LocatedGlob[]): boolean {
  return globs.some(({ root, rest }) => {
    const below = splitPathBelow(path, root);
    if (below === undefined) return false;
    return rest.length === 0 || isMatchingWildcards(below, rest, ACROSS_FOLDERS);
  });
}

/** Returns the names of a path below a folder; `undefined` where the path is not in it. */
function splitPathBelow(path: string, root: string): readonly string[] | undefined {
  if (path === root) return [];
  const start = root.endsWith("/") ? root : `${root}/`;
  return path.startsWith(start) ? path.slice(start.length).split("/") : undefined;
}

const NAMES_OF_ROOT: ReadonlySet<string> = new Set(["", ".", ".."]);

/** True for a glob such as `/**` that every file fits, with one `*` more or without, so that it narrows nothing. */
export function isGlobOfAll(glob: string): boolean {
  const { root, rest } = splitGlob(glob);
  const isAtRoot = root.startsWith("/") && root.split("/").every((name) => NAMES_OF_ROOT.has(name));
  const names = rest.filter((name) => name !== "**");
  const isFitByAll = names.length === 0 || (names.length < rest.length && names.join("/") === "*");
  return isAtRoot && isFitByAll;
}
