/**
 * Owns: the settings below `coordination.phase1` as they are written, without defaults. Registering the plugin reads them, which must
 * not load a schema; they may be of any shape.
 */
import { isRecord, type UnknownRecord } from "../../std/is-record.ts";
import { mergeObjects } from "../../std/merge-objects.ts";

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

/** Returns what the plugin's configuration says, with the policy pack that it goes by below it, or the one that is named. */
export function readWrittenSettings(pluginConfig: unknown, pack?: string): UnknownRecord {
  const phase1 = readSection(readSection(pluginConfig, "coordination"), "phase1");
  const policies = readSection(phase1, "policies");
  const name = pack ?? policies["default"];
  if (typeof name !== "string") return phase1;
  const settings = Object.entries(readSection(readSection(readSection(policies, "packs"), name), "settings"));
  const tunable = settings.filter(([section]) => TUNABLE.some((wanted) => wanted === section));
  return mergeObjects(Object.fromEntries(tunable), phase1);
}

/** Lists the names of packs that hold for the work of single agents, channels or sessions, each once. */
export function listRuledPacks(pluginConfig: unknown): readonly string[] {
  const policies = readSection(readSection(readSection(pluginConfig, "coordination"), "phase1"), "policies");
  const { rules } = policies;
  const names = Array.isArray(rules) ? rules.map((rule) => (isRecord(rule) ? rule["pack"] : undefined)) : [];
  return [...new Set(names.filter((name) => typeof name === "string"))];
}

/** Returns an object within another one; an empty one where there is none. */
export function readSection(object: unknown, name: string): UnknownRecord {
  const section = isRecord(object) && Object.hasOwn(object, name) ? object[name] : undefined;
  return isRecord(section) ? section : {};
}
