/** Owns: the settings that hold under a policy, those in which two policies differ, and whether that is stricter. */
import { TUNABLE } from "../contracts/config/written-settings.ts";
import { readPolicySettings, type PolicySettings } from "../contracts/config/policy-pack.ts";
import { listSettings, type SettingsByPath } from "./list-settings.ts";
import { compareStrictness, type Strictness } from "./strictness.ts";

/** One setting that two policies have different values of; `undefined` where one has none. */
export interface ChangedSetting {
  readonly path: string;
  readonly from: unknown;
  readonly to: unknown;
  readonly change: Exclude<Strictness, "same">;
}

/** Lists all settings in which two policies differ, defaults included, by path. @throws CoordinationError `INPUT_INVALID` */
export function comparePolicies(from: PolicySettings, to: PolicySettings): ChangedSetting[] {
  const before = listEffective(from);
  const after = listEffective(to);
  const paths = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  return paths.flatMap((path) => {
    const change = compareStrictness(path, before.get(path), after.get(path));
    return change === "same" ? [] : [{ path, from: before.get(path), to: after.get(path), change }];
  });
}

/** Lists all settings that hold under a policy, defaults included. @throws CoordinationError `INPUT_INVALID` */
export function listEffective(settings: PolicySettings): SettingsByPath {
  const phase1 = readPolicySettings(settings);
  const tunable = Object.fromEntries(TUNABLE.map((name) => [name, phase1[name]]));
  const listed = listSettings(tunable);
  // An empty object says nothing that its absence does not say.
  return new Map([...listed].filter(([, value]) => !isEmptyObject(value)));
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
