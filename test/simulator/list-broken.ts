/** Owns: listing the problems of a check that are there. */

/** Returns the names of those that are true. */
export function listBroken(broken: Readonly<Record<string, boolean>>): string[] {
  return Object.entries(broken).flatMap(([problem, isSo]) => (isSo ? [problem] : []));
}
