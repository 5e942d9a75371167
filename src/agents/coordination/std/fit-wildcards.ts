/**
 * Owns: matching names and paths with patterns that have wildcards, in time that is at most the product of both lengths: models
 * write patterns, and a regular expression made of one can take for ever.
 */

export interface Wildcard {
  /** Stands for any number of parts. */
  readonly any: string;
  readonly isFit: (part: string, wanted: string) => boolean;
}

/** `*` is any number of characters of a name, `?` one. */
export const WITHIN_NAME: Wildcard = { any: "*", isFit: (part, wanted) => wanted === "?" || part === wanted };

/** `*` is any number of characters, and nothing else stands for another: a session's key may have a question mark. */
export const ANY_CHARACTERS: Wildcard = { any: "*", isFit: (part, wanted) => part === wanted };

/** `**` is any number of folders. */
export const ACROSS_FOLDERS: Wildcard = {
  any: "**",
  isFit: (part, wanted) => isMatchingWildcards(Array.from(part), Array.from(wanted), WITHIN_NAME),
};

/**
 * True where a pattern, the list `wanted`, matches all parts in order; `any` in it stands for any number of parts, and
 * `isFit` compares one part with one wanted. The last wildcard alone may have to take more: what fitted before it
 * stays fitted.
 */
export function isMatchingWildcards(
  parts: readonly string[],
  wanted: readonly string[],
  { any, isFit }: Wildcard,
): boolean {
  let at = 0;
  let next = 0;
  let resume: { at: number; next: number } | undefined;
  while (at < parts.length) {
    const want = wanted[next];
    if (want === any) {
      resume = { at, next: next + 1 };
      next += 1;
    } else if (want !== undefined && isFit(parts[at] ?? "", want)) {
      at += 1;
      next += 1;
    } else if (resume) {
      resume = { at: resume.at + 1, next: resume.next };
      ({ at, next } = resume);
    } else return false;
  }
  return wanted.slice(next).every((want) => want === any);
}
