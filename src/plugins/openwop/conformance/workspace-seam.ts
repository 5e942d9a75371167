/** Owns: the seam by which the suite looks at the workspaces of several owners. */
import { z } from "zod";
import { refuse } from "../http/error-map.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import type { RouteAnswer, RouteRequest, Route, RouteDependencies } from "../http/route.ts";
import {
  serveFileList,
  storeFile,
  serveFile,
  readFileCondition,
  deleteFile,
} from "../routes/workspace-routes.ts";
import { createSeamRoute, record } from "./seam.ts";

const text = z.string().max(HTTP_BOUNDS.idCharsMax);
const opBody = z.object({
  tenant: text,
  workspace: text,
  op: z.enum(["list", "get", "put", "delete"]),
  path: z.string().default(""),
  content: z.string().optional(),
  contentType: z.string().optional(),
  ifMatch: z.string().optional(),
  prefix: z.string().optional(),
  version: z.int().min(1).optional(),
});

export const workspaceSeam: Route = createSeamRoute({
  method: "POST",
  path: "/workspace/op",
  operationId: "seamWorkspace",
  summary: "Reads and writes the workspace of an owner that is named.",
  body: opBody,
  answer: record,
  handle: operateOnWorkspace,
});

/**
 * Reads or changes files of the named owner. It has a place of its own within the tenant that asks: no real tenant's
 * files are reached.
 */
async function operateOnWorkspace(
  ask: RouteRequest<z.output<typeof opBody>>,
  { host }: RouteDependencies,
): Promise<RouteAnswer> {
  const { tenant, workspace, op, path, content, contentType, ifMatch, prefix, version } = ask.body;
  const files = host.workspace(ask.caller, JSON.stringify([tenant, workspace]));
  const when = readFileCondition(ifMatch);
  switch (op) {
    case "list":
      return serveFileList(files, prefix);
    case "get":
      return serveFile(files, path, version);
    case "delete":
      return deleteFile(files, path, when);
    case "put":
      if (content === undefined) return refuse("validation_error", "`content` is needed to put a file.");
      return storeFile(files, path, { content, ...(contentType !== undefined && { contentType }), ...when });
  }
}
