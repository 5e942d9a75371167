/**
 * Owns: the names that the host has for models, folders and levels of thinking, in one form, so that what was asked can be compared
 * with what runs; and for the agent of a spawn that names none.
 */
import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { findAgentEntry } from "../../../agents/coordination/contracts/host-agent-id.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";
import type { OpenClawPluginApi } from "./sdk.ts";
import { readSessionEntry } from "./session-entry.ts";

export interface HostNames {
  /**
   * The model that a spawn of an agent means, by the host's name of it: as `provider/model`, or without the provider where neither
   * the spawn nor an alias says one. A profile is left out.
   */
  modelOf(name: string, agentId: string): string;
  /** The real path of a folder, where `~` is the host's home; the path itself where there is no such folder. */
  folderOf(path: string): string;
  /** How much a session is to think: not at all where its model cannot, whatever its entry says. */
  thinkingOf(session: ThinkingSession): string | undefined;
}

export interface ThinkingSession {
  readonly sessionKey: string;
  readonly agentId: string;
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

interface HostConfig {
  readonly agents?: { readonly defaults?: { readonly models?: Readonly<Record<string, unknown>> } };
  readonly models?: { readonly providers?: Readonly<Record<string, ProviderConfig | undefined>> };
}

interface ProviderConfig {
  readonly models?: readonly { readonly id?: unknown; readonly reasoning?: unknown }[];
}

/**
 * Creates the conversions that bring the host's names of models, folders and levels of thinking into one form, so that
 * they can be compared.
 */
export function createHostNames({ runtime }: OpenClawPluginApi, env: Environment = process.env): HostNames {
  const readConfig = (): HostConfig => runtime.config.current() as HostConfig;
  return {
    modelOf: (written, agentId) => {
      const withoutProfile = removeModelProfile(written.trim());
      const name = findAliasedModel(readConfig(), withoutProfile) ?? withoutProfile;
      const ref = resolveModelName(runtime, name, agentId);
      if (!ref) return name;
      const { provider, model } = ref;
      return name.includes("/") || model.includes("/") ? `${provider}/${model}` : model;
    },
    folderOf: (path) => findRealPath(resolveUserPath(path, env)),
    thinkingOf: ({ sessionKey, agentId, provider = "", model = "" }) => {
      if (isUnthinking(readConfig(), provider, model)) return "off";
      const entry = readSessionEntry(runtime.agent.session, sessionKey, agentId);
      return typeof entry?.thinkingLevel === "string" ? entry.thinkingLevel : undefined;
    },
  };
}

/** Finds whom the host takes for a spawn that names no agent; `undefined`: the agent that spawns. */
export type FindDefaultAgent = (kind: "acp" | "collector", requester: string) => string | undefined;

/**
 * Creates the function that returns the agent that a spawn without one runs, by the host's configuration at each call;
 * `undefined` where that is the agent that spawns.
 */
export function createDefaultAgentFinder({ runtime }: OpenClawPluginApi): FindDefaultAgent {
  return (kind, requester) => {
    const config = runtime.config.current();
    return kind === "acp" ? config.acp?.defaultAgent : findCollectorAgent(config, requester);
  };
}

/** The host's configuration as it is now. */
type CurrentConfig = ReturnType<OpenClawPluginApi["runtime"]["config"]["current"]>;

/**
 * Finds the agent that the host runs for a collector of this requester. The requester's own setting counts before the
 * one for all, also where it is empty.
 */
function findCollectorAgent({ agents, tools }: CurrentConfig, requester: string): string | undefined {
  const entry = findAgentEntry(agents?.entries ?? {}, requester);
  const agentId = readDefaultAgentId(entry?.tools?.swarm) ?? readDefaultAgentId(tools?.swarm);
  return typeof agentId === "string" ? agentId.trim() || undefined : undefined;
}

/** Returns `defaultAgentId` as it is written; `undefined` where the settings are nothing but a switch. */
function readDefaultAgentId(settings: unknown): unknown {
  return isRecord(settings) ? settings["defaultAgentId"] : undefined;
}

interface ModelRef {
  readonly provider: string;
  readonly model: string;
}

/** Asks the host which provider and model a name means; `undefined` for one that the agent may not use. */
function resolveModelName(
  { config, modelConfig }: OpenClawPluginApi["runtime"],
  name: string,
  agentId: string,
): ModelRef | undefined {
  // The host's own types of its config disagree about `undefined`.
  const cfg = config.current() as Parameters<typeof modelConfig.resolveAllowedModelRef>[0]["cfg"];
  const { provider: defaultProvider } = modelConfig.resolveDefaultModelForAgent({ cfg, agentId });
  const resolved = modelConfig.resolveAllowedModelRef({
    cfg,
    catalog: [],
    raw: name,
    defaultProvider,
    agentId,
  });
  return "ref" in resolved ? resolved.ref : undefined;
}

/**
 * Removes the account from `provider/model@profile`. A date or a size behind an `@` stays: it belongs to the model's
 * name.
 */
function removeModelProfile(name: string): string {
  const suffix = /(?<=[^/])@(?!\d{8}(?:@|$)|i?q\d+(?:_[a-z0-9]+)*(?:@|$)|\d+bit(?:@|$))[^/@]+$/iu.exec(name);
  return suffix ? name.slice(0, suffix.index) : name;
}

function findAliasedModel({ agents }: HostConfig, name: string): string | undefined {
  const entries = Object.entries(agents?.defaults?.models ?? {});
  return entries.find(([, entry]) => readModelAlias(entry)?.toLowerCase() === name.toLowerCase())?.[0];
}

function readModelAlias(entry: unknown): string | undefined {
  const { alias } = (entry ?? {}) as { readonly alias?: unknown };
  return typeof alias === "string" ? alias : undefined;
}

/** True when the configuration says that the model cannot think. */
function isUnthinking({ models }: HostConfig, provider: string, model: string): boolean {
  return (
    models?.providers?.[provider]?.models?.some(({ id, reasoning }) => id === model && reasoning === false) ??
    false
  );
}

/**
 * Returns the absolute path, with `~` as the host's home. The host's own `resolvePath` answers nothing once the plugin
 * is registered.
 */
function resolveUserPath(path: string, env: Environment): string {
  return resolve(path.trim().replace(HOME, () => findHostHome(env)));
}

const HOME = /^~(?=$|[\\/])/u;

/** Finds the folder that `~` stands for in the host: `OPENCLAW_HOME`, or else the user's home. */
function findHostHome(env: Environment): string {
  const home = readPathVariable(env["HOME"]) ?? readPathVariable(env["USERPROFILE"]) ?? homedir();
  return (readPathVariable(env["OPENCLAW_HOME"]) ?? home).replace(HOME, () => home);
}

/**
 * Returns the trimmed path of a variable that is set. Some launchers export an unset one as the text `undefined` or
 * `null`.
 */
function readPathVariable(value: string | undefined): string | undefined {
  const trimmed = value?.trim();
  return trimmed && trimmed !== "undefined" && trimmed !== "null" ? trimmed : undefined;
}

/** Resolves symbolic links; returns the path itself where there is no such file or folder. */
function findRealPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
