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

/** Calling methods of a running gateway. It takes half a second to load. */
export const loadGatewayRuntime = () => import("openclaw/plugin-sdk/gateway-runtime");

/** In which run the caller is. */
export const loadDiagnostics = () => import("openclaw/plugin-sdk/diagnostic-runtime");

/** Asking people through the host's own approvals. */
export const loadHarness = () => import("openclaw/plugin-sdk/agent-harness-runtime");

export type GatewayRuntime = Awaited<ReturnType<typeof loadGatewayRuntime>>;

type ToolRegistration = Parameters<OpenClawPluginApi["registerTool"]>[0];
type ToolFactory = Extract<ToolRegistration, (ctx: never) => unknown>;
/** A tool as the host registers it. */
type HostTool = Extract<ReturnType<ToolFactory>, { readonly name: string }>;

/** For whom a tool is made. */
export type ToolContext = Parameters<ToolFactory>[0];
export type ToolResult = Awaited<ReturnType<HostTool["execute"]>>;

export type GatewayHandler = Parameters<OpenClawPluginApi["registerGatewayMethod"]>[1];

// The host does not export its hook types by name; they are read off `api.on`.
declare const _api: OpenClawPluginApi;
type HookName = Parameters<OpenClawPluginApi["on"]>[0];
type HookParameters<K extends HookName> = Parameters<Parameters<typeof _api.on<K>>[1]>;

export type HookEvent<K extends HookName> = HookParameters<K>[0];
export type HookContext<K extends HookName> = HookParameters<K>[1];
export type HookResult<K extends HookName> = Awaited<ReturnType<Parameters<typeof _api.on<K>>[1]>>;
