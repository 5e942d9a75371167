/** Owns: reading JSON of texts that may be none. */

/** Returns the value that a text stands for as JSON; `undefined` where the text is no JSON. */
export function parseJsonOrNothing(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
