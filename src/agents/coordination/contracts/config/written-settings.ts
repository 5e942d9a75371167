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

/** Returns what the plugin's configuration says, with the policy pack that it goes by below it. */
export function readWrittenSettings(pluginConfig: unknown): UnknownRecord {
  const phase1 = readSection(readSection(pluginConfig, "coordination"), "phase1");
  const policies = readSection(phase1, "policies");
  const name = policies["default"];
  if (typeof name !== "string") return phase1;
  const pack = readSection(readSection(policies, "packs"), name);
  const settings = Object.entries(readSection(pack, "settings"));
  const tunable = settings.filter(([section]) => TUNABLE.some((wanted) => wanted === section));
  return mergeObjects(Object.fromEntries(tunable), phase1);
}

/** Returns an object within another one; an empty one where there is none. */
export function readSection(object: unknown, name: string): UnknownRecord {
  const section = isRecord(object) && Object.hasOwn(object, name) ? object[name] : undefined;
  return isRecord(section) ? section : {};
}
