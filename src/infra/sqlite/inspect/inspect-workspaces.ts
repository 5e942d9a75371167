/** Owns: finding damage in the files of workspaces. */
import { hash } from "node:crypto";
import type { Database } from "better-sqlite3";
import type { StoredProblem } from "../../../agents/coordination/ports/ledger-store.ts";
import { readSchemaVersion } from "../database/migrate.ts";
import { hashVersion, type FileRow } from "../../ledger/workspace-versions.ts";
import { WORKSPACE_SINCE_VERSION } from "../workflows/workspace-statements.ts";

type Report = (problem: StoredProblem) => void;

export function checkWorkspaces(database: Database, report: Report): void {
  if (readSchemaVersion(database) < WORKSPACE_SINCE_VERSION) return;
  checkVersions(database, report);
  checkEvents(database, report);
  checkOrder(database, report);
}

type StoredVersion = FileRow & {
  readonly tenant: string;
  readonly scope: string;
  readonly content: string | null;
  readonly hash: Buffer;
};

function checkVersions(database: Database, report: Report): void {
  const rows = database
    .prepare<[], StoredVersion>("select * from workspace_version order by version_key")
    .iterate();
  for (const row of rows) {
    const { path, version, content, content_type: contentType, sha256, updated_at: updatedAt } = row;
    const isWhole = content === null || hash("sha256", content) === sha256;
    if (isWhole && hashVersion({ ...row, contentType, updatedAt }).equals(row.hash)) continue;
    report({ kind: "content_changed", message: `version ${version} of ${path} does not match its hash` });
  }
}

/** Checks that an event records every write of a run, at the place of the write. */
function checkEvents(database: Database, report: Report): void {
  const rows = database
    .prepare<[], { path: string; version: number; runId: string; sequence: number }>(
      `select path, version, run_id as runId, sequence
       from workspace_version
       join event using (event_key)
       join run using (run_key)
       where type <> 'workspace.updated'
         or payload ->> 'path' <> path
         or payload ->> 'version' <> version
         or position <> 2 * event_key
       order by version_key`,
    )
    .iterate();
  for (const { path, version, runId, sequence } of rows) {
    const message = `version ${version} of ${path} is not what the event tells of`;
    report({ kind: "index_differs", message, runId, sequence });
  }
}

/** Checks that each version ends where the next begins, and that the last one is the file as it is now. */
function checkOrder(database: Database, report: Report): void {
  const rows = database
    .prepare<[], { path: string; version: number }>(
      `select it.path, it.version
       from workspace_version as it
       left join workspace_version as next
         on next.tenant = it.tenant
         and next.scope = it.scope
         and next.path = it.path
         and next.version = it.version + 1
       left join workspace_file as file
         on file.tenant = it.tenant and file.scope = it.scope and file.path = it.path
       where it.until_position <> coalesce(next.position, 9223372036854775807)
         or file.version is null
         or file.version < it.version
         or (next.version is null and (file.version <> it.version or file.is_removed <> it.is_removed))
       order by it.version_key`,
    )
    .iterate();
  for (const { path, version } of rows)
    report({ kind: "index_differs", message: `version ${version} of ${path} is not where it belongs` });
}
