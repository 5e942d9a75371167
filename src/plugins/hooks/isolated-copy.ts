/** Owns: the frozen copies that hooks of plugin authors are given, so that no plugin changes what others see. */

/** Returns a deep copy of plain data that is frozen at every depth. @throws DOMException for what is no data. */
export function copyIsolated<T>(value: T): T {
  const copy = structuredClone(value);
  // With a list of its own instead of recursion: outputs may be nested as deep as a model likes.
  const open: unknown[] = [copy];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== "object" || next === null || Object.isFrozen(next)) continue;
    Object.freeze(next);
    for (const inner of Object.values(next)) open.push(inner);
  }
  return copy;
}
