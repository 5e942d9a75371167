/**
 * Owns: nodes that read and write files of the workspace (RFC 0059): `openclaw.workspace.write` and `.read`. A run reads what was
 * there when it began, a loop what was there when the supervisor's turn began; what is written is for those that come later.
 */
import { WORKFLOW_BOUNDS } from "../../contracts/workflows/workflow-bounds.ts";
import {
  isContentType,
  WORKSPACE_CONTENT_TYPE,
  findWorkspacePathProblem,
} from "../../contracts/workflows/workspace.ts";
import { SUPERVISOR } from "../state/graph.ts";
import type { GraphNode } from "../state/node-graph.ts";
import { withNodeId, type NodeError, type NodeType, type NodeView } from "../node-contract/node-type.ts";
import { readNodeInputs } from "../state/values.ts";
import { draftConfiguredChange, draftNodeCompleted, draftFailedOutcome } from "./ends.ts";

export const workspaceWrite: NodeType = {
  check: ({ node: { id, config } }) => [
    ...listPathProblems(id, config["path"]),
    ...(isAbsentOrRight(config["contentType"], isMediaType)
      ? []
      : [`contentType of node ${id} is no media type`]),
    ...(isAbsentOrRight(config["ifVersion"], isFileVersion) ? [] : [`ifVersion of node ${id} is no version`]),
  ],
  step: (view) => {
    const { path, content, contentType, ifVersion } = readWriteRequest(view);
    const problem =
      findPathProblem(path) ??
      findContentProblem(content) ??
      findContentTypeProblem(contentType) ??
      findVersionProblem(ifVersion);
    if (problem) return { kind: "fail", error: problem };
    const { nodeId, executions } = view.nodeRun;
    return {
      kind: "act",
      effect: {
        kind: "write_workspace",
        id: `${nodeId}:${executions}:write`,
        nodeId,
        path: String(path),
        content: { contentType: String(contentType), text: formatContent(content) },
        ...(isFileVersion(ifVersion) && { ifVersion }),
      },
    };
  },
  settle: (view, _effect, outcome) => {
    if (outcome.kind !== "workspace_written") return draftFailedOutcome(view, outcome);
    const { path, version } = outcome.update;
    const update = withNodeId(view, { type: "workspace.updated", payload: { path, version } } as const);
    return [update, draftNodeCompleted(view, { path, version })];
  },
};

export const workspaceRead: NodeType = {
  check: ({ node: { id, config } }) => [
    ...listPathProblems(id, config["path"]),
    ...(isAbsentOrRight(config["paths"], (paths) => Array.isArray(paths) && paths.every(isNonEmptyText))
      ? []
      : [`paths of node ${id} is no list of texts`]),
  ],
  step: (view) => {
    const { config } = view.node.node;
    const path = readNodeInputs(view.run, view.graph, view.node)["path"] ?? config["path"];
    const paths: readonly unknown[] = Array.isArray(config["paths"]) ? config["paths"] : [];
    const { nodeId, executions } = view.nodeRun;
    return {
      kind: "act",
      effect: {
        kind: "read_workspace",
        id: `${nodeId}:${executions}:read`,
        nodeId,
        sequence: findSnapshotSequence(view),
        paths: isNonEmptyText(path) ? [path] : paths.filter(isNonEmptyText),
      },
    };
  },
  settle: (view, effect, outcome) => {
    if (outcome.kind !== "workspace_read") return draftFailedOutcome(view, outcome);
    const isOne = effect.kind === "read_workspace" && isReadingOneFile(view, effect.paths);
    const outputs = isOne ? { file: outcome.files[0] ?? null } : { files: outcome.files };
    return [
      ...draftConfiguredChange(view, isOne ? outputs["file"] : outputs["files"]),
      draftNodeCompleted(view, outputs),
    ];
  },
};

type WriteRequest = Readonly<Record<"path" | "content" | "contentType" | "ifVersion", unknown>>;

/** Returns what the node's ports say, and its configuration where a port says nothing or is `null`. */
function readWriteRequest({ run, graph, node }: NodeView): WriteRequest {
  const { config } = node.node;
  const inputs = readNodeInputs(run, graph, node);
  const find = (name: keyof WriteRequest): unknown => inputs[name] ?? config[name];
  return {
    path: find("path"),
    content: find("content"),
    contentType: find("contentType") ?? WORKSPACE_CONTENT_TYPE,
    ifVersion: find("ifVersion"),
  };
}

/** Returns the event before which files are read: the newest turn of a supervisor, else the beginning of the run. */
function findSnapshotSequence({ run, graph }: NodeView): number {
  let sequence = 0;
  for (const { nodeId, executions, enteredSequence } of run.nodes.values())
    if (executions > 0 && graph.nodes.get(nodeId)?.node.typeId === SUPERVISOR)
      sequence = Math.max(sequence, enteredSequence);
  return sequence;
}

function isReadingOneFile({ node: { node } }: NodeView, paths: readonly string[]): boolean {
  return paths.length === 1 && !Array.isArray(node.config["paths"]);
}

function isNonEmptyText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** True for the version of a file; 0: there must be no file. */
function isFileVersion(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isMediaType(value: unknown): value is string {
  return typeof value === "string" && isContentType(value);
}

function isAbsentOrRight(value: unknown, isRight: (value: unknown) => boolean): boolean {
  return value === undefined || value === null || isRight(value);
}

function listPathProblems(id: GraphNode["node"]["id"], path: unknown): string[] {
  const problem = typeof path === "string" ? findWorkspacePathProblem(path) : undefined;
  return problem === undefined ? [] : [`path of node ${id}: ${problem}`];
}

function findPathProblem(path: unknown): NodeError | undefined {
  const message = typeof path === "string" ? findWorkspacePathProblem(path) : "there is no path to write to";
  return message === undefined ? undefined : { code: "workspace_path_invalid", message };
}

function findContentProblem(content: unknown): NodeError | undefined {
  if (content === undefined)
    return { code: "workspace_content_missing", message: "there is no content to write" };
  const text = formatContent(content);
  if (!text.isWellFormed())
    return {
      code: "workspace_content_invalid",
      message: "the content is no Unicode text: it has half of a surrogate pair",
    };
  return new TextEncoder().encode(text).length > WORKFLOW_BOUNDS.workspaceFileBytesMax
    ? { code: "workspace_too_large", message: "the content is larger than a file may be" }
    : undefined;
}

function findContentTypeProblem(contentType: unknown): NodeError | undefined {
  return isMediaType(contentType)
    ? undefined
    : {
        code: "workspace_content_type_invalid",
        message: "contentType is no media type, such as text/markdown",
      };
}

/**
 * Returns the error of an `ifVersion` that is no version; `undefined` otherwise. Such a condition is not ignored,
 * because the file would then be overwritten.
 */
function findVersionProblem(ifVersion: unknown): NodeError | undefined {
  return isAbsentOrRight(ifVersion, isFileVersion)
    ? undefined
    : {
        code: "workspace_version_invalid",
        message: "ifVersion is no version: a whole number, 0 where there must be no file",
      };
}

function formatContent(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}
