/**
 * Owns: every import from the host. Only `plugin-entry` is loaded with the plugin; the rest is loaded where it is used,
 * so that inspection and a disabled plugin cost nothing.
 */
import type { OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";

export { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
export type { OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";

/** Changing the operator's configuration file, as the host itself does it. */
export const loadConfigMutation = () => import("openclaw/plugin-sdk/config-mutation");

/** Where the host keeps its state. */
export const loadStatePaths = () => import("openclaw/plugin-sdk/state-paths");

// The host does not export its hook types by name; they are read off `api.on`.
declare const _api: OpenClawPluginApi;
type HookName = Parameters<OpenClawPluginApi["on"]>[0];
type HookParameters<K extends HookName> = Parameters<Parameters<typeof _api.on<K>>[1]>;

export type HookEvent<K extends HookName> = HookParameters<K>[0];
export type HookContext<K extends HookName> = HookParameters<K>[1];
export type HookResult<K extends HookName> = Awaited<ReturnType<Parameters<typeof _api.on<K>>[1]>>;
