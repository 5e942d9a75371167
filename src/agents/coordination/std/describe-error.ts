/** Owns: what whatever was thrown says. */

/** Returns the message of an error, or anything else that was thrown turned into text. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
