/** Owns: what the name of a workspace file may be, and the token by which its versions are told apart (RFC 0059). */
import { WORKFLOW_BOUNDS } from "./workflow-bounds.ts";

/** workspace-file.schema.json. The namespace is flat: a slash is a character of the name. */
const PATH = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,255}$/;

/** Returns why the path is not allowed for a file of a workspace; `undefined` when it is. */
export function findWorkspacePathProblem(path: string): string | undefined {
  if (!PATH.test(path))
    return "a path has 1 to 256 letters, digits, dots, underscores, dashes and slashes, and begins with a letter or a digit";
  return path.includes("..") ? "a path has no two dots in a row" : undefined;
}

/**
 * WCT-1: whose files they are. No other tenant reads them, whatever path it knows, and what one scope of a tenant has, no
 * other one does.
 */
export interface WorkspaceScope {
  readonly tenant: string;
  readonly scope: string;
}

/** The content of a file in a workspace. */
export interface WorkspaceContent {
  readonly contentType: string;
  readonly text: string;
}

/** A change of a file in a workspace. */
export interface WorkspaceUpdate {
  readonly at: WorkspaceScope;
  readonly path: string;
  /** `null`: the file is removed. */
  readonly content: WorkspaceContent | null;
  /** ISO 8601. */
  readonly updatedAt: string;
}

/** The version that an update is to become. */
export type PlannedUpdate = WorkspaceUpdate & {
  readonly version: number;
  /** The newest of the scope that the writer knew; 0: none. Another one there by then: `WORKSPACE_CONFLICT`. */
  readonly previous: number;
};

/** The content type of a file that names none. */
export const WORKSPACE_CONTENT_TYPE = "text/markdown";

/**
 * True for the text of a `Content-Type` header: a media type, with or without parameters whose values are not quoted,
 * within the bound of a name.
 */
export function isContentType(value: string): boolean {
  return (
    value.length <= WORKFLOW_BOUNDS.nameCharsMax &&
    /^[\w.+-]+\/[\w.+-]+(\s*;\s*[\w.+-]+=([\w.+-]+|"[\w.+ /:=-]*"))*$/.test(value)
  );
}

/**
 * Returns the ETag of a version of a workspace's file, with its quotes; opaque to clients. `sha256`: of the content,
 * hexadecimal.
 */
export function formatWorkspaceEtag(version: number, sha256: string): string {
  return `"v${version}-${sha256.slice(0, 16)}"`;
}
