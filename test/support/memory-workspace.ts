/** Owns: workspace files in memory, with the meaning of the port. A version is where the events of the ledger were when it came. */
import { hash } from "node:crypto";
import { CoordinationError, assertInvariant } from "../../src/agents/coordination/contracts/errors.ts";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import {
  formatWorkspaceEtag,
  type WorkspaceScope,
  type WorkspaceUpdate,
} from "../../src/agents/coordination/contracts/workflows/workspace.ts";
import type {
  WorkspaceAsOf,
  WorkspaceChange,
  WorkspaceEntry,
  WorkspaceListed,
  WorkspaceStore,
  WorkspaceVersion,
  WorkspaceWritten,
} from "../../src/agents/coordination/ports/workspace-store.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";

export interface KeptVersion {
  readonly at: WorkspaceScope;
  readonly position: number;
  readonly version: WorkspaceVersion;
}

/** Where the events of a run are among all events of the ledger, from 1 on. */
export interface Places {
  of(runId: string): readonly number[];
  newest(): number;
}

type Answer = <T>(run: () => T) => Promise<T>;

export function createMemoryWorkspace(kept: KeptVersion[], places: Places, answer: Answer): WorkspaceStore {
  const versionsOf = (at: WorkspaceScope, asOf: WorkspaceAsOf | undefined): KeptVersion[] => {
    const before = findPositionBefore(places, asOf);
    const isOwn = (each: KeptVersion): boolean =>
      each.at.tenant === at.tenant && each.at.scope === at.scope && each.position < before;
    return kept.filter(isOwn).toSorted((one, other) => one.version.version - other.version.version);
  };
  return {
    get: (at, path, { version, asOf } = {}) =>
      answer(() => {
        const all = versionsOf(at, asOf).map((each) => each.version);
        const versionsOfPath = all.filter((each) => each.path === path);
        const found =
          version === undefined
            ? versionsOfPath.at(-1)
            : versionsOfPath.find((each) => each.version === version);
        const isGone =
          found && newestOf(kept, at, path) - found.version >= WORKFLOW_BOUNDS.workspaceVersionsMax;
        if (!isGone || found.kind === "removed") return found;
        const { content: _, ...rest } = found;
        return rest;
      }),
    list: (at, { asOf, withRemoved = false } = {}) =>
      answer(() => {
        if (asOf && places.of(asOf.runId).length === 0) return undefined;
        const newest = new Map<string, WorkspaceListed>();
        for (const { version } of versionsOf(at, asOf)) newest.set(version.path, describeListed(version));
        return [...newest.values()]
          .filter(({ kind }) => withRemoved || kind === "file")
          .toSorted((one, other) => (one.path < other.path ? -1 : 1));
      }),
    write: (change) => answer(() => decide(kept, places, change)),
  };
}

function describeListed(version: WorkspaceVersion): WorkspaceListed {
  if (version.kind === "removed") return version;
  const { content: _, ...rest } = version;
  return rest;
}

function findPositionBefore(places: Places, asOf: WorkspaceAsOf | undefined): number {
  if (!asOf) return Number.POSITIVE_INFINITY;
  const ownPlaces = places.of(asOf.runId);
  const place = ownPlaces[asOf.sequence];
  return place === undefined ? 2 * (ownPlaces.at(-1) ?? 0) + 1 : 2 * place;
}

function newestOf(kept: readonly KeptVersion[], at: WorkspaceScope, path: string): number {
  return headOf(kept, at, path)?.version ?? 0;
}

function headOf(
  kept: readonly KeptVersion[],
  { tenant, scope }: WorkspaceScope,
  path: string,
): WorkspaceVersion | undefined {
  return kept.findLast(
    ({ at, version }) => at.tenant === tenant && at.scope === scope && version.path === path,
  )?.version;
}

function decide(kept: KeptVersion[], places: Places, change: WorkspaceChange): WorkspaceWritten {
  const { at, path } = change;
  const head = headOf(kept, at, path);
  const refused = refusalOf(kept, change, head?.kind === "file" ? head : undefined);
  if (refused) return refused;
  const version = (head?.version ?? 0) + 1;
  const written = put(kept, change, { version, position: 2 * places.newest() + 1 });
  return written ? { kind: "written", entry: written } : { kind: "removed", version };
}

function refusalOf(
  kept: readonly KeptVersion[],
  { at, content, ifMatch }: WorkspaceChange,
  file: WorkspaceEntry | undefined,
): WorkspaceWritten | undefined {
  if (!isMatching(file, ifMatch)) return { kind: "conflict", currentVersion: file?.version ?? 0 };
  if (file) return undefined;
  if (content === null) return { kind: "absent" };
  return countFiles(kept, at) >= WORKFLOW_BOUNDS.workspaceFilesMax ? { kind: "full" } : undefined;
}

function isMatching(file: WorkspaceEntry | undefined, ifMatch: WorkspaceChange["ifMatch"]): boolean {
  if (ifMatch === undefined) return true;
  return (
    file !== undefined &&
    (ifMatch === "any" || ifMatch.includes(formatWorkspaceEtag(file.version, file.sha256)))
  );
}

function countFiles(kept: readonly KeptVersion[], { tenant, scope }: WorkspaceScope): number {
  const newest = new Map<string, WorkspaceVersion>();
  for (const { at, version } of kept)
    if (at.tenant === tenant && at.scope === scope) newest.set(version.path, version);
  return [...newest.values()].filter(({ kind }) => kind === "file").length;
}

interface NewVersion {
  readonly version: number;
  readonly position: number;
}

function put(
  kept: KeptVersion[],
  { at, path, content, updatedAt }: WorkspaceUpdate,
  { version, position }: NewVersion,
): WorkspaceEntry | undefined {
  if (!content) {
    kept.push({ at, position, version: { kind: "removed", path, version } });
    return undefined;
  }
  const { text, contentType } = content;
  const entry = { path, version, contentType, sha256: hash("sha256", text), updatedAt };
  kept.push({ at, position, version: { kind: "file", ...entry, content: text } });
  return entry;
}

export function checkWorkspace({ runId, events, workspace = [] }: WorkflowAppend): void {
  const eventsBySequence = new Map(events.map((event) => [event.sequence, event]));
  for (const { path, version, sequence } of workspace) {
    const event = eventsBySequence.get(sequence);
    eventsBySequence.delete(sequence);
    assertInvariant(
      event?.type === "workspace.updated" && event.payload.path === path && event.payload.version === version,
      `no workspace.updated tells of the write at ${runId}:${sequence}`,
    );
  }
}

export function findWorkspaceConflict(
  kept: readonly KeptVersion[],
  { workspace = [] }: WorkflowAppend,
): CoordinationError | undefined {
  const newest = new Map<string, number>();
  let added = 0;
  for (const { at, path, previous, version } of workspace) {
    const file = JSON.stringify([at, path]);
    if ((newest.get(file) ?? newestOf(kept, at, path)) !== previous)
      return new CoordinationError("WORKSPACE_CONFLICT", `${path} is not at version ${previous}`);
    if (!newest.has(file) && headOf(kept, at, path)?.kind !== "file") added += 1;
    if (added > 0 && countFiles(kept, at) + added > WORKFLOW_BOUNDS.workspaceFilesMax)
      return new CoordinationError("WORKSPACE_CONFLICT", `there is no room for ${path}`);
    newest.set(file, version);
  }
  return undefined;
}

/** After the events of the append have their places. */
export function writeWorkspace(kept: KeptVersion[], places: Places, append: WorkflowAppend): void {
  for (const { version, sequence, ...change } of append.workspace ?? [])
    put(kept, change, { version, position: 2 * (places.of(append.runId)[sequence] ?? 0) });
}
