/**
 * Owns: what a policy pack comes to together with the packs that it extends, and that none of them is laxer where that is forbidden.
 * Does not own: finding them.
 */
import type { PolicyPackFile, PolicySettings } from "../contracts/config/policy-pack.ts";
import { CoordinationError } from "../contracts/errors.ts";
import { mergeObjects } from "../std/merge-objects.ts";
import { findGeneralPath } from "./agent-settings.ts";
import { comparePolicies, listEffectiveSettings, type ChangedSetting } from "./compare-policies.ts";
import { isPathWithin, listSettings } from "./list-settings.ts";

/** A pack and all that it extends, as one. */
export interface PolicyPack {
  readonly name: string;
  readonly version: string;
  readonly description?: string;
  /** `careful 1.0.0`, from the pack itself to the one that extends none. */
  readonly chain: readonly string[];
  readonly locked: readonly string[];
  readonly settings: PolicySettings;
  /** Which pack of the chain said it, by the path of a setting. */
  readonly origins: ReadonlyMap<string, string>;
}

/**
 * Returns the one policy pack that a chain of packs amounts to, the one that extends none first. @throws
 * CoordinationError `INPUT_INVALID` where a setting is not valid, is laxer than a pack before it allows, or is locked
 * and not there
 */
export function combinePacks(files: readonly [PolicyPackFile, ...PolicyPackFile[]]): PolicyPack {
  const [first, ...others] = files;
  assertNoProblem(first, listUnknownLocks(first, first.settings));
  let pack = createBasePack(first);
  for (const file of others) pack = extendPack(pack, file);
  return pack;
}

/**
 * Creates a pack by itself. It may be valid only together with those that it extends: it names their checks, or
 * changes a field of them.
 */
function createBasePack(file: PolicyPackFile): PolicyPack {
  const { name, version, description, settings, locked } = file;
  return {
    name,
    version,
    ...(description !== undefined && { description }),
    chain: [formatPackTitle(file)],
    locked,
    settings,
    origins: new Map(listPaths(settings).map((path) => [path, formatPackTitle(file)])),
  };
}

/**
 * Combines a pack with the one that it extends. Throws where it changes a locked setting without making it stricter,
 * or locks a setting that does not exist.
 */
function extendPack(base: PolicyPack, file: PolicyPackFile): PolicyPack {
  const settings = mergeObjects(base.settings, file.settings);
  const laxer = listLockProblems(base, comparePolicies(base.settings, settings));
  assertNoProblem(file, [...listUnknownLocks(file, settings), ...laxer]);
  const begun = createBasePack(file);
  return {
    ...begun,
    chain: [...begun.chain, ...base.chain],
    locked: [...new Set([...base.locked, ...file.locked])],
    settings,
    origins: new Map([...base.origins, ...begun.origins]),
  };
}

function assertNoProblem(file: PolicyPackFile, problems: readonly string[]): void {
  if (problems.length > 0)
    throw new CoordinationError("INPUT_INVALID", `${formatPackTitle(file)}: ${problems.join("; ")}`);
}

function listUnknownLocks({ locked }: PolicyPackFile, settings: PolicySettings): string[] {
  const paths = [...listEffectiveSettings(settings).keys()];
  const unknown = locked.filter((place) => !paths.some((path) => isPathWithin(path, place)));
  return unknown.map((place) => `locked: there is no setting ${place} that a pack may set`);
}

/** Lists the problems of changes that are not stricter although the extended pack locks their settings. */
function listLockProblems(base: PolicyPack, changes: readonly ChangedSetting[]): string[] {
  const forbidden = changes.filter(({ path, change }) => change !== "stricter" && isLocked(base, path));
  const [extended = base.name] = base.chain;
  return forbidden.map(({ path, from, to, change }) => {
    const why = change === "laxer" ? "is laxer than" : "is another rule than that of";
    return `settings.${path}: ${formatValue(to)} ${why} ${extended}, which has ${formatValue(from)} and locks it`;
  });
}

/** True when a pack locks a setting, for all agents or for one, so that no pack that extends it may make that laxer. */
export function isLocked({ locked }: PolicyPack, path: string): boolean {
  const general = findGeneralPath(path) ?? path;
  return locked.some((place) => isPathWithin(path, place) || isPathWithin(general, place));
}

function listPaths(settings: PolicySettings): string[] {
  return [...listSettings(settings).keys()];
}

function formatPackTitle({ name, version }: PolicyPackFile): string {
  return `${name} ${version}`;
}

function formatValue(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value);
}
