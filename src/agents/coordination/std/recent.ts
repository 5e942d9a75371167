/** Owns: maps that forget their oldest entries beyond a given number. */
import { rememberNewest } from "./remember-newest.ts";

/** A bounded memory of the newest entries: what it forgets must be recoverable elsewhere. */
export interface RecentMap<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  readonly size: number;
}

/** Creates a map of at most so many entries, which forgets the one that was set longest ago. */
export function createRecentMap<V>(entriesMax: number): RecentMap<V> {
  const entries = new Map<string, V>();
  return {
    get size() {
      return entries.size;
    },
    get: (key) => entries.get(key),
    set: (key, value) => {
      rememberNewest(entries, key, value, entriesMax);
    },
    delete: (key) => {
      entries.delete(key);
    },
  };
}
