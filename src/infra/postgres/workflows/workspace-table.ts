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
import {
  createWorkspaceVersion,
  findChangeRefusal,
  findWorkspaceConflict,
  listWorkspaceEntries,
  workspaceVersionFromRow,
  type FileRow,
  type WorkspacePlace,
} from "../../ledger/workspace-versions.ts";
import type { GrownLog } from "../database/grow-log.ts";
import type { SendQuery } from "../database/connect.ts";
import {
  countChars,
  formatFileKey,
  formatScopeKey,
  type GroupState,
  type NeededRows,
  type GroupedWrite,
} from "../database/group.ts";
import type { OpenLedger } from "../database/commit-queue.ts";
import { findPosition } from "./find-position.ts";

/**
 * Creates the store of workspace files in a PostgreSQL ledger: reads a file or a listing, as of now or of an event,
 * and writes a change where the expected version is there.
 */
export function createWorkspaceFiles({ database: { query }, guarded, queued }: OpenLedger): WorkspaceStore {
  return {
    get: (at, path, version = {}) => guarded(() => findVersion(query, { ...at, path }, version)),
    list: (at, listing = {}) => guarded(() => listWorkspaceFiles(query, at, listing)),
    write: async (change) => {
      const pending = createChangeWrite(change);
      await queued((queue) => queue.submit(pending.write));
      const written = pending.result();
      assertInvariant(written !== undefined, "a write that was committed was done");
      return written;
    },
  };
}

/**
 * Adds the workspace files that an append writes to `Wanted`, so that their current versions are read before the
 * append is decided.
 */
export function addWantedFiles({ workspace = [] }: WorkflowAppend, { files }: NeededRows): void {
  for (const { at, path } of workspace) files.set(formatFileKey({ ...at, path }), { ...at, path });
}

/**
 * Returns the error of an append whose workspace writes do not follow the current versions, after the writes before it
 * in its group, or find no room; `undefined` without such a conflict. Does not throw.
 */
export function findFilesConflict(
  request: WorkflowAppend,
  { files, fileCounts }: GroupState,
): Error | undefined {
  if (!request.workspace?.length) return undefined;
  return findWorkspaceConflict(request, {
    headOf: (place) => files.get(formatFileKey(place)),
    countFiles: (at) => fileCounts.get(formatScopeKey(at)) ?? 0,
  });
}

/** Adds the workspace writes of an append to the rows that its group will write, each at the position of its event. */
export function addWorkspaceWrites(
  { workspace = [] }: WorkflowAppend,
  { eventKeyOf }: GrownLog,
  group: GroupState,
): void {
  for (const each of workspace) {
    const eventKey = eventKeyOf(each.sequence);
    addVersion(group, each, { version: each.version, position: 2 * eventKey, eventKey });
  }
}

interface NewPlace {
  readonly version: number;
  readonly position: number;
  readonly eventKey: number | null;
}

/** Adds a version of a file to the group, for which it is the newest from then on. */
function addVersion(
  group: GroupState,
  update: WorkspaceUpdate,
  { version, position, eventKey }: NewPlace,
): WorkspaceEntry {
  const place = { ...update.at, path: update.path };
  const created = createWorkspaceVersion(update, version);
  const { isRemoved, entry } = created;
  const key = formatFileKey(place);
  const wasThere = group.files.get(key)?.is_removed === 0 ? 1 : 0;
  const scope = formatScopeKey(place);
  group.rows.versions.push({ place, version: created, position, eventKey });
  group.files.set(key, { version, is_removed: isRemoved, sha256: entry.sha256 });
  group.fileCounts.set(scope, (group.fileCounts.get(scope) ?? 0) + (1 - isRemoved) - wasThere);
  return entry;
}

/**
 * Creates the write of a change and what returns its outcome. One that is lost is decided again on what is there then:
 * it may find itself, as the newest version.
 */
function createChangeWrite(change: WorkspaceChange): {
  readonly write: GroupedWrite;
  readonly result: () => WorkspaceWritten | undefined;
} {
  const place: WorkspacePlace = { ...change.at, path: change.path };
  const key = formatFileKey(place);
  let written: WorkspaceWritten | undefined;
  let lostWrite:
    { readonly version: number; readonly result: WorkspaceWritten; readonly sha256: string } | undefined;
  return {
    result: () => written,
    write: {
      chars: countChars(change),
      want: ({ files }) => {
        files.set(key, place);
      },
      apply: (group) => {
        const head = group.files.get(key);
        if (lostWrite && head?.version === lostWrite.version && head.sha256 === lostWrite.sha256) {
          written = lostWrite.result;
          return undefined;
        }
        written = applyWorkspaceChange(change, group);
        return undefined;
      },
      lose: () => {
        if (written?.kind === "written")
          lostWrite = { version: written.entry.version, sha256: written.entry.sha256, result: written };
        else if (written?.kind === "removed")
          lostWrite = {
            version: written.version,
            sha256: createWorkspaceVersion(change, 1).entry.sha256,
            result: written,
          };
      },
    },
  };
}

/** Adds the version that a change makes to the group, or returns why the change is refused. */
function applyWorkspaceChange(change: WorkspaceChange, group: GroupState): WorkspaceWritten {
  const place = { ...change.at, path: change.path };
  const head = group.files.get(formatFileKey(place));
  const fileCount = group.fileCounts.get(formatScopeKey(place)) ?? 0;
  const refused = findChangeRefusal(change, { head, sha256: head?.sha256 ?? "", fileCount });
  if (refused) return refused;
  const version = (head?.version ?? 0) + 1;
  const position = 2 * group.newest.event + 1;
  const entry = addVersion(group, change, { version, position, eventKey: null });
  return change.content ? { kind: "written", entry } : { kind: "removed", version };
}

const COLUMNS = "path, version, position, is_removed, content_type, sha256, updated_at";

/** Returns a version of a file, or the newest as of a time; `undefined` where it was not there yet. */
async function findVersion(
  query: SendQuery,
  place: WorkspacePlace,
  { version, asOf }: { readonly version?: number; readonly asOf?: WorkspaceAsOf },
): Promise<WorkspaceVersion | undefined> {
  const before = await findPosition(query, asOf);
  if (before === undefined) return undefined;
  const isAsked = version === undefined ? "position < @before" : "version = @version";
  const { tenant, scope, path } = place;
  const values = { tenant, scope, path, ...(version === undefined ? { before } : { version }) };
  const [row] = await query<FileRow & { content: string | null }>(
    `select ${COLUMNS}, content
     from workspace_version
     where tenant = @tenant and scope = @scope and path = @path and ${isAsked}
     order by position desc, version desc
     limit 1`,
    values,
  );
  return row && row.position < before ? workspaceVersionFromRow(row) : undefined;
}

/** Lists the files of a workspace as of a time; `undefined` for an unknown run, and where there are too many. */
async function listWorkspaceFiles(
  query: SendQuery,
  { tenant, scope }: WorkspaceScope,
  { asOf, withRemoved = false, scanMax = WORKFLOW_BOUNDS.workspaceScanMax }: WorkspaceListing,
): Promise<readonly WorkspaceListed[] | undefined> {
  const before = await findPosition(query, asOf);
  if (before === undefined) return undefined;
  const limit = scanMax + 1;
  const listRows = (isRemoved: 0 | 1): Promise<FileRow[]> =>
    query<FileRow>(
      `select ${COLUMNS}
       from workspace_version
       where tenant = @tenant and scope = @scope and is_removed = ${isRemoved} and until_position >= @before
       order by until_position
       limit @limit`,
      { tenant, scope, before, limit },
    );
  const files = await listRows(0);
  const removed = withRemoved ? await listRows(1) : [];
  if (files.length === limit || removed.length === limit) return undefined;
  return listWorkspaceEntries([...files, ...removed], before);
}
