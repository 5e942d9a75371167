/** Owns: reading JSON of texts that may be none. */

/** Parses JSON; `undefined` where the text is none. */
export function parseJsonOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
