/** Owns: work that is done when it is first asked for, and not again. */

/**
 * Returns a function that calls `make` at its first call, and returns that value at each call. A `make` that throws, or
 * whose promise rejects, is called again.
 */
export function createOnceLoader<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    if (made) return made.value;
    const value = make();
    made = { value };
    if (value instanceof Promise) {
      value.catch(() => {
        made = undefined;
      });
    }
    return value;
  };
}
