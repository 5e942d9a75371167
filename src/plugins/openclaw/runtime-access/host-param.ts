/** Owns: the names under which the host's own tools read a parameter. */

/**
 * Returns the parameter of that name in a tool's arguments, as the host reads it; `undefined` where there is none. The
 * host also takes the name in snake case, where the call carries none of the first spelling, not even an empty one.
 */
export function readHostParam(params: unknown, name: string): unknown {
  if (typeof params !== "object" || params === null) return undefined;
  const snakeName = name.replace(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`);
  const spelling = [name, snakeName].find((candidate) => Object.hasOwn(params, candidate));
  return spelling === undefined ? undefined : (params as Readonly<Record<string, unknown>>)[spelling];
}

/**
 * Returns the trimmed text of the parameter of that name in a tool's arguments, as the host reads it; `undefined`
 * where it is blank or no text.
 */
export function readHostTextParam(params: unknown, name: string): string | undefined {
  const value = readHostParam(params, name);
  return typeof value === "string" ? value.trim() || undefined : undefined;
}
