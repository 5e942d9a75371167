/** Owns: values that all module instances of the plugin in one process share. */

/**
 * Returns the function that answers the value of this process of that name, and creates it where there is none yet.
 * Module instances share nothing else than `globalThis`, where it lies, and it outlives a reload.
 */
export function shareInProcess<T>(name: string, create: () => T): () => T {
  const key = Symbol.for(`openclaw-coordination.${name}`);
  const holder = globalThis as Record<symbol, unknown>;
  return () => (holder[key] ??= create()) as T;
}
