/** Owns: taking an object of settings apart into single settings, each named by its path. */
import { isRecord } from "../std/is-record.ts";

/** Settings by path, `gates.confidenceThreshold`. A list is one setting; an object is as many as it has. */
export type SettingsByPath = ReadonlyMap<string, unknown>;

/**
 * Returns every setting below `settings` by its path with dots. An empty object is a setting, so that it is not lost.
 */
export function listSettings(settings: Readonly<Record<string, unknown>>): SettingsByPath {
  return new Map(walkSettingsBelow(settings, ""));
}

/** True when the path of a setting is `place` or below it. */
export function isPathWithin(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}.`);
}

function* walkSettingsBelow(value: unknown, path: string): Generator<[string, unknown]> {
  if (value === undefined) return;
  if (!isRecord(value) || (path !== "" && Object.keys(value).length === 0)) {
    yield [path, value];
    return;
  }
  for (const [name, member] of Object.entries(value))
    yield* walkSettingsBelow(member, path === "" ? name : `${path}.${name}`);
}
