/** Owns: work that is done when it is first asked for, and not again. */

/** Returns a function that makes the value with its first call, and returns the same one with each further call. */
export function createOnce<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
