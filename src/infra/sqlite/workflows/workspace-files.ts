/**
 * Owns: workspace files as they lie beside the logs of runs. Every version has a position among all events of the ledger: that
 * of the event that tells of it, or right behind the newest event where no run wrote it.
 */
import { assertInvariant } from "../../../agents/coordination/contracts/errors.ts";
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import type {
  WorkspaceScope,
  WorkspaceUpdate,
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
import { POSITION_NOW } from "../../ledger/position-sql.ts";
import {
  createWorkspaceVersion,
  findChangeRefusal,
  findWorkspaceConflict,
  listWorkspaceEntries,
  workspaceVersionFromRow,
  type WorkspacePlace,
  type WorkspaceState,
} from "../../ledger/workspace-versions.ts";
import { createSchemaStatements } from "../database/schema-statements.ts";
import {
  prepareWorkspaceReads,
  prepareWorkspaceWrites,
  WORKSPACE_SINCE_VERSION,
  type WorkspaceReads,
  type WorkspaceWrites,
} from "./workspace-statements.ts";
import type { OpenLedger } from "../database/write-queue.ts";

export interface WorkspaceFiles {
  readonly store: WorkspaceStore;
  /** Why the writes of an append cannot be made; nothing is written. */
  conflict(request: WorkflowAppend): Error | undefined;
  /** Makes them, once their events are there. */
  write(request: WorkflowAppend, runKey: number): void;
}

/**
 * Creates the store of workspace files in a ledger file, and the functions by which an append checks and makes its
 * workspace writes. In a schema without workspaces `get` and `list` give `undefined`.
 */
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
      get: (at, path, query = {}) => read((statements) => findVersion(statements, { ...at, path }, query)),
      list: (at, query = {}) => read((statements) => listWorkspaceFiles(statements, at, query)),
      write: (change) =>
        queued((queue) => queue.run(() => applyWorkspaceChange(prepareWritesOnce(), change))),
    },
    conflict: (request) =>
      request.workspace?.length
        ? findWorkspaceConflict(request, createWorkspaceState(prepareWritesOnce()))
        : undefined,
    write: ({ workspace = [] }, runKey) => {
      for (const each of workspace) {
        storeFileHead(prepareWritesOnce(), each, each.version);
        const eventKey = prepareWritesOnce().eventKey.get(runKey, each.sequence);
        assertInvariant(eventKey !== undefined, "the event of a workspace write is there");
        storeVersion(prepareWritesOnce(), each, { version: each.version, position: 2 * eventKey, eventKey });
      }
    },
  };
}

function createWorkspaceState({ head, count }: WorkspaceWrites): WorkspaceState {
  return {
    headOf: (place) => head.get(place),
    countFiles: ({ tenant, scope }) => count.get({ tenant, scope }) ?? 0,
  };
}

/**
 * Returns the position that is read as of: behind everything where no event is named. `undefined` for a run that the
 * ledger does not know: it says nothing about any time.
 */
function findPosition({ position }: WorkspaceReads, asOf: WorkspaceAsOf | undefined): number | undefined {
  return asOf ? position.get({ runId: asOf.runId, sequence: asOf.sequence }) : POSITION_NOW;
}

/** Returns a version of a file, or the newest as of a time; `undefined` where it was not there yet. */
function findVersion(
  reads: WorkspaceReads,
  place: WorkspacePlace,
  { version, asOf }: { readonly version?: number; readonly asOf?: WorkspaceAsOf },
): WorkspaceVersion | undefined {
  const before = findPosition(reads, asOf);
  if (before === undefined) return undefined;
  const row =
    version === undefined ? reads.before.get({ ...place, before }) : reads.version.get({ ...place, version });
  return row && row.position < before ? workspaceVersionFromRow(row) : undefined;
}

/** Lists the files of a workspace as of a time; `undefined` for an unknown run, and where there are too many. */
function listWorkspaceFiles(
  reads: WorkspaceReads,
  { tenant, scope }: WorkspaceScope,
  { asOf, withRemoved = false, scanMax = WORKFLOW_BOUNDS.workspaceScanMax }: WorkspaceListing,
): readonly WorkspaceListed[] | undefined {
  const before = findPosition(reads, asOf);
  if (before === undefined) return undefined;
  const limit = scanMax + 1;
  const filter = { tenant, scope, before, limit };
  const files = reads.files.all(filter);
  const removed = withRemoved ? reads.removed.all(filter) : [];
  if (files.length === limit || removed.length === limit) return undefined;
  return listWorkspaceEntries([...files, ...removed], before);
}

/** Writes or removes a file, or returns why the change is refused. */
function applyWorkspaceChange(writes: WorkspaceWrites, change: WorkspaceChange): WorkspaceWritten {
  const { at, path } = change;
  const head = writes.head.get({ ...at, path });
  const sha256 = head && writes.version.get({ ...at, path, version: head.version })?.sha256;
  const fileCount = createWorkspaceState(writes).countFiles(at);
  const refused = findChangeRefusal(change, { head, sha256: sha256 ?? "", fileCount });
  if (refused) return refused;
  const version = (head?.version ?? 0) + 1;
  storeFileHead(writes, change, version);
  const position = 2 * (writes.newestEvent.get() ?? 0) + 1;
  const entry = storeVersion(writes, change, { version, position, eventKey: null });
  return change.content ? { kind: "written", entry } : { kind: "removed", version };
}

function storeFileHead(
  { putHead: put }: WorkspaceWrites,
  { at, path, content }: WorkspaceUpdate,
  version: number,
): void {
  put.run({ ...at, path, version, isRemoved: content ? 0 : 1 });
}

interface NewPlace {
  readonly version: number;
  readonly position: number;
  readonly eventKey: number | null;
}

/** Stores a version, ends the one before it, and gives up the content of one that is too old to be kept. */
function storeVersion(
  { putVersion: put, endBefore, giveUp }: WorkspaceWrites,
  update: WorkspaceUpdate,
  { version, position, eventKey }: NewPlace,
): WorkspaceEntry {
  const { at, path } = update;
  const place = { ...at, path };
  const { entry, ...values } = createWorkspaceVersion(update, version);
  put.run({ ...place, ...entry, ...values, position, eventKey });
  endBefore.run({ ...place, version, position });
  giveUp.run({ ...place, version: version - WORKFLOW_BOUNDS.workspaceVersionsMax });
  return entry;
}
