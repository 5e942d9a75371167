/** Owns: what the clients of a tenant do with its workspace (RFC 0059), without HTTP. */
import { formatTimestamp } from "../../../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import {
  isContentType,
  formatWorkspaceEtag,
  WORKSPACE_CONTENT_TYPE,
  findWorkspacePathProblem,
  type WorkspaceContent,
  type WorkspaceScope,
} from "../../../contracts/workflows/workspace.ts";
import type { WorkspaceEntry, WorkspaceWritten } from "../../../ports/workspace-store.ts";
import { refuse } from "../records/refuse.ts";
import { maskText } from "../records/mask-secrets.ts";
import type {
  HostAnswer,
  HostRefusal,
  NewWorkspaceFile,
  TenantWorkspace,
  WorkspaceFile,
  WorkspaceFileInfo,
} from "../records/workflow-host.ts";
import type { WorkspaceDependencies } from "../records/run-workspace.ts";

/** Creates the access of clients to the files of one workspace: to list, read, write and remove them. */
export function createTenantWorkspace(
  dependencies: WorkspaceDependencies,
  at: WorkspaceScope,
): TenantWorkspace {
  return {
    list: ({ prefix = "" }) => listTenantFiles(dependencies, at, prefix),
    read: (path, version) => readTenantFile(dependencies, { at, path }, version),
    write: (path, file) => writeTenantFile(dependencies, { at, path }, file),
    remove: (path, { ifMatch }) => removeTenantFile(dependencies, { at, path }, ifMatch),
  };
}

/** A file of a workspace, by its path. */
interface WorkspacePath {
  readonly at: WorkspaceScope;
  readonly path: string;
}

async function listTenantFiles(
  { store }: WorkspaceDependencies,
  at: WorkspaceScope,
  prefix: string,
): Promise<HostAnswer<readonly WorkspaceFileInfo[]>> {
  const listed = (await store.workspace.list(at)) ?? [];
  const files = listed.flatMap((each) =>
    each.kind === "file" && each.path.startsWith(prefix) ? [createFileInfo(each)] : [],
  );
  return { kind: "done", value: files };
}

async function readTenantFile(
  { store }: WorkspaceDependencies,
  { at, path }: WorkspacePath,
  version: number | undefined,
): Promise<HostAnswer<WorkspaceFile>> {
  const invalid = refuseInvalidPath(path);
  if (invalid) return invalid;
  const found = await store.workspace.get(at, path, version === undefined ? {} : { version });
  if (found?.kind !== "file" || found.content === undefined) return refuseUnknownFile(path, version);
  return { kind: "done", value: { ...createFileInfo(found), content: found.content } };
}

async function writeTenantFile(
  { store, clock, secrets }: WorkspaceDependencies,
  { at, path }: WorkspacePath,
  { content: contentGiven, contentType = WORKSPACE_CONTENT_TYPE, ifMatch }: NewWorkspaceFile,
): Promise<HostAnswer<WorkspaceFile>> {
  const invalid =
    refuseInvalidPath(path) ?? refuseInvalidType(contentType) ?? refuseInvalidText(contentGiven);
  if (invalid) return invalid;
  const text = maskText(contentGiven, secrets);
  if (isTooLarge(contentGiven) || isTooLarge(text)) return TOO_LARGE;
  const content: WorkspaceContent = { contentType, text };
  const updatedAt = formatTimestamp(clock.now());
  const written = await store.workspace.write({ at, path, content, updatedAt, ...(ifMatch && { ifMatch }) });
  if (written.kind !== "written") return createWriteRefusal(path, written);
  return { kind: "done", value: { ...createFileInfo(written.entry), content: text } };
}

async function removeTenantFile(
  { store, clock }: WorkspaceDependencies,
  { at, path }: WorkspacePath,
  ifMatch: NewWorkspaceFile["ifMatch"],
): Promise<HostAnswer<{ readonly version: number }>> {
  const invalid = refuseInvalidPath(path);
  if (invalid) return invalid;
  const updatedAt = formatTimestamp(clock.now());
  const change = { at, path, content: null, updatedAt, ...(ifMatch && { ifMatch }) };
  const written = await store.workspace.write(change);
  if (written.kind !== "removed") return createWriteRefusal(path, written);
  return { kind: "done", value: { version: written.version } };
}

function createFileInfo({
  path,
  version,
  contentType,
  sha256,
  updatedAt,
}: WorkspaceEntry): WorkspaceFileInfo {
  return { path, contentType, version, etag: formatWorkspaceEtag(version, sha256), updatedAt };
}

function refuseInvalidPath(path: string): HostRefusal | undefined {
  const problem = findWorkspacePathProblem(path);
  return problem === undefined ? undefined : refuse("validation_error", problem);
}

function refuseInvalidType(contentType: string): HostRefusal | undefined {
  return isContentType(contentType)
    ? undefined
    : refuse("validation_error", "contentType is no media type, such as text/markdown");
}

/** Refuses text that would be read back as something else. */
function refuseInvalidText(text: string): HostRefusal | undefined {
  return text.isWellFormed()
    ? undefined
    : refuse("validation_error", "content is no Unicode text: it has half of a surrogate pair");
}

function refuseUnknownFile(path: string, version?: number): HostRefusal {
  const which = version === undefined ? "" : ` with the version ${version}`;
  return refuse("not_found", `there is no file ${path}${which}`);
}

function isTooLarge(text: string): boolean {
  return new TextEncoder().encode(text).length > WORKFLOW_BOUNDS.workspaceFileBytesMax;
}

const TOO_LARGE = refuse(
  "workspace_too_large",
  `a file has at most ${WORKFLOW_BOUNDS.workspaceFileBytesMax} bytes`,
  { maxFileBytes: WORKFLOW_BOUNDS.workspaceFileBytesMax },
);

function createWriteRefusal(path: string, written: WorkspaceWritten): HostRefusal {
  switch (written.kind) {
    case "conflict": {
      const { currentVersion } = written;
      const message = currentVersion === 0 ? `there is no ${path}` : `${path} has changed since`;
      return refuse("workspace_conflict", message, { currentVersion });
    }
    case "full": {
      const { workspaceFilesMax: maxFiles } = WORKFLOW_BOUNDS;
      return refuse("workspace_too_large", `a workspace has at most ${maxFiles} files`, { maxFiles });
    }
    default:
      return refuseUnknownFile(path);
  }
}
