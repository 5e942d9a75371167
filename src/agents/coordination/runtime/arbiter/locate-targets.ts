/** Owns: which resources a call is about, and by which names others claim them. */
import type { ClaimEntry } from "../../contracts/claim-entry.ts";
import { isFileResource, readResourceKind } from "../../contracts/resource-names.ts";
import type { ResourceFiles } from "../../ports/resource-files.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import type { ArbiterDependencies } from "./arbiter-dependencies.ts";
import type { LocatedTarget } from "./assessed-target.ts";
import type { Participant } from "./participants.ts";
import type { ResourceLocation, ReadPlace, WriteCall, WriteTarget } from "./write-call.ts";
import type { ResourceLook } from "./writes-under-way.ts";

type LocatingDependencies = Pick<ArbiterDependencies, "files">;

/**
 * Returns the version of every file that a tool call would show to its session, as it is before the call. Whatever
 * cannot be located or looked at is left out.
 */
export async function lookAtReadPlaces(
  arbiter: LocatingDependencies,
  reads: readonly ReadPlace[],
): Promise<ResourceLook[]> {
  const looks: ResourceLook[] = [];
  for (const place of reads) {
    const resource = "resource" in place ? undefined : await arbiter.files.locate(place.path, place.folder);
    const look = resource === undefined ? undefined : await arbiter.files.look(resource);
    if (resource === undefined || !look || !("version" in look)) continue;
    looks.push({ resource, version: look.version, ...(place.from && { from: place.from }) });
  }
  return looks;
}

/** The resources that a call would change, and whether one of its paths leads nowhere. */
export interface LocatedTargets {
  readonly targets: readonly LocatedTarget[];
  /** A path leads nowhere that could be named. */
  readonly isUnplaced: boolean;
}

/**
 * Returns the resources that a tool call would change, in one order for all calls, and whether one of its targets
 * could not be located. Several changes of one resource become one. A file with several hard links is claimed by the
 * name that they share, too: who changes it by one of them changes what is behind the others.
 */
export async function locateTargets(
  arbiter: LocatingDependencies,
  participant: Participant,
  call: WriteCall,
): Promise<LocatedTargets> {
  const above = listSessionsAbove(participant);
  const targets = new Map<string, LocatedTarget>();
  let isUnplaced = false;
  for (const [index, target] of call.targets.entries()) {
    const resources = await locateTarget(arbiter.files, target);
    if (!resources) isUnplaced = true;
    for (const resource of resources ?? []) {
      if (above.has(resource)) continue;
      // The text that the call proposes is that of the place which is written.
      const propose = resource === resources?.at(-1) ? target.propose : undefined;
      const names = await listTargetsByName(arbiter, target, { resource, index, propose });
      for (const located of names) addOrCombineTarget(targets, located);
    }
  }
  // In one order for all, so that two calls never hold each other up.
  return { targets: [...targets.values()].sort((a, b) => (a.resource < b.resource ? -1 : 1)), isUnplaced };
}

/**
 * Returns the resources that one target of a call changes: the link at the end of its path where that is removed, and
 * what it leads to where that is written. `undefined` for a path that leads nowhere.
 */
export async function locateTarget(
  files: ResourceFiles,
  { at, ends = ["target"] }: Pick<WriteTarget, "at" | "ends">,
): Promise<readonly string[] | undefined> {
  if ("resource" in at) return [at.resource.toWellFormed()];
  const places = await Promise.all(ends.map((end) => files.locate(at.path, at.folder, end)));
  const located = places.filter((place) => place !== undefined);
  return located.length === places.length ? [...new Set(located)] : undefined;
}

/** Returns a target once as the resource that it is and, where its hard links share a name, once by that name. */
async function listTargetsByName(
  arbiter: LocatingDependencies,
  { at, replaces, ends }: WriteTarget,
  { resource, index, propose }: Pick<LocatedTarget, "resource" | "index" | "propose">,
): Promise<LocatedTarget[]> {
  const aliases = await listAliases(arbiter, at, resource);
  const names = [resource];
  const isRemoved = ends?.includes("entry") === true;
  const plain: LocatedTarget = { resource, names, aliases, index, propose, replaces, isRemoved };
  // Its name leads to something else now.
  if (ends?.some((end) => typeof end === "object")) return [{ ...plain, isBelowRemoved: true }];
  const shared = await arbiter.files.sharedName(resource);
  if (shared === undefined) return [plain];
  const ofAll = { resource: shared, aliases: [shared, ...aliases], propose: undefined, replaces: false };
  return [plain, { names, index, ...ofAll }];
}

/**
 * Lists the sessions that the step works for, as resources. Telling these something is nothing to contend for: the
 * host queues what it is told.
 */
function listSessionsAbove({ state, stepId }: Participant): ReadonlySet<string> {
  const source = state.steps.get(stepId)?.spec.sourceSession;
  return new Set([state.created.ownerSession, ...(source ? [source] : [])].map((key) => `session:${key}`));
}

/** Lists the name by which a call reaches a file through links. */
async function listAliases(
  { files }: LocatingDependencies,
  at: ResourceLocation,
  resource: string,
): Promise<readonly string[]> {
  const spelled = "resource" in at ? undefined : await files.spelledName(at.path, at.folder);
  return spelled === undefined || spelled === resource ? [] : [spelled];
}

function addOrCombineTarget(targets: Map<string, LocatedTarget>, target: LocatedTarget): void {
  const before = targets.get(target.resource);
  targets.set(target.resource, before ? combineTargets(before, target) : target);
}

/** Combines two changes of one resource: the second is made to what the first leaves. */
function combineTargets(first: LocatedTarget, then: LocatedTarget): LocatedTarget {
  const { propose } = first;
  const { propose: proposeThen } = then;
  const both: LocatedTarget = {
    ...first,
    names: [...new Set([...first.names, ...then.names])],
    aliases: [...new Set([...first.aliases, ...then.aliases])],
    others: [...(first.others ?? []), then.index],
    replaces: first.replaces || then.replaces,
    isRemoved: first.isRemoved === true || then.isRemoved === true,
  };
  if (!propose || !proposeThen) return { ...both, propose: undefined };
  return {
    ...both,
    propose: (text) => {
      const proposed = propose(text);
      if (proposed.kind === "fails" || proposed.kind === "untold") return proposed;
      return proposeThen(proposed.kind === "text" ? proposed.text : undefined);
    },
  };
}

/** Lists the paths under which a holder claims a file of several hard links. */
export async function listClaimedLinks(
  { runs, files }: Pick<ArbiterDependencies, "runs" | "files">,
  resource: string,
  { runId, stepId: holder }: Pick<ClaimEntry, "runId" | "stepId">,
): Promise<string[]> {
  if (readResourceKind(resource) !== "hardlink") return [];
  const state = await runs.state(runId).catch(ignoreDamage);
  if (!state || state.kind === "unopened") return [];
  const claimed = [...state.claims.values()].filter(({ stepId }) => stepId === holder);
  const paths = claimed.map((claim) => claim.resource).filter(isFileResource);
  const sharedNames = await Promise.all(paths.map((path) => files.sharedName(path)));
  return paths.filter((_, index) => sharedNames[index] === resource);
}
