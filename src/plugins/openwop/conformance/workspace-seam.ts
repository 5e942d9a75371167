/** Owns: the seam by which the suite looks at the workspaces of several owners. */
import { z } from "zod";
import { refuse } from "../http/error-map.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import type { Answer, Ask, Route, RouteDependencies } from "../http/route.ts";
import { listFiles, putFile, readFile, readTags, removeFile } from "../routes/workspace-routes.ts";
import { createSeam, record } from "./seam.ts";

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

export const workspaceSeam: Route = createSeam({
  method: "POST",
  path: "/workspace/op",
  operationId: "seamWorkspace",
  summary: "Reads and writes the workspace of an owner that is named.",
  body: opBody,
  answer: record,
  handle: operate,
});

/** An owner of the suite has a place of its own within the tenant that asks: no real tenant's files are reached. */
async function operate(ask: Ask<z.output<typeof opBody>>, { host }: RouteDependencies): Promise<Answer> {
  const { tenant, workspace, op, path, content, contentType, ifMatch, prefix, version } = ask.body;
  const files = host.workspace(ask.caller, JSON.stringify([tenant, workspace]));
  const when = readTags(ifMatch);
  switch (op) {
    case "list":
      return listFiles(files, prefix);
    case "get":
      return readFile(files, path, version);
    case "delete":
      return removeFile(files, path, when);
    case "put":
      if (content === undefined) return refuse("validation_error", "`content` is needed to put a file.");
      return putFile(files, path, { content, ...(contentType !== undefined && { contentType }), ...when });
  }
}
