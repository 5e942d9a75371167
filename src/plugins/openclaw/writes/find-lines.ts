/** Owns: finding a run of lines among lines, in time that grows with both and not with their product. */

/** Finds where `wanted` begins at or after `from`; `several` when it does more than once, overlapping or not. */
export function findOnlyRun(
  lines: readonly string[],
  wanted: readonly string[],
  from: number,
): number | "several" | undefined {
  const fallback = computeFallbacks(wanted);
  let found: number | undefined;
  let matched = 0;
  for (let at = from; at < lines.length; at += 1) {
    while (matched > 0 && lines[at] !== wanted[matched]) matched = fallback[matched - 1] ?? 0;
    if (lines[at] === wanted[matched]) matched += 1;
    if (matched < wanted.length) continue;
    if (found !== undefined) return "several";
    found = at - wanted.length + 1;
    matched = fallback[matched - 1] ?? 0;
  }
  return found;
}

/** Computes, for each prefix of `wanted`, the longest shorter prefix that it ends with (Knuth, Morris and Pratt). */
function computeFallbacks(wanted: readonly string[]): readonly number[] {
  const lengths: number[] = [0];
  let length = 0;
  for (let at = 1; at < wanted.length; at += 1) {
    while (length > 0 && wanted[at] !== wanted[length]) length = lengths[length - 1] ?? 0;
    if (wanted[at] === wanted[length]) length += 1;
    lengths.push(length);
  }
  return lengths;
}
