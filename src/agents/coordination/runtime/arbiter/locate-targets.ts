/** Owns: which resources a call is about. */
import type { Arbitration } from "./arbiter-state.ts";
import type { LocatedTarget } from "./assessed-target.ts";
import type { Participant } from "./participants.ts";
import type { Place, ReadPlace, WriteCall } from "./write-call.ts";
import type { Looked } from "./writes-under-way.ts";

/** Looks at everything that the call would show to its session. */
export async function looksOf(arbiter: Arbitration, reads: readonly ReadPlace[]): Promise<Looked[]> {
  const looks: Looked[] = [];
  for (const place of reads) {
    const resource = "resource" in place ? undefined : await arbiter.files.locate(place.path, place.folder);
    const look = resource === undefined ? undefined : await arbiter.files.look(resource);
    if (resource === undefined || !look || !("version" in look)) continue;
    looks.push({ resource, version: look.version, ...(place.from && { from: place.from }) });
  }
  return looks;
}

export interface Located {
  readonly targets: readonly LocatedTarget[];
  /** A path leads nowhere that could be named. */
  readonly isUnplaced: boolean;
}

/**
 * Locates the targets of a call. Several changes of one resource become one. A file with several hard links is claimed by the
 * name that they share, too: who changes it by one of them changes what is behind the others.
 */
export async function locateTargets(
  arbiter: Arbitration,
  participant: Participant,
  call: WriteCall,
): Promise<Located> {
  const above = listSessionsAbove(participant);
  const targets = new Map<string, LocatedTarget>();
  let isUnplaced = false;
  for (const [index, { at, propose, replaces }] of call.targets.entries()) {
    const resource =
      "resource" in at ? at.resource.toWellFormed() : await arbiter.files.locate(at.path, at.folder);
    if (resource === undefined) isUnplaced = true;
    if (resource === undefined || above.has(resource)) continue;
    const aliases = await listAliases(arbiter, at, resource);
    addTarget(targets, { resource, names: [resource], aliases, index, propose, replaces });
    const shared = await arbiter.files.sharedName(resource);
    if (shared === undefined) continue;
    addTarget(targets, {
      resource: shared,
      names: [resource],
      aliases: [shared, ...aliases],
      index,
      propose: undefined,
      replaces: false,
    });
  }
  // In one order for all, so that two calls never hold each other up.
  return { targets: [...targets.values()].sort((a, b) => (a.resource < b.resource ? -1 : 1)), isUnplaced };
}

/** Telling the session that one works for something is nothing to contend for: the host queues what it is told. */
function listSessionsAbove({ state, stepId }: Participant): ReadonlySet<string> {
  const source = state.steps.get(stepId)?.spec.sourceSession;
  return new Set([state.created.ownerSession, ...(source ? [source] : [])].map((key) => `session:${key}`));
}

/** Lists the name by which a call reaches a file through links. */
async function listAliases({ files }: Arbitration, at: Place, resource: string): Promise<readonly string[]> {
  const spelled = "resource" in at ? undefined : await files.spelledName(at.path, at.folder);
  return spelled === undefined || spelled === resource ? [] : [spelled];
}

function addTarget(targets: Map<string, LocatedTarget>, target: LocatedTarget): void {
  const before = targets.get(target.resource);
  targets.set(target.resource, before ? combineTargets(before, target) : target);
}

function combineTargets(first: LocatedTarget, then: LocatedTarget): LocatedTarget {
  const { propose } = first;
  const { propose: proposeThen } = then;
  const both: LocatedTarget = {
    ...first,
    names: [...new Set([...first.names, ...then.names])],
    aliases: [...new Set([...first.aliases, ...then.aliases])],
    others: [...(first.others ?? []), then.index],
    replaces: first.replaces || then.replaces,
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
