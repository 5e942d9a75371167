/** Owns: finding damage in the files of workspaces. */
import { hash } from "node:crypto";
import type { Report } from "../../ledger/chain-check.ts";
import { hashVersion, type FileRow } from "../../ledger/workspace-versions.ts";
import type { SendQuery } from "../database/connect.ts";
import { readRows } from "./read-rows.ts";

type StoredVersion = FileRow & {
  readonly tenant: string;
  readonly scope: string;
  readonly content: string | null;
  readonly hash: Buffer;
  readonly event_key: number | null;
  readonly run_id: string | null;
  readonly sequence: number | null;
  readonly type: string | null;
  readonly payload: string | null;
};

/** Checks each version by its hash, and that an event records every write of a run, at the place of the write. */
export async function checkVersions(query: SendQuery, report: Report): Promise<void> {
  const rows = readRows<StoredVersion>(
    query,
    `select version.*, run_id, sequence, type, payload
     from workspace_version as version
     left join event using (event_key)
     left join run using (run_key)
     order by version_key`,
  );
  for await (const row of rows) {
    const { path, version } = row;
    if (!isWhole(row))
      report({ kind: "content_changed", message: `version ${version} of ${path} does not match its hash` });
    if (row.event_key === null || isTold(row)) continue;
    const message = `version ${version} of ${path} is not what the event tells of`;
    const place = row.run_id !== null &&
      row.sequence !== null && { runId: row.run_id, sequence: row.sequence };
    report({ kind: "index_differs", message, ...place });
  }
}

function isWhole(row: StoredVersion): boolean {
  const { content, sha256, content_type: contentType, updated_at: updatedAt } = row;
  if (content !== null && hash("sha256", content) !== sha256) return false;
  return hashVersion({ ...row, contentType, updatedAt }).equals(row.hash);
}

function isTold({ type, payload, path, version, position, event_key }: StoredVersion): boolean {
  if (type !== "workspace.updated" || position !== 2 * (event_key ?? 0)) return false;
  try {
    const payloadRead = JSON.parse(payload ?? "") as { readonly path?: unknown; readonly version?: unknown };
    return payloadRead.path === path && payloadRead.version === version;
  } catch {
    return false;
  }
}

/** Checks that each version ends where the next begins, and that the last one is the file as it is now. */
export async function checkOrder(query: SendQuery, report: Report): Promise<void> {
  const rows = readRows<{ path: string; version: number }>(
    query,
    `select stored.path, stored.version
     from workspace_version as stored
     left join workspace_version as next
       on next.tenant = stored.tenant
       and next.scope = stored.scope
       and next.path = stored.path
       and next.version = stored.version + 1
     left join workspace_file as file
       on file.tenant = stored.tenant and file.scope = stored.scope and file.path = stored.path
     where stored.until_position <> coalesce(next.position, 9007199254740991)
       or file.version is null
       or file.version < stored.version
       or (
         next.version is null
         and (file.version <> stored.version or file.is_removed <> stored.is_removed)
       )
     order by stored.version_key`,
  );
  for await (const { path, version } of rows)
    report({ kind: "index_differs", message: `version ${version} of ${path} is not where it belongs` });
}
