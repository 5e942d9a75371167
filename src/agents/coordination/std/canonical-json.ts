/**
 * Owns: the one text of a JSON value (JCS, RFC 8785): members by the UTF-16 code units of their names, numbers as ECMAScript
 * writes them, no white space. Nothing is normalised. Digests and comparisons are over this text.
 */

/**
 * Formats a value as canonical JSON (RFC 8785), with the members of objects in order; a member that is `undefined` is
 * left out. Values that RFC 8785 refuses have a text too; `findCanonicalProblem` tells.
 */
export function formatCanonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(formatCanonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return formatPrimitive(value);
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${formatCanonicalJson(member)}`);
  return `{${members.join(",")}}`;
}

/** Formats a primitive as JSON writes it; a value that JSON has no text for becomes `null`. */
function formatPrimitive(value: unknown): string {
  return value === undefined ? "null" : JSON.stringify(value);
}

/** Returns why a value has no canonical text by RFC 8785, or `undefined` when it has one. */
export function findCanonicalProblem(value: unknown): string | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : "a text with a lone surrogate";
  if (typeof value === "number") return Number.isFinite(value) ? undefined : "a number that is not finite";
  if (typeof value !== "object" || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const problem = findCanonicalProblem(name) ?? findCanonicalProblem(member);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
