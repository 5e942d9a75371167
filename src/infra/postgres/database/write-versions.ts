/** Owns: writing versions of workspace files. */
import { WORKFLOW_BOUNDS } from "../../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { SendQuery } from "./connect.ts";
import { formatFileKey, type GroupRows, type WorkspaceRow } from "./group.ts";

/**
 * Sends the statements that store a group's new versions of workspace files, and returns the promise of each; an empty
 * list without any.
 */
export function writeVersions(query: SendQuery, { versions }: GroupRows): Promise<unknown>[] {
  if (versions.length === 0) return [];
  const newest = new Map(versions.map((row) => [formatFileKey(row.place), row]));
  return [
    query(
      `insert into workspace_file (tenant, scope, path, version, is_removed)
       select *
       from unnest(@tenants::text[], @scopes::text[], @paths::text[], @versions::bigint[], @removed::integer[])
       on conflict (tenant, scope, path) do update
       set version = excluded.version, is_removed = excluded.is_removed`,
      {
        ...createPlaceValues([...newest.values()]),
        removed: [...newest.values()].map(({ version }) => version.isRemoved),
      },
    ),
    insertVersions(query, versions),
    query(
      `update workspace_version as version
       set until_position = next.position
       from unnest(
         @tenants::text[], @scopes::text[], @paths::text[], @versions::bigint[], @positions::bigint[]
       ) as next (tenant, scope, path, version, position)
       where version.tenant = next.tenant
         and version.scope = next.scope
         and version.path = next.path
         and version.version = next.version - 1`,
      { ...createPlaceValues(versions), positions: versions.map(({ position }) => position) },
    ),
    query(
      `update workspace_version as version
       set content = null
       from unnest(
         @tenants::text[], @scopes::text[], @paths::text[], @versions::bigint[]
       ) as next (tenant, scope, path, version)
       where version.tenant = next.tenant
         and version.scope = next.scope
         and version.path = next.path
         and version.version = next.version - @kept
         and version.content is not null`,
      { ...createPlaceValues(versions), kept: WORKFLOW_BOUNDS.workspaceVersionsMax },
    ),
  ];
}

function insertVersions(query: SendQuery, versions: readonly WorkspaceRow[]): Promise<unknown> {
  return query(
    `insert into workspace_version (
       tenant, scope, path, version, position, event_key, is_removed, content_type, content, sha256, updated_at, hash
     )
     select *
     from unnest(
       @tenants::text[], @scopes::text[], @paths::text[], @versions::bigint[], @positions::bigint[],
       @eventKeys::bigint[], @removed::integer[], @types::text[], @contents::text[], @sha256s::text[],
       @updated::text[], @hashes::bytea[]
     )`,
    {
      ...createPlaceValues(versions),
      positions: versions.map(({ position }) => position),
      eventKeys: versions.map(({ eventKey }) => eventKey),
      removed: versions.map(({ version }) => version.isRemoved),
      types: versions.map(({ version }) => version.entry.contentType),
      contents: versions.map(({ version }) => version.content),
      sha256s: versions.map(({ version }) => version.entry.sha256),
      updated: versions.map(({ version }) => version.entry.updatedAt),
      hashes: versions.map(({ version }) => version.hash),
    },
  );
}

function createPlaceValues(rows: readonly WorkspaceRow[]) {
  return {
    tenants: rows.map(({ place }) => place.tenant),
    scopes: rows.map(({ place }) => place.scope),
    paths: rows.map(({ place }) => place.path),
    versions: rows.map(({ version }) => version.entry.version),
  };
}
