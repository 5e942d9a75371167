/** Owns: what a call of one of the host's own file tools changes or looks at. */
import { dirname } from "node:path";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { TextPlace, WriteTarget } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { proposeEdits, readEdits, type Edit } from "./apply-edits.ts";
import { resolveFileToolPath, resolvePatchPath, parsePlainPath } from "./host-path.ts";
import { readParam, readTextParam } from "./param.ts";
import { listPatchedFiles, proposePatched, type PatchedFile } from "./patched-files.ts";
import { readPatch } from "./read-patch.ts";
import { UNREADABLE, type ToolCall, type ToolReading } from "./tool-reading.ts";

/** Looking for more of them in a large file takes long; what such a call makes of a file is not foretold. */
export const EDITS_MAX = 256;

export function readReadCall({ params, folder }: ToolCall): ToolReading | undefined {
  const path = pathOf(params, folder);
  if (path === undefined) return undefined;
  const from = { line: numberOf(params, "offset", 1), character: numberOf(params, "cursor", 0) };
  return { targets: [], reads: [{ path, folder, from }] };
}

/** Returns where the host stopped reading a text, as its result says; `undefined` where that is the end. */
export function findReadEnd(result: unknown): TextPlace | undefined {
  const continuation = readParam(readParam(result, "details"), "continuation");
  if (continuation === undefined) return undefined;
  return { line: numberOf(continuation, "offset", 1), character: numberOf(continuation, "cursor", 0) };
}

function numberOf(params: unknown, name: string, otherwise: number): number {
  const value = readParam(params, name);
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

export function readWriteCall({ params, folder }: ToolCall): ToolReading {
  const path = pathOf(params, folder);
  const content = readTextParam(params, "content");
  if (path === undefined || content === undefined) return UNREADABLE;
  const propose: WriteTarget["propose"] = () => ({ kind: "text", text: content.toWellFormed() });
  return { targets: [{ at: { path, folder }, propose, replaces: true }], reads: [] };
}

export function readEditCall({ params, folder }: ToolCall): ToolReading {
  const path = pathOf(params, folder);
  if (path === undefined) return UNREADABLE;
  const propose = proposeFromEdits(readParam(params, "edits"));
  return { targets: [{ at: { path, folder }, ...(propose && { propose }), replaces: false }], reads: [] };
}

function proposeFromEdits(value: unknown): WriteTarget["propose"] {
  if (!Array.isArray(value) || value.length > EDITS_MAX) return undefined;
  // The host may change the list before the tool runs, so it is read now.
  const edits: readonly Edit[] | undefined = readEdits(value);
  return (before) => proposeEdits(before, edits);
}

/** Reads a call of `nodes`. A film of a paired device is written to a file when the call names one. */
export function readNodesCall({ params, folder }: ToolCall): ToolReading | undefined {
  const path = parsePlainPath(readTextParam(params, "outPath") ?? "");
  return path === undefined ? undefined : { targets: [{ at: { path, folder }, replaces: true }], reads: [] };
}

export function readPatchCall({ params, folder, derivedPaths = [] }: ToolCall): ToolReading {
  const input = readTextParam(params, "input") ?? "";
  const hunks = input.length <= BOUNDS.mergeBytesMax ? readPatch(input) : undefined;
  const files = hunks && listPatchedFiles(hunks, folder);
  if (files) return readPatchedFiles(files, folder);
  const hinted = derivedPaths.flatMap((path) => resolvePatchPath(path, folder) ?? []);
  return { ...UNREADABLE, targets: hinted.map((path) => ({ at: { path, folder }, replaces: true })) };
}

function readPatchedFiles(files: readonly PatchedFile[], folder: string): ToolReading {
  // A call with too many of them is refused for that.
  const placed = files.length > BOUNDS.resourcesPerCallMax ? files : withoutFilesBelowRemoved(files);
  const targets = placed.map((file) => targetOf(file, folder));
  return placed.length === files.length ? { targets, reads: [] } : { ...UNREADABLE, targets };
}

/** Leaves out files below what the patch removes before: a link that their paths lead through now is not there any more then. */
function withoutFilesBelowRemoved(files: readonly PatchedFile[]): readonly PatchedFile[] {
  const removed = new Set<string>();
  return files.filter(({ path, steps }) => {
    if (steps.some(isRemoval)) removed.add(path);
    return !hasFolderAmong(removed, path);
  });
}

function hasFolderAmong(folders: ReadonlySet<string>, path: string): boolean {
  const folder = dirname(path);
  return folder !== path && (folders.has(folder) || hasFolderAmong(folders, folder));
}

function isRemoval({ kind }: PatchedFile["steps"][number]): boolean {
  return kind === "remove" || kind === "leave";
}

function targetOf(file: PatchedFile, folder: string): WriteTarget {
  const { path, steps } = file;
  const chunks = steps.reduce((count, step) => count + ("chunks" in step ? step.chunks.length : 0), 0);
  const foretold = chunks <= EDITS_MAX && steps.every((step) => step.kind !== "arrive");
  const firstRemoval = steps.findIndex(isRemoval);
  return {
    at: { path, folder },
    // Once a link is removed, the host creates a file in its place, and what it led to stays as it is.
    ...(firstRemoval >= 0 && { ends: firstRemoval === 0 ? ["entry"] : ["entry", "target"] }),
    ...(foretold && { propose: (before: string | undefined) => proposePatched(before, steps) }),
    replaces: steps[0]?.kind === "remove",
  };
}

function pathOf(params: unknown, folder: string): string | undefined {
  const path = readTextParam(params, "path");
  return path === undefined ? undefined : resolveFileToolPath(path, folder);
}
