/** The configuration that a test's gateway runs with. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "./gateway-client.ts";

export type PluginUnderTest =
  | { readonly kind: "path"; readonly dir: string }
  | { readonly kind: "packed"; readonly tarball: string }
  | { readonly kind: "none" };

export type GatewayOptions = {
  readonly modelBaseUrl: string;
  readonly plugin: PluginUnderTest;
  /** Reuses the home of a stopped gateway: its state and config are kept, the options are laid over them. */
  readonly home?: string;
  readonly pluginConfig?: Json;
  /** Further plugin folders; each is enabled under the id of its manifest. */
  readonly extraPluginPaths?: readonly string[];
  /** Merged into the config last: objects are merged deeply, everything else replaces. */
  readonly configPatch?: Json;
  /** The host's default is on. */
  readonly toolSearch?: boolean;
  /** Laid over the environment of the gateway and of its CLI. */
  readonly env?: Readonly<Record<string, string>>;
};

const PLUGIN_ID = "coordination";

type BaseConfigInput = {
  readonly home: string;
  readonly port: number;
  readonly token: string;
  readonly modelBaseUrl: string;
};

export function createBaseConfig({ home, port, token, modelBaseUrl }: BaseConfigInput): Json {
  const model = {
    id: "scripted",
    name: "Scripted",
    reasoning: false,
    input: ["text"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 128_000,
    maxTokens: 8_000,
  };
  const provider = { baseUrl: modelBaseUrl, apiKey: "sk-mock", api: "openai-completions", models: [model] };
  return {
    gateway: { mode: "local", port, bind: "loopback", auth: { mode: "token", token } },
    agents: {
      defaults: {
        model: { primary: "mock/scripted" },
        workspace: join(home, "workspace"),
        skipBootstrap: true,
      },
    },
    models: { mode: "replace", providers: { mock: provider } },
    tools: { profile: "full" },
    // The host looks through all skills after each change of a workspace, which is a tenth of what a test's gateway does.
    skills: { load: { watch: false } },
    logging: { file: join(home, "gateway.log") },
    update: { checkOnStart: false },
  };
}

export function withPlugins(config: Json, options: GatewayOptions): Json {
  const { plugin, pluginConfig, extraPluginPaths = [], toolSearch, configPatch = {} } = options;
  const hooks = { allowConversationAccess: true };
  const paths = [...(plugin.kind === "path" ? [plugin.dir] : []), ...extraPluginPaths];
  const entries: Json = Object.fromEntries(paths.map((dir) => [idOf(dir), { enabled: true, hooks }]));
  if (plugin.kind !== "none") {
    const id = plugin.kind === "path" ? idOf(plugin.dir) : PLUGIN_ID;
    entries[id] = { enabled: true, hooks, ...(pluginConfig ? { config: pluginConfig } : {}) };
  }
  const plugins = { entries, ...(paths.length > 0 ? { load: { paths } } : {}) };
  const tools = toolSearch === undefined ? {} : { tools: { toolSearch } };
  return mergeConfig(mergeConfig(config, { plugins, ...tools }), configPatch);
}

function idOf(dir: string): string {
  return String(readJson(join(dir, "openclaw.plugin.json"))["id"]);
}

/** Merges objects deeply; everything else of the patch replaces. */
export function mergeConfig(base: Json, patch: Json): Json {
  const merged: Json = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    const before = merged[key];
    merged[key] = isObject(before) && isObject(value) ? mergeConfig(before, value) : value;
  }
  return merged;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function readJson(path: string): Json {
  return JSON.parse(readFileSync(path, "utf8")) as Json;
}

/** Whole or not at all: the host watches the file. */
export function writeJson(path: string, value: Json): void {
  const next = `${path}.${process.pid}.next`;
  writeFileSync(next, JSON.stringify(value, null, 2));
  renameSync(next, path);
}
