/**
 * Owns: the hooks of all plugins of this process, on `globalThis`. Each plugin has its own copy of this file, maybe of another
 * version, and the host loads each plugin more than once: what lies there is the protocol between the copies.
 *
 * K1 Of one plugin the newest registration counts. One that is taken back brings the one before it back, so that an instance
 *    which the host drops late takes nothing away from the others.
 * K2 Who disables an instance disables those before it, and never a newer one.
 * K3 A plugin whose last instance ended by a reload is remembered: for `reloadMs` its gates wait for the next one, and until
 *    `gatesClosedMs` they let nothing through, instead of being open meanwhile. Questions and events for it wait until then. Not so
 *    where any instance of it was disabled and none was registered since: the host disables a plugin once, and tells the
 *    instances that are left of a reload.
 */
import { HOOK_LIMITS } from "./hook-limits.ts";

/** Version of an entry. `version`, `pluginId` and `kinds` mean the same in every version. */
export const HOOKS_VERSION = 1;

/** A hook as it is kept, in whatever copy of this module it was registered. */
export interface StoredHook {
  /** Called with what the hook is given; answers whatever the author's code answers. */
  readonly run: (...args: readonly unknown[]) => unknown;
  readonly priority: number;
  readonly budgetMs?: number;
  readonly agents?: readonly string[];
}

/** All hooks that one instance of a plugin registered. */
export interface HookEntry {
  readonly version: number;
  readonly pluginId: string;
  readonly kinds: readonly string[];
  readonly hooks: Readonly<Record<string, StoredHook>>;
  /** Into the log of the plugin. */
  readonly report: (message: string) => void;
}

/** The registrations of one plugin, each of an instance of it. */
export interface PluginSlot<Entry> {
  /** The newest last. */
  readonly entries: readonly Entry[];
  /** The last one, where the plugin is being loaded again. */
  readonly left?: { readonly entry: Entry; readonly atMs: number } | undefined;
  /** True where the plugin was disabled since the newest of them was registered. */
  readonly isDisabled?: boolean;
}

/** The hooks of one plugin. */
export type HookSlot = PluginSlot<HookEntry>;

/** All plugins with hooks, shared by every copy of this module in the process. */
export interface HookRegistry {
  readonly version: 1;
  readonly slots: Map<string, HookSlot>;
}

/** Why the hooks of an instance ended. */
export type HookEnding = "reloaded" | "withdrawn" | "disabled";

const KEY = Symbol.for("openclaw-coordination.hooks");
/** The global object, where all instances of the plugin find the registry of hooks. */
type HooksHolder = { [KEY]?: HookRegistry | undefined };

/**
 * Returns the hooks that plugins have registered in this process, by the id of the plugin; `undefined` where none ever
 * registered a hook.
 */
export function findHookSlots(): ReadonlyMap<string, HookSlot> | undefined {
  return (globalThis as HooksHolder)[KEY]?.slots;
}

/**
 * Adds a plugin's registration of hooks to the registry of this process, as its newest; the oldest is dropped where
 * the plugin has too many. @throws RangeError where there are too many plugins, Error where another version holds the
 * registry
 */
export function putEntry(entry: HookEntry): void {
  const slots = accessSlots();
  const { entries = [] } = slots.get(entry.pluginId) ?? {};
  if (!slots.has(entry.pluginId) && slots.size >= HOOK_LIMITS.pluginsMax)
    throw new RangeError(`there are ${HOOK_LIMITS.pluginsMax} plugins with hooks already`);
  slots.set(entry.pluginId, { entries: [...entries, entry].slice(-HOOK_LIMITS.registrationsMax) });
}

/**
 * Ends one registration of a plugin's hooks in the registry; all older ones, too, where the plugin was disabled (K2).
 * One that has ended already has only one effect: a disabled plugin is not waited for.
 */
export function endEntry(entry: HookEntry, ending: HookEnding): void {
  const slots = accessSlots();
  const slot = slots.get(entry.pluginId);
  const rest = slot && endInSlot(slot, entry, ending);
  if (rest) slots.set(entry.pluginId, rest);
  else slots.delete(entry.pluginId);
}

/**
 * Returns a plugin's slot without the ended entry (K1 to K3), marked as left when the last one ended by a reload;
 * `undefined` where the plugin is not to be waited for.
 */
export function endInSlot<Entry>(
  slot: PluginSlot<Entry>,
  entry: Entry,
  ending: HookEnding,
): PluginSlot<Entry> | undefined {
  const at = slot.entries.indexOf(entry);
  if (at === -1 && ending !== "disabled") return slot;
  const isDisabled = ending === "disabled" || slot.isDisabled === true;
  const from = ending === "disabled" ? 0 : at;
  const entries = slot.entries.toSpliced(from, at - from + 1);
  if (entries.length > 0) return { entries, isDisabled };
  return ending === "reloaded" && !isDisabled ? { entries, left: { entry, atMs: Date.now() } } : undefined;
}

/**
 * Sets the time at which the plugin's last instance ended, for a clock that is not the machine's; does nothing where
 * the plugin has not left.
 */
export function markPluginLeft(pluginId: string, atMs: number): void {
  const slots = accessSlots();
  const { entries = [], left } = slots.get(pluginId) ?? {};
  if (left) slots.set(pluginId, { entries, left: { ...left, atMs } });
}

/** Removes all hooks that a plugin has registered from the registry of this process, without waiting for its return. */
export function forgetPlugin(pluginId: string): void {
  (globalThis as HooksHolder)[KEY]?.slots.delete(pluginId);
}

/**
 * Returns what plugins have registered, in a registry that the first one makes. @throws Error where another version
 * holds it
 */
function accessSlots(): Map<string, HookSlot> {
  const registry = ((globalThis as HooksHolder)[KEY] ??= { version: 1, slots: new Map() });
  assertVersion(registry, 1);
  return registry.slots;
}

/**
 * Throws where the registry of this process is of another version than the registration: there it would never be
 * asked, and gates would be open. @throws Error
 */
export function assertVersion(registry: { readonly version: number }, version: number): void {
  if (registry.version !== version)
    throw new Error(
      "the coordination plugin and this plugin bring versions of openclaw-coordination that do not fit",
    );
}
