/**
 * Owns: the settings below `coordination.phase1` as they are written, without defaults. Registering the plugin reads them, which must
 * not load a schema; they may be of any shape.
 */
import { isRecord, type UnknownRecord } from "../../std/is-record.ts";
import { mergeObjects } from "../../std/merge-objects.ts";
import { parseHostAgentId } from "../host-agent-id.ts";

/** Sections of `coordination.phase1` that a pack may set. The others say where things are, not how they are ruled. */
export const TUNABLE = [
  "gates",
  "conflicts",
  "lanes",
  "budget",
  "privileges",
  "escalations",
  "escalateMs",
  "stepTimeoutMs",
  "truth",
  "results",
  "chat",
  "compaction",
] as const;

/**
 * Returns the settings written below `coordination.phase1`, unchecked, merged over those of the policy pack that they
 * take into use (or of `pack`). They come as they are without a pack; a pack that is not there adds nothing.
 */
export function readWrittenSettings(pluginConfig: unknown, pack?: string): UnknownRecord {
  const phase1 = readSection(readSection(pluginConfig, "coordination"), "phase1");
  const policies = readSection(phase1, "policies");
  const name = pack ?? policies["default"];
  if (typeof name !== "string") return phase1;
  const settings = Object.entries(readSection(readSection(readSection(policies, "packs"), name), "settings"));
  const tunable = settings.filter(([section]) => TUNABLE.some((wanted) => wanted === section));
  return mergeObjects(normalizeAgentIds(Object.fromEntries(tunable)), normalizeAgentIds(phase1));
}

/** Sections with rules for single agents. */
const BY_AGENT = ["gates", "budget", "privileges"] as const;

/**
 * Returns a copy of the settings in which the rules for single agents stand under the ids that OpenClaw has for these.
 * So rules for one agent meet when settings are merged. The first of two spellings of one agent counts, as elsewhere.
 */
export function normalizeAgentIds<Settings extends UnknownRecord>(settings: Settings): Settings {
  const sections = BY_AGENT.map((name) => [name, readSection(settings, name)] as const);
  const named = sections.flatMap(([name, section]) => {
    const { agents } = section;
    return isRecord(agents) ? [[name, { ...section, agents: normalizeAgentKeys(agents) }] as const] : [];
  });
  return { ...settings, ...Object.fromEntries(named) };
}

/** Spells the ids of agents as OpenClaw does. The first of two spellings of one id counts. */
function normalizeAgentKeys(agents: UnknownRecord): UnknownRecord {
  const entries = new Map<string, unknown>();
  for (const [spelling, entry] of Object.entries(agents)) {
    const id = parseHostAgentId(spelling);
    if (!entries.has(id)) entries.set(id, entry);
  }
  return Object.fromEntries(entries);
}

const OF_AGENT = /^(?<section>(?:gates|budget|privileges)\.agents)\.(?<agent>[^.]+)/u;

/**
 * Returns the path of a setting with the agent's id as OpenClaw has it; unchanged where the setting is no rule for one
 * agent.
 */
export function normalizeAgentInPath(path: string): string {
  return path.replace(
    OF_AGENT,
    (_, section: string, spelling: string) => `${section}.${parseHostAgentId(spelling)}`,
  );
}

/**
 * Lists, each once, the names of the policy packs that rules of the plugin's configuration assign to single agents,
 * channels or sessions; unchecked.
 */
export function listRuledPacks(pluginConfig: unknown): readonly string[] {
  const policies = readSection(readSection(readSection(pluginConfig, "coordination"), "phase1"), "policies");
  const { rules } = policies;
  const names = Array.isArray(rules) ? rules.map((rule) => (isRecord(rule) ? rule["pack"] : undefined)) : [];
  return [...new Set(names.filter((name) => typeof name === "string"))];
}

/** Returns the object in a property of another one; a new empty one where there is none. */
export function readSection(object: unknown, name: string): UnknownRecord {
  const section = isRecord(object) && Object.hasOwn(object, name) ? object[name] : undefined;
  return isRecord(section) ? section : {};
}
