/** Owns: the port to the files of workspaces: every version of each, and what was there before an event of a run. */
import type { CoordinationId } from "../contracts/ids.ts";
import type { PlannedUpdate, WorkspaceScope, WorkspaceUpdate } from "../contracts/workflows/workspace.ts";

/** Before that event of that run. */
export interface WorkspaceAsOf {
  readonly runId: CoordinationId;
  readonly sequence: number;
}

/** A version of a file without its content. */
export interface WorkspaceEntry {
  readonly path: string;
  /** From 1 on, by one with each write and each removal. */
  readonly version: number;
  readonly contentType: string;
  /** The sha256 of the content, hexadecimal. */
  readonly sha256: string;
  /** ISO 8601. */
  readonly updatedAt: string;
}

/** A version of a file in a workspace. */
export type WorkspaceVersion =
  /** `content` is absent where it is not kept any more: so many newer versions are there. */
  | (WorkspaceEntry & { readonly kind: "file"; readonly content?: string })
  | { readonly kind: "removed"; readonly path: string; readonly version: number };

/** Files of tenants, each version of them, and what was there before an event of a run. */
export interface WorkspaceStore {
  /** The newest version, or the asked one, of those that were there. `undefined`: there was none. */
  get(
    at: WorkspaceScope,
    path: string,
    query?: { readonly version?: number; readonly asOf?: WorkspaceAsOf },
  ): Promise<WorkspaceVersion | undefined>;
  /**
   * The files that are there, or were, by path, with those that are removed where `withRemoved` says so. `undefined`: too
   * much has changed since, or the run is not there.
   */
  list(at: WorkspaceScope, query?: WorkspaceListing): Promise<readonly WorkspaceListed[] | undefined>;
  /** Decided and written in one transaction: of two who write at the same time one is the second. */
  write(change: WorkspaceChange): Promise<WorkspaceWritten>;
}

/** Which files a listing returns. */
export interface WorkspaceListing {
  readonly asOf?: WorkspaceAsOf;
  readonly withRemoved?: boolean;
  /** Versions that are looked at, at most; absent: the bound of that name. */
  readonly scanMax?: number;
}

/** A file of a listing, or that it was removed. */
export type WorkspaceListed =
  | (WorkspaceEntry & { readonly kind: "file" })
  | { readonly kind: "removed"; readonly path: string; readonly version: number };

/** A change of a file, with the versions that it may replace. */
export type WorkspaceChange = WorkspaceUpdate & {
  /** Tags of which the file must have one, or `any` where it must exist; absent: the write does not depend on it. */
  readonly ifMatch?: readonly string[] | "any";
};

/** The result of a change of a file. */
export type WorkspaceWritten =
  | { readonly kind: "written"; readonly entry: WorkspaceEntry }
  | { readonly kind: "removed"; readonly version: number }
  /** 0: there is no file. */
  | { readonly kind: "conflict"; readonly currentVersion: number }
  | { readonly kind: "absent" }
  /** No further file has room. */
  | { readonly kind: "full" };

/** A file that a run writes, in one transaction with the event that tells of it: its `workspace.updated`. */
export type WorkspaceWrite = PlannedUpdate & { readonly sequence: number };
