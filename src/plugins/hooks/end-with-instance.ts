/** Owns: ending the hooks that an instance of a plugin registered when the instance ends. */
import { followInstance } from "./follow-instance.ts";
import { endEntry, type HookEntry } from "./hook-registry.ts";
import type { HooksLifecycle } from "./hook-types.ts";

/** The entries of each instance that is followed. */
const entriesOf = new WeakMap<HooksLifecycle, Set<HookEntry>>();

/** Ends an entry with its instance. Returns what forgets an entry that was taken back. */
export function endWithInstance(lifecycle: HooksLifecycle, entry: HookEntry): () => void {
  const followed = entriesOf.get(lifecycle);
  if (followed) {
    followed.add(entry);
    return () => void followed.delete(entry);
  }
  // The host takes an id once from one instance, so all entries of an instance are ended together.
  const entries = new Set([entry]);
  entriesOf.set(lifecycle, entries);
  followInstance(lifecycle, `${entry.pluginId}.coordination-hooks`, (ending) => {
    // Hooks that are registered in spite of the end are followed anew.
    if (entriesOf.get(lifecycle) === entries) entriesOf.delete(lifecycle);
    for (const each of entries) endEntry(each, ending);
  });
  // The first one stays: by it the registry hears that the plugin was disabled after all.
  return () => undefined;
}
