/**
 * Owns: the SQL of workspace files, prepared once per connection and when first needed; and the statement that finds the position of an
 * event, by which memory is read, too, also on schemas without workspaces.
 */
import type { Database, Statement } from "better-sqlite3";
import type { WorkspaceScope } from "../../../agents/coordination/contracts/workflows/workspace.ts";
import { SELECT_POSITION, type AsOf } from "../../ledger/position-sql.ts";
import type { FileRow, HeadRow, WorkspacePlace } from "../../ledger/workspace-versions.ts";

/** The schema that has workspaces. */
export const WORKSPACE_SINCE_VERSION = 6;

/** Finds the position of an event, or the one behind the run's log. */
export type PositionStatement = Statement<[AsOf], number>;

/** Prepares the SQLite statement that reads the ledger position of a run's event. */
export function preparePositionRead(database: Database): PositionStatement {
  return database.prepare<[AsOf], number>(SELECT_POSITION).pluck();
}

/** The parameters of a statement that name a workspace. */
type ScopeParameters = WorkspaceScope;
/** The parameters of a statement that name a file in a workspace. */
type PlaceParameters = WorkspacePlace;

/** The parameters of a statement that lists a part of the files of a workspace. */
type ListingParameters = ScopeParameters & { readonly before: number; readonly limit: number };

/** Not on schemas before `WORKSPACE_SINCE_VERSION`. */
export interface WorkspaceReads {
  readonly position: PositionStatement;
  readonly before: Statement<
    [PlaceParameters & { readonly before: number }],
    FileRow & { content: string | null }
  >;
  readonly version: Statement<
    [PlaceParameters & { readonly version: number }],
    FileRow & { content: string | null }
  >;
  readonly files: Statement<[ListingParameters], FileRow>;
  readonly removed: Statement<[ListingParameters], FileRow>;
}

export interface WorkspaceWrites {
  readonly head: Statement<[PlaceParameters], HeadRow>;
  readonly version: Statement<[PlaceParameters & { readonly version: number }], Pick<FileRow, "sha256">>;
  readonly count: Statement<[ScopeParameters], number>;
  readonly putHead: Statement<[PlaceParameters & { readonly version: number; readonly isRemoved: 0 | 1 }]>;
  /** Also where that event was removed since. */
  readonly newestEvent: Statement<[], number>;
  readonly eventKey: Statement<[runKey: number, sequence: number], number>;
  readonly putVersion: Statement<[VersionValues]>;
  readonly endBefore: Statement<[PlaceParameters & { readonly version: number; readonly position: number }]>;
  readonly giveUp: Statement<[PlaceParameters & { readonly version: number }]>;
}

export interface VersionValues extends PlaceParameters {
  readonly version: number;
  readonly position: number;
  readonly eventKey: number | null;
  readonly isRemoved: 0 | 1;
  readonly contentType: string;
  readonly content: string | null;
  readonly sha256: string;
  readonly updatedAt: string;
  readonly hash: Buffer;
}

const FILE_MATCHES = "tenant = @tenant and scope = @scope and path = @path";
const COLUMNS = "path, version, position, is_removed, content_type, sha256, updated_at";

/** Prepares the SQLite statements that read versions of workspace files, as of now and of a position. */
export function prepareWorkspaceReads(database: Database): WorkspaceReads {
  const list = (isRemoved: 0 | 1): Statement<[ListingParameters], FileRow> =>
    database.prepare<[ListingParameters], FileRow>(
      `select ${COLUMNS}
       from workspace_version
       where tenant = @tenant and scope = @scope and is_removed = ${isRemoved} and until_position >= @before
       order by until_position
       limit @limit`,
    );
  return {
    position: preparePositionRead(database),
    // A version may lie before the one that it replaced, where an older release wrote it after events had been removed.
    before: database.prepare<[PlaceParameters & { before: number }], FileRow & { content: string | null }>(
      `select ${COLUMNS}, content
       from workspace_version
       where ${FILE_MATCHES} and position < @before and until_position >= @before
       order by position desc
       limit 1`,
    ),
    version: database.prepare<[PlaceParameters & { version: number }], FileRow & { content: string | null }>(
      `select ${COLUMNS}, content from workspace_version where ${FILE_MATCHES} and version = @version`,
    ),
    files: list(0),
    removed: list(1),
  };
}

/** Prepares the SQLite statements that check and store versions of workspace files. */
export function prepareWorkspaceWrites(database: Database): WorkspaceWrites {
  return {
    head: database.prepare<[PlaceParameters], HeadRow>(
      `select version, is_removed from workspace_file where ${FILE_MATCHES}`,
    ),
    version: database.prepare<[PlaceParameters & { version: number }], Pick<FileRow, "sha256">>(
      `select sha256 from workspace_version where ${FILE_MATCHES} and version = @version`,
    ),
    count: database
      .prepare<[ScopeParameters], number>(
        "select count(*) from workspace_file where tenant = @tenant and scope = @scope and is_removed = 0",
      )
      .pluck(),
    putHead: database.prepare<[PlaceParameters & { version: number; isRemoved: 0 | 1 }]>(
      `insert into workspace_file (tenant, scope, path, version, is_removed)
       values (@tenant, @scope, @path, @version, @isRemoved)
       on conflict do update set version = excluded.version, is_removed = excluded.is_removed`,
    ),
    newestEvent: database.prepare<[], number>("select seq from sqlite_sequence where name = 'event'").pluck(),
    eventKey: database
      .prepare<[number, number], number>("select event_key from event where run_key = ? and sequence = ?")
      .pluck(),
    ...prepareVersionWrites(database),
  };
}

function prepareVersionWrites(
  database: Database,
): Pick<WorkspaceWrites, "putVersion" | "endBefore" | "giveUp"> {
  return {
    // The later one of two in one transaction may be written first.
    putVersion: database.prepare<[VersionValues]>(
      `insert into workspace_version (
         tenant, scope, path, version, position, until_position, event_key, is_removed,
         content_type, content, sha256, updated_at, hash
       )
       values (
         @tenant, @scope, @path, @version, @position,
         coalesce(
           (select position from workspace_version where ${FILE_MATCHES} and version = @version + 1),
           9223372036854775807
         ),
         @eventKey, @isRemoved, @contentType, @content, @sha256, @updatedAt, @hash
       )`,
    ),
    endBefore: database.prepare<[PlaceParameters & { version: number; position: number }]>(
      `update workspace_version set until_position = @position where ${FILE_MATCHES} and version = @version - 1`,
    ),
    giveUp: database.prepare<[PlaceParameters & { version: number }]>(
      `update workspace_version
       set content = null
       where ${FILE_MATCHES} and version = @version and content is not null`,
    ),
  };
}
