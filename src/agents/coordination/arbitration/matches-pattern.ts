/**
 * Owns: whether a resource fits a pattern of a policy, in the manner of `.gitignore`. `**` stands for any number of folders, `*`
 * for anything within one name, `?` for one character. A path that does not begin with `/` fits below any folder, and what fits
 * a folder fits all that is in it. A pattern without a kind is one of files, and one that names no machine fits the files of
 * every machine. Upper and lower case are the same, because they may be
 * on the file system.
 *
 * Patterns of plans are written by models: the time is at most the product of both lengths.
 */
import { kindOf, nameFile, parseFile, type NamedFile } from "../contracts/resource-names.ts";
import { ACROSS_FOLDERS, isFittingAll, WITHIN_NAME } from "../std/fit-wildcards.ts";

export function isMatchingPattern(resource: string, pattern: string): boolean {
  const [name, wantedName] = [foldCase(resource), foldCase(pattern)];
  const wanted = parsePath(wantedName);
  // A pattern of another kind begins with the kind, and so does all that fits it.
  if (!wanted) return isFittingAll(Array.from(name), Array.from(wantedName), WITHIN_NAME);
  const file = parsePath(name);
  if (!file || (wanted.machine !== undefined && wanted.machine !== file.machine)) return false;
  const segments = segmentsOf(wanted.path);
  const isRooted = wanted.path.startsWith("/");
  // An empty pattern is a slip, not every file.
  if (segments.length === 0 && !isRooted) return false;
  return isFittingAll(
    segmentsOf(file.path),
    [...(isRooted ? [] : ["**"]), ...segments, "**"],
    ACROSS_FOLDERS,
  );
}

function foldCase(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

/** Parses the name or the path of a file; `undefined` for the name of anything else. */
function parsePath(text: string): NamedFile | undefined {
  return parseFile(kindOf(text) === undefined ? nameFile(text) : text);
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== ".");
}
