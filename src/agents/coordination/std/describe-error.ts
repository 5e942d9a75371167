/** Owns: what whatever was thrown says. */

/** Returns the message of an error, and anything else that was thrown as text. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
