/**
 * Owns: whether a resource fits a pattern of a policy, in the manner of `.gitignore`. `**` stands for any number of folders, `*`
 * for anything within one name, `?` for one character. A path that does not begin with `/` fits below any folder, and what fits
 * a folder fits all that is in it. A pattern without a kind is one of files, and one that names no machine fits the files of
 * every machine. Upper and lower case are the same, because they may be
 * on the file system.
 *
 * Patterns of plans are written by models: the time is at most the product of both lengths.
 */
import { kindOf, nameFile, parseFile } from "../contracts/resource-names.ts";
import { ACROSS_FOLDERS, isFittingAll, WITHIN_NAME } from "../std/fit-wildcards.ts";

export function isMatchingPattern(resource: string, pattern: string): boolean {
  const { kind, name, machine } = splitKind(foldCase(resource));
  const wanted = splitKind(foldCase(pattern));
  if (wanted.kind !== kind || (wanted.machine !== undefined && wanted.machine !== machine)) return false;
  if (kind !== "file") return isFittingAll(Array.from(name), Array.from(wanted.name), WITHIN_NAME);
  const segments = segmentsOf(wanted.name);
  const isRooted = wanted.name.startsWith("/");
  // An empty pattern is a slip, not every file.
  if (segments.length === 0 && !isRooted) return false;
  return isFittingAll(segmentsOf(name), [...(isRooted ? [] : ["**"]), ...segments, "**"], ACROSS_FOLDERS);
}

function foldCase(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

interface Split {
  readonly kind: string;
  readonly name: string;
  /** The machine of a file. */
  readonly machine?: string;
}

function splitKind(text: string): Split {
  const kind = kindOf(text);
  const file = parseFile(kind === undefined ? nameFile(text) : text);
  if (!file) return { kind: kind ?? "", name: text.slice((kind ?? "").length + 1) };
  const { path: name, machine } = file;
  return { kind: "file", name, ...(machine !== undefined && { machine }) };
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== ".");
}
