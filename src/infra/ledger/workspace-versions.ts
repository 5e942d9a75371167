/** Owns: how a version of a workspace file lies in a row, its hash, and which changes of a file are refused. */
import { hash } from "node:crypto";
import { CoordinationError, assertInvariant } from "../../agents/coordination/contracts/errors.ts";
import { WORKFLOW_BOUNDS } from "../../agents/coordination/contracts/workflows/workflow-bounds.ts";
import {
  formatWorkspaceEtag,
  type WorkspaceContent,
  type WorkspaceScope,
  type WorkspaceUpdate,
} from "../../agents/coordination/contracts/workflows/workspace.ts";
import type { WorkflowAppend } from "../../agents/coordination/ports/workflow-store.ts";
import type {
  WorkspaceChange,
  WorkspaceEntry,
  WorkspaceListed,
  WorkspaceVersion,
  WorkspaceWritten,
} from "../../agents/coordination/ports/workspace-store.ts";

export type WorkspacePlace = WorkspaceScope & { readonly path: string };

export interface FileRow {
  readonly path: string;
  readonly version: number;
  readonly position: number;
  readonly is_removed: number;
  readonly content_type: string;
  readonly sha256: string;
  readonly updated_at: string;
}

export interface HeadRow {
  readonly version: number;
  readonly is_removed: number;
}

/**
 * Returns the version of a workspace file that a row stores, with its content where that is still kept; of a removed
 * file only that it is removed.
 */
export function workspaceVersionFromRow(
  row: FileRow & { readonly content: string | null },
): WorkspaceVersion {
  const { path, version, content } = row;
  if (row.is_removed === 1) return { kind: "removed", path, version };
  return { kind: "file", ...entryFromRow(row), ...(content !== null && { content }) };
}

/**
 * Returns the files of a workspace as of a position, sorted by path, from rows of their newest versions; removed ones
 * are listed as removed, rows behind the position are left out.
 */
export function listWorkspaceEntries(rows: readonly FileRow[], before: number): readonly WorkspaceListed[] {
  return rows
    .filter(({ position }) => position < before)
    .map((row): WorkspaceListed => {
      const { path, version } = row;
      return row.is_removed === 1
        ? { kind: "removed", path, version }
        : { kind: "file", ...entryFromRow(row) };
    })
    .toSorted((one, other) => (one.path < other.path ? -1 : 1));
}

function entryFromRow({ path, version, content_type, sha256, updated_at }: FileRow): WorkspaceEntry {
  return { path, version, contentType: content_type, sha256, updatedAt: updated_at };
}

/**
 * Checks that each workspace write of an append has an event `workspace.updated` of its own in that append. @throws
 * InvariantViolation
 */
export function assertWorkspaceWritesMatchEvents({ runId, events, workspace = [] }: WorkflowAppend): void {
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

/** The files as they are before a write. */
export interface WorkspaceState {
  readonly headOf: (place: WorkspacePlace) => HeadRow | undefined;
  /** How many files are there. */
  readonly countFiles: (at: WorkspaceScope) => number;
}

/**
 * Returns the error of an append whose workspace writes do not follow the current versions of the files, or for which
 * the workspace has no room; `undefined` where they do. Earlier writes of the same append count as current. Does not
 * throw.
 */
export function findWorkspaceConflict(
  { workspace = [] }: WorkflowAppend,
  { headOf, countFiles }: WorkspaceState,
): Error | undefined {
  const newest = new Map<string, number>();
  let added = 0;
  for (const { at, path, previous, version } of workspace) {
    const file = JSON.stringify([at.tenant, at.scope, path]);
    const head = headOf({ ...at, path }) ?? NOTHING;
    const current = newest.get(file) ?? head.version;
    if (current !== previous)
      return createWorkspaceConflictError(`${path} has version ${current}, not ${previous}`);
    if (!newest.has(file) && head.is_removed === 1) added += 1;
    if (added > 0 && countFiles(at) + added > WORKFLOW_BOUNDS.workspaceFilesMax)
      return createWorkspaceConflictError(`there is no room for ${path}`);
    newest.set(file, version);
  }
  return undefined;
}

const NOTHING: HeadRow = { version: 0, is_removed: 1 };

function createWorkspaceConflictError(message: string): Error {
  return new CoordinationError("WORKSPACE_CONFLICT", message);
}

function isFilePresent(head: HeadRow | undefined): head is HeadRow {
  return head?.is_removed === 0;
}

/** The state that a change finds in its place. */
export interface FoundFile {
  readonly head: HeadRow | undefined;
  /** The newest version's hash. */
  readonly sha256: string;
  readonly fileCount: number;
}

/**
 * Returns why a change of a workspace file is refused: another version is there than expected (`conflict`), there is
 * no file to remove (`absent`), or no room (`full`); `undefined` where it is not.
 */
export function findChangeRefusal(change: WorkspaceChange, found: FoundFile): WorkspaceWritten | undefined {
  const { head, fileCount } = found;
  if (!isExpectedVersion(change, found))
    return { kind: "conflict", currentVersion: isFilePresent(head) ? head.version : 0 };
  if (isFilePresent(head)) return undefined;
  if (change.content === null) return { kind: "absent" };
  return fileCount >= WORKFLOW_BOUNDS.workspaceFilesMax ? { kind: "full" } : undefined;
}

/** Returns whether the file is as the change expects it, which may expect nothing. */
function isExpectedVersion({ ifMatch }: WorkspaceChange, { head, sha256 }: FoundFile): boolean {
  if (ifMatch === undefined) return true;
  if (!isFilePresent(head)) return false;
  if (ifMatch === "any") return true;
  return ifMatch.includes(formatWorkspaceEtag(head.version, sha256));
}

const REMOVED: WorkspaceContent = { contentType: "", text: "" };

export interface NewVersion {
  readonly entry: WorkspaceEntry;
  readonly isRemoved: 0 | 1;
  readonly content: string | null;
  readonly hash: Buffer;
}

/**
 * Returns the row of a new version of a workspace file, with its hashes and without its position; without content for
 * a removal.
 */
export function createWorkspaceVersion(
  { at, path, content, updatedAt }: WorkspaceUpdate,
  version: number,
): NewVersion {
  const { contentType, text } = content ?? REMOVED;
  const entry = { path, version, contentType, sha256: hash("sha256", text), updatedAt };
  const isRemoved = content ? 0 : 1;
  return {
    entry,
    isRemoved,
    content: content ? text : null,
    hash: hashWorkspaceVersion({ ...at, ...entry, is_removed: isRemoved }),
  };
}

/**
 * Returns the SHA-256 hash (32 bytes) over all that a reader of a workspace version is given, and the scope that it is
 * in. The content counts by its own hash, which stays when the content is given up.
 */
export function hashWorkspaceVersion({
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
