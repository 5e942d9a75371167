/** Owns: a map in memory that forgets its oldest entries beyond a given number. */

/** A bounded memory of the newest entries: what it forgets must be recoverable elsewhere. */
export interface Recent<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  delete(key: string): void;
  readonly size: number;
}

export function createRecent<V>(entriesMax: number): Recent<V> {
  const entries = new Map<string, V>();
  return {
    get size() {
      return entries.size;
    },
    get: (key) => entries.get(key),
    set: (key, value) => {
      entries.delete(key);
      entries.set(key, value);
      const [oldest] = entries.keys();
      if (entries.size > entriesMax && oldest !== undefined) entries.delete(oldest);
    },
    delete: (key) => {
      entries.delete(key);
    },
  };
}
