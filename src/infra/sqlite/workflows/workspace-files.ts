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
  createVersion,
  findRefusal,
  findWorkspaceConflict,
  listWorkspaceRows,
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
      write: (change) => queued((queue) => queue.run(() => decide(prepareWritesOnce(), change))),
    },
    conflict: (request) =>
      request.workspace?.length ? findWorkspaceConflict(request, stateOf(prepareWritesOnce())) : undefined,
    write: ({ workspace = [] }, runKey) => {
      for (const each of workspace) {
        putHead(prepareWritesOnce(), each, each.version);
        const eventKey = prepareWritesOnce().eventKey.get(runKey, each.sequence);
        assertInvariant(eventKey !== undefined, "the event of a workspace write is there");
        putVersion(prepareWritesOnce(), each, { version: each.version, position: 2 * eventKey, eventKey });
      }
    },
  };
}

function stateOf({ head, count }: WorkspaceWrites): WorkspaceState {
  return {
    headOf: (place) => head.get(place),
    countFiles: ({ tenant, scope }) => count.get({ tenant, scope }) ?? 0,
  };
}

/** `undefined` for a run that the ledger does not know: it says nothing about any time. */
function positionOf({ position }: WorkspaceReads, asOf: WorkspaceAsOf | undefined): number | undefined {
  return asOf ? position.get({ runId: asOf.runId, sequence: asOf.sequence }) : POSITION_NOW;
}

function find(
  reads: WorkspaceReads,
  place: WorkspacePlace,
  { version, asOf }: { readonly version?: number; readonly asOf?: WorkspaceAsOf },
): WorkspaceVersion | undefined {
  const before = positionOf(reads, asOf);
  if (before === undefined) return undefined;
  const row =
    version === undefined ? reads.before.get({ ...place, before }) : reads.version.get({ ...place, version });
  return row && row.position < before ? workspaceVersionFromRow(row) : undefined;
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
  return listWorkspaceRows([...files, ...removed], before);
}

function decide(writes: WorkspaceWrites, change: WorkspaceChange): WorkspaceWritten {
  const { at, path } = change;
  const head = writes.head.get({ ...at, path });
  const sha256 = head && writes.version.get({ ...at, path, version: head.version })?.sha256;
  const fileCount = stateOf(writes).countFiles(at);
  const refused = findRefusal(change, { head, sha256: sha256 ?? "", fileCount });
  if (refused) return refused;
  const version = (head?.version ?? 0) + 1;
  putHead(writes, change, version);
  const position = 2 * (writes.newestEvent.get() ?? 0) + 1;
  const entry = putVersion(writes, change, { version, position, eventKey: null });
  return change.content ? { kind: "written", entry } : { kind: "removed", version };
}

function putHead(
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

function putVersion(
  { putVersion: put, endBefore, giveUp }: WorkspaceWrites,
  update: WorkspaceUpdate,
  { version, position, eventKey }: NewPlace,
): WorkspaceEntry {
  const { at, path } = update;
  const place = { ...at, path };
  const { entry, ...values } = createVersion(update, version);
  put.run({ ...place, ...entry, ...values, position, eventKey });
  endBefore.run({ ...place, version, position });
  giveUp.run({ ...place, version: version - WORKFLOW_BOUNDS.workspaceVersionsMax });
  return entry;
}
