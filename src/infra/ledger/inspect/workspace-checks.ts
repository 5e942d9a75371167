/** Owns: finding damage in the files of workspaces. */
import { hash } from "node:crypto";
import { hashWorkspaceVersion, type FileRow } from "../workspace-versions.ts";
import { createRowCheck, type RowCheck } from "./row-check.ts";

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
export const VERSION_CHECK = createRowCheck(
  `select version.*, run_id, sequence, type, payload
   from workspace_version as version
   left join event using (event_key)
   left join run using (run_key)
   order by version_key`,
  (row: StoredVersion, report) => {
    const { path, version } = row;
    if (!hasMatchingHashes(row))
      report({ kind: "content_changed", message: `version ${version} of ${path} does not match its hash` });
    if (row.event_key === null || isToldByEvent(row)) return;
    const message = `version ${version} of ${path} is not what the event tells of`;
    const place = row.run_id !== null &&
      row.sequence !== null && { runId: row.run_id, sequence: row.sequence };
    report({ kind: "index_differs", message, ...place });
  },
);

function hasMatchingHashes(row: StoredVersion): boolean {
  const { content, sha256, content_type: contentType, updated_at: updatedAt } = row;
  if (content !== null && hash("sha256", content) !== sha256) return false;
  return hashWorkspaceVersion({ ...row, contentType, updatedAt }).equals(row.hash);
}

/** True where the event records the version, at the position of the event. */
function isToldByEvent({ type, payload, path, version, position, event_key }: StoredVersion): boolean {
  if (type !== "workspace.updated" || position !== 2 * (event_key ?? 0)) return false;
  try {
    const payloadRead = JSON.parse(payload ?? "") as { readonly path?: unknown; readonly version?: unknown };
    return payloadRead.path === path && payloadRead.version === version;
  } catch {
    return false;
  }
}

/**
 * Creates the check that reports a stored version of a workspace file that does not end where the next version begins,
 * or that is the last one and is not the file as it is now. `openEnd`: the SQL of the end of a version that nothing
 * has replaced.
 */
export function createVersionOrderCheck(openEnd: string): RowCheck {
  return createRowCheck(
    `select stored.path, stored.version
     from workspace_version as stored
     left join workspace_version as next
       on next.tenant = stored.tenant
       and next.scope = stored.scope
       and next.path = stored.path
       and next.version = stored.version + 1
     left join workspace_file as file
       on file.tenant = stored.tenant and file.scope = stored.scope and file.path = stored.path
     where stored.until_position <> coalesce(next.position, ${openEnd})
       or file.version is null
       or file.version < stored.version
       or (
         next.version is null
         and (file.version <> stored.version or file.is_removed <> stored.is_removed)
       )
     order by stored.version_key`,
    ({ path, version }: { readonly path: string; readonly version: number }, report) => {
      report({ kind: "index_differs", message: `version ${version} of ${path} is not where it belongs` });
    },
  );
}
