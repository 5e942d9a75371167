/** Owns: maps that keep the newest entries only. */

/**
 * Sets an entry as the newest of a map, which is changed, and deletes the oldest one where there are then more than
 * `max`.
 */
export function rememberNewest<K, V>(entries: Map<K, V>, key: K, value: V, max: number): void {
  entries.delete(key);
  entries.set(key, value);
  const [oldest] = entries.keys();
  if (entries.size > max && oldest !== undefined) entries.delete(oldest);
}
