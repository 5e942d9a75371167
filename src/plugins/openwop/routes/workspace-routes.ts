/** Owns: the routes of workspace files (RFC 0059), and reading and writing them in any workspace. */
import { z } from "zod";
import type {
  NewWorkspaceFile,
  TenantWorkspace,
  FileCondition,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { refuse } from "../http/error-map.ts";
import {
  answerFromOutcome,
  createJsonAnswer,
  defineRoute,
  type RouteAnswer,
  type Route,
} from "../http/route.ts";

const FILES = "/v1/host/workspace/files";

const info = {
  path: z.string(),
  contentType: z.string(),
  version: z.int().min(1),
  etag: z.string(),
  updatedAt: z.string(),
};
const fileSchema = z.strictObject({ ...info, content: z.string() });
const listSchema = z.object({ files: z.array(z.strictObject(info)) });

/** workspace-file-create.schema.json. */
const putBody = z.strictObject({ content: z.string(), contentType: z.string().optional() });

export const workspaceRoutes: readonly Route[] = [
  defineRoute({
    method: "GET",
    path: FILES,
    operationId: "listWorkspaceFiles",
    auth: "bearer",
    status: 200,
    summary: "The files of the workspace, without their contents.",
    answer: listSchema,
    queries: [{ name: "prefix", summary: "How their paths begin.", schema: { type: "string" } }],
    handle: (ask, { host }) => serveFileList(host.workspace(ask.caller), ask.query("prefix")),
  }),
  defineRoute({
    method: "GET",
    path: `${FILES}/{path}`,
    operationId: "getWorkspaceFile",
    auth: "bearer",
    summary: "A file, as it is or as it was.",
    status: 200,
    answer: fileSchema,
    queries: [{ name: "version", summary: "Which of its versions.", schema: { type: "integer" } }],
    handle: (ask, { host }) => {
      const versionGiven = ask.query("version");
      const version = versionGiven === undefined ? undefined : Number(versionGiven);
      if (version !== undefined && !(Number.isSafeInteger(version) && version >= 1))
        return refuse("validation_error", "`version` is a whole number from 1.");
      return serveFile(host.workspace(ask.caller), ask.param("path"), version);
    },
  }),
  defineRoute({
    method: "PUT",
    path: `${FILES}/{path}`,
    operationId: "putWorkspaceFile",
    auth: "bearer",
    summary: "Writes a file as its next version.",
    isTagged: true,
    status: 200,
    body: putBody,
    answer: fileSchema,
    handle: (ask, { host }) => {
      const { content, contentType } = ask.body;
      const type = contentType === undefined ? {} : { contentType };
      const ifMatch = readFileCondition(ask.header("if-match"));
      return storeFile(host.workspace(ask.caller), ask.param("path"), { content, ...type, ...ifMatch });
    },
  }),
  defineRoute({
    method: "DELETE",
    path: `${FILES}/{path}`,
    operationId: "deleteWorkspaceFile",
    auth: "bearer",
    summary: "Removes a file; its versions stay.",
    status: 204,
    answer: z.void(),
    handle: (ask, { host }) =>
      deleteFile(host.workspace(ask.caller), ask.param("path"), readFileCondition(ask.header("if-match"))),
  }),
];

/** Returns the HTTP answer that lists the files of a workspace, or those whose paths begin with `prefix`. */
export async function serveFileList(
  workspace: TenantWorkspace,
  prefix: string | undefined,
): Promise<RouteAnswer> {
  return answerFromOutcome(await workspace.list(prefix === undefined ? {} : { prefix }), (files) =>
    createJsonAnswer(200, { files }),
  );
}

/**
 * Returns the HTTP answer with a file of a workspace in its newest or the given version, with its tag; or the
 * workspace's refusal.
 */
export async function serveFile(
  workspace: TenantWorkspace,
  path: string,
  version?: number,
): Promise<RouteAnswer> {
  return answerFromOutcome(await workspace.read(path, version), createTaggedAnswer);
}

/**
 * Writes a file of a workspace and returns the HTTP answer with its new tag; or the workspace's refusal, as where its
 * condition does not hold.
 */
export async function storeFile(
  workspace: TenantWorkspace,
  path: string,
  file: NewWorkspaceFile,
): Promise<RouteAnswer> {
  return answerFromOutcome(await workspace.write(path, file), createTaggedAnswer);
}

function createTaggedAnswer(file: { readonly etag: string }): RouteAnswer {
  return { ...createJsonAnswer(200, file), headers: { etag: file.etag } };
}

/**
 * Deletes a file of a workspace where the condition holds, and returns the empty HTTP answer; or the workspace's
 * refusal.
 */
export async function deleteFile(
  workspace: TenantWorkspace,
  path: string,
  when: FileCondition,
): Promise<RouteAnswer> {
  return answerFromOutcome(await workspace.remove(path, when), () => ({
    kind: "text",
    status: 204,
    text: null,
    headers: {},
  }));
}

/**
 * Returns the condition on a file's version that an `If-Match` header states; an empty one without the header. A tag
 * without its quotes is accepted; a weak tag fits no file.
 */
export function readFileCondition(ifMatch: string | undefined): FileCondition {
  if (ifMatch === undefined) return {};
  const tags = ifMatch.split(",").map((tag) => tag.trim());
  if (tags.includes("*")) return { ifMatch: "any" };
  return { ifMatch: tags.map((tag) => (/^(W\/)?"/.test(tag) ? tag : `"${tag}"`)) };
}
