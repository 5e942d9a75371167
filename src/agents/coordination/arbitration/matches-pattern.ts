/**
 * Owns: whether a resource fits a pattern of a policy, in the manner of `.gitignore`. `**` stands for any number of folders, `*`
 * for anything within one name, `?` for one character. A path that does not begin with `/` fits below any folder, and what fits
 * a folder fits all that is in it. A pattern without a kind is one of files, and one that names no machine fits the files of
 * every machine. Upper and lower case are the same, because they may be
 * on the file system.
 *
 * Patterns of plans are written by models: the time is at most the product of both lengths.
 */
import {
  readResourceKind,
  nameFile,
  parseFileResource,
  type NamedFile,
} from "../contracts/resource-names.ts";
import { ACROSS_FOLDERS, isMatchingWildcards, WITHIN_NAME } from "../std/fit-wildcards.ts";

/** True when a resource fits a pattern, as files do in `.gitignore`; upper and lower case are the same. */
export function isMatchingPattern(resource: string, pattern: string): boolean {
  const [name, wantedName] = [foldCase(resource), foldCase(pattern)];
  const wanted = parsePath(wantedName);
  // A pattern of another kind begins with the kind, and so does all that fits it.
  if (!wanted) return isMatchingWildcards(Array.from(name), Array.from(wantedName), WITHIN_NAME);
  const file = parsePath(name);
  if (!file || (wanted.machine !== undefined && wanted.machine !== file.machine)) return false;
  const segments = splitSegments(wanted.path);
  const isRooted = wanted.path.startsWith("/");
  // An empty pattern is a slip, not every file.
  if (segments.length === 0 && !isRooted) return false;
  return isMatchingWildcards(
    splitSegments(file.path),
    [...(isRooted ? [] : ["**"]), ...segments, "**"],
    ACROSS_FOLDERS,
  );
}

/** A pattern of files that begins at a root. */
export interface RootedPattern {
  /** Absent: of every machine. */
  readonly machine?: string;
  /** The path before the first name with a wildcard. */
  readonly root: string;
  /** The names from there on. */
  readonly rest: readonly string[];
}

/**
 * Splits the pattern of a file into its fixed folder and the names from the first wildcard on; `undefined` for a
 * pattern that is no file's or does not begin at `/` or a drive.
 */
export function splitRootedPattern(pattern: string): RootedPattern | undefined {
  const file = parsePath(pattern);
  if (!file || !/^(?:[a-z]:)?\//iu.test(file.path)) return undefined;
  const names = file.path.split("/");
  const wildcardAt = names.findIndex((name) => /[*?]/u.test(name));
  const rootLength = wildcardAt < 0 ? names.length : wildcardAt;
  const rest = names.slice(rootLength);
  const root = names.slice(0, rootLength).join("/");
  return {
    ...(file.machine !== undefined && { machine: file.machine }),
    root: root === "" ? "/" : root,
    rest,
  };
}

function foldCase(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

/** Parses the name or the path of a file; `undefined` for the name of anything else. */
function parsePath(text: string): NamedFile | undefined {
  return parseFileResource(readResourceKind(text) === undefined ? nameFile(text) : text);
}

function splitSegments(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== ".");
}
