/** Owns: the settings that hold under a policy, those in which two policies differ, and whether that is stricter. */
import { TUNABLE } from "../contracts/config/written-settings.ts";
import { readPolicySettings, type PolicySettings } from "../contracts/config/policy-pack.ts";
import type { UnknownRecord } from "../std/is-record.ts";
import { fillAgentEntries } from "./agent-settings.ts";
import { isPathWithin, listSettings, type SettingsByPath } from "./list-settings.ts";
import { compareStrictness, findKeptSettingPath, type Strictness } from "./strictness.ts";

/** One setting that two policies have different values of; `undefined` where none holds. */
export interface ChangedSetting {
  readonly path: string;
  readonly from: unknown;
  readonly to: unknown;
  readonly change: Exclude<Strictness, "same">;
}

/**
 * Lists all settings in which two policies differ, defaults included, by path. Those of an agent differ where something else holds for
 * the agent, whether the policies say it of that agent or of all.
 *
 * @throws CoordinationError `INPUT_INVALID`
 */
export function comparePolicies(from: PolicySettings, to: PolicySettings): ChangedSetting[] {
  const [earlier, later] = [readPolicySettings(from), readPolicySettings(to)];
  const before = listTunableSettings({ ...earlier, ...fillAgentEntries(earlier, later) });
  const after = listTunableSettings({ ...later, ...fillAgentEntries(later, earlier) });
  const paths = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  return paths.flatMap((path) => {
    const change = compareSettingAt(path, before, after);
    return change === "same" ? [] : [{ path, from: before.get(path), to: after.get(path), change }];
  });
}

function compareSettingAt(path: string, before: SettingsByPath, after: SettingsByPath): Strictness {
  const change = compareStrictness(path, before.get(path), after.get(path));
  const name = findKeptSettingPath(path);
  const isKept = name !== undefined && hasSettingWithin(before, name) && hasSettingWithin(after, name);
  return isKept && change !== "same" ? "other" : change;
}

function hasSettingWithin(settings: SettingsByPath, name: string): boolean {
  return [...settings.keys()].some((path) => isPathWithin(path, name));
}

/** Lists all settings that hold under a policy, defaults included. @throws CoordinationError `INPUT_INVALID` */
export function listEffectiveSettings(settings: PolicySettings): SettingsByPath {
  return listTunableSettings(readPolicySettings(settings));
}

function listTunableSettings(phase1: UnknownRecord): SettingsByPath {
  const tunable = Object.fromEntries(TUNABLE.map((name) => [name, phase1[name]]));
  const listed = listSettings(tunable);
  // An empty object says nothing that its absence does not say.
  return new Map([...listed].filter(([, value]) => !isEmptyObject(value)));
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
