/**
 * Owns: whether a resource fits a pattern of a policy, in the manner of `.gitignore`. `**` stands for any number of folders, `*`
 * for anything within one name, `?` for one character. A path that does not begin with `/` fits below any folder, and what fits
 * a folder fits all that is in it. A pattern without a kind is one of files. Upper and lower case are the same, because they may be
 * on the file system.
 *
 * Patterns of plans are written by models: the time is at most the product of both lengths.
 */
import { kindOf } from "../contracts/resource-names.ts";

export function isMatchingPattern(resource: string, pattern: string): boolean {
  const { kind, name } = splitKind(foldCase(resource));
  const wanted = splitKind(foldCase(pattern));
  if (wanted.kind !== kind) return false;
  if (kind !== "file") return isFitting(Array.from(name), Array.from(wanted.name), WITHIN_NAME);
  const segments = segmentsOf(wanted.name);
  const isRooted = wanted.name.startsWith("/");
  // An empty pattern is a slip, not every file.
  if (segments.length === 0 && !isRooted) return false;
  return isFitting(segmentsOf(name), [...(isRooted ? [] : ["**"]), ...segments, "**"], ACROSS_FOLDERS);
}

function foldCase(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

interface Wildcard {
  readonly any: string;
  readonly one: (part: string, wanted: string) => boolean;
}

const WITHIN_NAME: Wildcard = { any: "*", one: (part, wanted) => wanted === "?" || part === wanted };
const ACROSS_FOLDERS: Wildcard = {
  any: "**",
  one: (part, wanted) => isFitting(Array.from(part), Array.from(wanted), WITHIN_NAME),
};

/** The last wildcard alone may have to take more: what fitted before it stays fitted. */
function isFitting(parts: readonly string[], wanted: readonly string[], { any, one }: Wildcard): boolean {
  let at = 0;
  let next = 0;
  let resume: { at: number; next: number } | undefined;
  while (at < parts.length) {
    const want = wanted[next];
    if (want === any) {
      resume = { at, next: next + 1 };
      next += 1;
    } else if (want !== undefined && one(parts[at] ?? "", want)) {
      at += 1;
      next += 1;
    } else if (resume) {
      resume = { at: resume.at + 1, next: resume.next };
      ({ at, next } = resume);
    } else return false;
  }
  return wanted.slice(next).every((want) => want === any);
}

function splitKind(name: string): { readonly kind: string; readonly name: string } {
  const kind = kindOf(name);
  return kind === undefined ? { kind: "file", name } : { kind, name: name.slice(kind.length + 1) };
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((segment) => segment !== "" && segment !== ".");
}
