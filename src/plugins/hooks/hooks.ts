/**
 * Owns: registering hooks, for authors of OpenClaw plugins that take part in the coordination of subagents: rule on contested
 * writes, verify results before they count, allow or deny spawns and plans, bring questions to people, and watch.
 *
 * ```ts
 * import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
 * import { registerCoordinationHooks } from "openclaw-coordination/hooks";
 *
 * export default definePluginEntry({
 *   id: "vendor-guard",
 *   name: "Vendor guard",
 *   description: "Nobody takes a file below vendor/ from who holds it.",
 *   register(api) {
 *     registerCoordinationHooks(api, {
 *       arbitrate: ({ resource, names = [] }) =>
 *         [resource, ...names].some((name) => name.includes("/vendor/"))
 *           ? { award: "holder", reason: "Files below vendor/ stay with who holds them." }
 *           : undefined,
 *     });
 *   },
 * });
 * ```
 *
 * It may be called before or after the coordination plugin is loaded, as often as your plugin is loaded, and costs nothing
 * while coordination is off. It needs nothing but this file and its neighbours at run time.
 */
import { followInstance } from "./follow-instance.ts";
import { endEntry, putEntry } from "./hook-registry.ts";
import type { CoordinationHooks, CoordinationHooksApi, HookSettings } from "./hook-types.ts";
import { readRegistration } from "./read-registration.ts";

export type * from "./hook-types.ts";
export type { HookKind } from "./hook-limits.ts";

/**
 * Registers the hooks of a plugin and returns what takes this registration back, so that the one before it counts again. The newest
 * registration of a plugin counts, and each ends with the instance of the plugin that made it. `options` hold for every hook that
 * states none of its own.
 *
 * @throws TypeError where the hooks are none, RangeError where too many plugins have some
 */
export function registerCoordinationHooks(
  api: CoordinationHooksApi,
  hooks: CoordinationHooks,
  options: HookSettings = {},
): () => void {
  const entry = readRegistration(api, hooks, options);
  putEntry(entry);
  const { pluginId } = entry;
  const forget =
    api.lifecycle &&
    followInstance(api.lifecycle, `${pluginId}.coordination-hooks`, (ending) => endEntry(entry, ending));
  return () => {
    endEntry(entry, "withdrawn");
    forget?.();
  };
}
