/**
 * Owns: workspace files as they lie beside the logs of runs. Every version has a position among all events of the ledger: that
 * of the event that tells of it, or right behind the newest event where no run wrote it.
 */
import { hash } from "node:crypto";
import { CoordinationError, assertInvariant } from "../../../agents/coordination/contracts/errors.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import {
  formatWorkspaceEtag,
  type WorkspaceContent,
  type WorkspaceScope,
  type WorkspaceUpdate,
} from "../../../agents/coordination/contracts/workflows/workspace.ts";
import type {
  WorkspaceAsOf,
  WorkspaceChange,
  WorkspaceEntry,
  WorkspaceListed,
  WorkspaceListing,
  WorkspaceStore,
  WorkspaceVersion,
  WorkspaceWritten,
} from "../../../agents/coordination/ports/workspace-store.ts";
import type { WorkflowAppend } from "../../../agents/coordination/ports/workflow-store.ts";
import { createSchemaStatements } from "../database/schema-statements.ts";
import {
  prepareWorkspaceReads,
  prepareWorkspaceWrites,
  WORKSPACE_SINCE_VERSION,
  type FileRow,
  type HeadRow,
  type WorkspaceReads,
  type WorkspaceWrites,
} from "./workspace-statements.ts";
import type { Group, OpenLedger } from "../database/write-queue.ts";

export interface WorkspaceFiles {
  readonly store: WorkspaceStore;
  /** Why the writes of an append cannot be made; nothing is written. */
  conflict(request: WorkflowAppend): Error | undefined;
  /** Makes them, once the events of the group are there. */
  write(request: WorkflowAppend, runKey: number, group: Group): void;
}

export function createWorkspaceFiles({ database, guarded, queued }: OpenLedger): WorkspaceFiles {
  const reads = createSchemaStatements(database, WORKSPACE_SINCE_VERSION, (version) =>
    version < WORKSPACE_SINCE_VERSION ? undefined : prepareWorkspaceReads(database),
  );
  let writes: WorkspaceWrites | undefined;
  const read = <T>(run: (prepared: WorkspaceReads) => T): Promise<T | undefined> =>
    guarded(() => {
      const prepared = reads();
      return prepared && run(prepared);
    });
  const prepareWritesOnce = (): WorkspaceWrites => (writes ??= prepareWorkspaceWrites(database));
  return {
    store: {
      get: (at, path, query = {}) => read((statements) => find(statements, { ...at, path }, query)),
      list: (at, query = {}) => read((statements) => list(statements, at, query)),
      write: async (change) => {
        let written: WorkspaceWritten | undefined;
        await queued((queue) =>
          queue.submit(({ afterEvents }) => {
            afterEvents.push(() => {
              written = decide(prepareWritesOnce(), change);
            });
            return undefined;
          }),
        );
        assertInvariant(written !== undefined, "a write that was committed was done");
        return written;
      },
    },
    conflict: (request) => conflictOf(prepareWritesOnce, request),
    write: ({ workspace = [] }, runKey, { afterEvents }) => {
      for (const each of workspace) {
        putHead(prepareWritesOnce(), each, each.version);
        afterEvents.push(() => {
          const eventKey = prepareWritesOnce().eventKey.get(runKey, each.sequence);
          assertInvariant(eventKey !== undefined, "the event of a workspace write is there");
          putVersion(prepareWritesOnce(), each, { version: each.version, position: 2 * eventKey, eventKey });
        });
      }
    },
  };
}

type Place = WorkspaceScope & { readonly path: string };

/** Behind everything that is there. */
const NOW = Number.MAX_SAFE_INTEGER;

/** `undefined` for a run that the ledger does not know: it says nothing about any time. */
function positionOf({ position }: WorkspaceReads, asOf: WorkspaceAsOf | undefined): number | undefined {
  return asOf ? position.get({ runId: asOf.runId, sequence: asOf.sequence }) : NOW;
}

function find(
  reads: WorkspaceReads,
  place: Place,
  { version, asOf }: { readonly version?: number; readonly asOf?: WorkspaceAsOf },
): WorkspaceVersion | undefined {
  const before = positionOf(reads, asOf);
  if (before === undefined) return undefined;
  const row =
    version === undefined ? reads.before.get({ ...place, before }) : reads.version.get({ ...place, version });
  if (!row || row.position >= before) return undefined;
  const { path, content } = row;
  if (row.is_removed === 1) return { kind: "removed", path, version: row.version };
  return { kind: "file", ...entryOf(row), ...(content !== null && { content }) };
}

function entryOf({ path, version, content_type, sha256, updated_at }: FileRow): WorkspaceEntry {
  return { path, version, contentType: content_type, sha256, updatedAt: updated_at };
}

function list(
  reads: WorkspaceReads,
  { tenant, scope }: WorkspaceScope,
  { asOf, withRemoved = false, scanMax = WORKFLOW_BOUNDS.workspaceScanMax }: WorkspaceListing,
): readonly WorkspaceListed[] | undefined {
  const before = positionOf(reads, asOf);
  if (before === undefined) return undefined;
  const limit = scanMax + 1;
  const filter = { tenant, scope, before, limit };
  const files = reads.files.all(filter);
  const removed = withRemoved ? reads.removed.all(filter) : [];
  if (files.length === limit || removed.length === limit) return undefined;
  return [...files, ...removed]
    .filter(({ position }) => position < before)
    .map((row): WorkspaceListed => {
      const { path, version } = row;
      return row.is_removed === 1 ? { kind: "removed", path, version } : { kind: "file", ...entryOf(row) };
    })
    .toSorted((one, other) => (one.path < other.path ? -1 : 1));
}

/** Checks that each write has its own `workspace.updated` in the append. */
export function checkWorkspace({ runId, events, workspace = [] }: WorkflowAppend): void {
  const first = events[0]?.sequence ?? 0;
  const sequences = new Set(workspace.map(({ sequence }) => sequence));
  assertInvariant(sequences.size === workspace.length, `two workspace writes of ${runId} name one event`);
  for (const { path, version, sequence } of workspace) {
    const event = events[sequence - first];
    const isTold =
      event?.type === "workspace.updated" && event.payload.path === path && event.payload.version === version;
    assertInvariant(isTold, `no workspace.updated tells of the write at ${runId}:${sequence}`);
  }
}

/** Returns the conflict of a write with the current version. Earlier writes of the same group count as current. */
function conflictOf(prepared: () => WorkspaceWrites, { workspace = [] }: WorkflowAppend): Error | undefined {
  const newest = new Map<string, number>();
  let added = 0;
  for (const { at, path, previous, version } of workspace) {
    const file = JSON.stringify([at.tenant, at.scope, path]);
    const head = prepared().head.get({ ...at, path }) ?? NOTHING;
    const current = newest.get(file) ?? head.version;
    if (current !== previous) return createConflictError(`${path} has version ${current}, not ${previous}`);
    if (!newest.has(file) && head.is_removed === 1) added += 1;
    if (added > 0 && countFiles(prepared(), at) + added > WORKFLOW_BOUNDS.workspaceFilesMax)
      return createConflictError(`there is no room for ${path}`);
    newest.set(file, version);
  }
  return undefined;
}

const NOTHING: HeadRow = { version: 0, is_removed: 1 };

function createConflictError(message: string): Error {
  return new CoordinationError("WORKSPACE_CONFLICT", message);
}

function isThere(head: HeadRow | undefined): head is HeadRow {
  return head?.is_removed === 0;
}

function countFiles({ count }: WorkspaceWrites, { tenant, scope }: WorkspaceScope): number {
  return count.get({ tenant, scope }) ?? 0;
}

function decide(writes: WorkspaceWrites, change: WorkspaceChange): WorkspaceWritten {
  const head = writes.head.get({ ...change.at, path: change.path });
  const refused = refusalOf(writes, change, head);
  if (refused) return refused;
  const version = (head?.version ?? 0) + 1;
  putHead(writes, change, version);
  const position = 2 * (writes.newestEvent.get() ?? 0) + 1;
  const entry = putVersion(writes, change, { version, position, eventKey: null });
  return change.content ? { kind: "written", entry } : { kind: "removed", version };
}

function refusalOf(
  writes: WorkspaceWrites,
  change: WorkspaceChange,
  head: HeadRow | undefined,
): WorkspaceWritten | undefined {
  if (!isMatching(writes, change, head))
    return { kind: "conflict", currentVersion: isThere(head) ? head.version : 0 };
  if (isThere(head)) return undefined;
  if (change.content === null) return { kind: "absent" };
  return countFiles(writes, change.at) >= WORKFLOW_BOUNDS.workspaceFilesMax ? { kind: "full" } : undefined;
}

function isMatching(
  { version }: WorkspaceWrites,
  { at, path, ifMatch }: WorkspaceChange,
  head: HeadRow | undefined,
): boolean {
  if (ifMatch === undefined) return true;
  if (!isThere(head)) return false;
  if (ifMatch === "any") return true;
  const sha256 = version.get({ ...at, path, version: head.version })?.sha256 ?? "";
  return ifMatch.includes(formatWorkspaceEtag(head.version, sha256));
}

function putHead(
  { putHead: put }: WorkspaceWrites,
  { at, path, content }: WorkspaceUpdate,
  version: number,
): void {
  put.run({ ...at, path, version, isRemoved: content ? 0 : 1 });
}

interface NewVersion {
  readonly version: number;
  readonly position: number;
  readonly eventKey: number | null;
}

function putVersion(
  { putVersion: put, endBefore, giveUp }: WorkspaceWrites,
  { at, path, content, updatedAt }: WorkspaceUpdate,
  { version, position, eventKey }: NewVersion,
): WorkspaceEntry {
  const place = { ...at, path };
  const { contentType, text } = content ?? REMOVED;
  const entry = { path, version, contentType, sha256: hash("sha256", text), updatedAt };
  const isRemoved = content ? 0 : 1;
  put.run({
    ...place,
    ...entry,
    position,
    eventKey,
    isRemoved,
    content: content ? text : null,
    hash: hashVersion({ ...place, ...entry, is_removed: isRemoved }),
  });
  endBefore.run({ ...place, version, position });
  giveUp.run({ ...place, version: version - WORKFLOW_BOUNDS.workspaceVersionsMax });
  return entry;
}

const REMOVED: WorkspaceContent = { contentType: "", text: "" };

/** sha256 over all that a reader is given; of the content by its own hash, which stays when the content is given up. */
export function hashVersion({
  tenant,
  scope,
  path,
  version,
  is_removed,
  contentType,
  sha256,
  updatedAt,
}: WorkspaceEntry & WorkspaceScope & { readonly is_removed: number }): Buffer {
  const all = [tenant, scope, path, version, is_removed, contentType, sha256, updatedAt];
  return hash("sha256", JSON.stringify(all), "buffer");
}
