/** Owns: values that all module instances of the plugin in one process share. */

/**
 * Creates the function that returns this process's one value of that name, which its first call creates. Module
 * instances share nothing else than `globalThis`, where it lies, and it outlives a reload.
 */
export function shareInProcess<T>(name: string, create: () => T): () => T {
  const key = Symbol.for(`openclaw-coordination.${name}`);
  const holder = globalThis as Record<symbol, unknown>;
  return () => (holder[key] ??= create()) as T;
}
