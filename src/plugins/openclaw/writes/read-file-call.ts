/** Owns: what a call of one of the host's own file tools changes or looks at. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { TextPlace, WriteTarget } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { proposeTextAfterEdits, readEdits, type TextEdit } from "./apply-edits.ts";
import { resolveFileToolPath, resolvePatchPath, parsePlainPath } from "./host-path.ts";
import { readParam, readTextParam } from "./param.ts";
import { isRemoval, listPatchedFiles, proposeTextAfterPatch, type PatchedFile } from "./patched-files.ts";
import { readPatch } from "./read-patch.ts";
import { UNREADABLE, type ToolCall, type ToolReading } from "./tool-reading.ts";

/** Looking for more of them in a large file takes long; what such a call makes of a file is not foretold. */
export const EDITS_MAX = 256;

/** Returns which file a call of `read` looks at, and from which place on; `undefined` where it has no usable path. */
export function readReadCall({ params, folder }: ToolCall): ToolReading | undefined {
  const path = readFilePath(params, folder);
  if (path === undefined) return undefined;
  const from = {
    line: readNumberParam(params, "offset", 1),
    character: readNumberParam(params, "cursor", 0),
  };
  return { targets: [], reads: [{ path, folder, from }] };
}

/**
 * Returns the place in a file where a call of `read` stopped, as the host's result says; `undefined` where it read to
 * the end.
 */
export function findReadEnd(result: unknown): TextPlace | undefined {
  const continuation = readParam(readParam(result, "details"), "continuation");
  if (continuation === undefined) return undefined;
  return {
    line: readNumberParam(continuation, "offset", 1),
    character: readNumberParam(continuation, "cursor", 0),
  };
}

function readNumberParam(params: unknown, name: string, otherwise: number): number {
  const value = readParam(params, name);
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

/**
 * Returns the file that a call of `write` replaces, with the text that it will have; undetermined where an argument is
 * missing, or the path is unusable.
 */
export function readWriteCall({ params, folder }: ToolCall): ToolReading {
  const path = readFilePath(params, folder);
  const content = readTextParam(params, "content");
  if (path === undefined || content === undefined) return UNREADABLE;
  const propose: WriteTarget["propose"] = () => ({ kind: "text", text: content.toWellFormed() });
  return { targets: [{ at: { path, folder }, propose, replaces: true }], reads: [] };
}

/**
 * Returns the file that a call of `edit` changes, with how to tell the text that it will have unless the edits are too
 * many; undetermined where it has no usable path.
 */
export function readEditCall({ params, folder }: ToolCall): ToolReading {
  const path = readFilePath(params, folder);
  if (path === undefined) return UNREADABLE;
  const propose = createEditProposer(readParam(params, "edits"));
  return { targets: [{ at: { path, folder }, ...(propose && { propose }), replaces: false }], reads: [] };
}

/** Creates the function that tells what these edits make of a text; `undefined` for too many, or for no list. */
function createEditProposer(value: unknown): WriteTarget["propose"] {
  if (!Array.isArray(value) || value.length > EDITS_MAX) return undefined;
  // The host may change the list before the tool runs, so it is read now.
  const edits: readonly TextEdit[] | undefined = readEdits(value);
  return (before) => proposeTextAfterEdits(before, edits);
}

/**
 * Returns the file to which a call of `nodes` writes the film of a paired device; `undefined` where the call names
 * none.
 */
export function readNodesCall({ params, folder }: ToolCall): ToolReading | undefined {
  const path = parsePlainPath(readTextParam(params, "outPath") ?? "");
  return path === undefined ? undefined : { targets: [{ at: { path, folder }, replaces: true }], reads: [] };
}

/**
 * Returns the files that a call of `apply_patch` changes, with how to tell their later texts where that is possible;
 * for a patch that cannot be read, the paths that the host derived, marked as undetermined.
 */
export function readPatchCall({ params, folder, derivedPaths = [] }: ToolCall): ToolReading {
  const input = readTextParam(params, "input") ?? "";
  const hunks = input.length <= BOUNDS.mergeBytesMax ? readPatch(input) : undefined;
  const files = hunks && listPatchedFiles(hunks, folder);
  if (files) return { targets: files.map((file) => createPatchTarget(file, folder)), reads: [] };
  const hinted = derivedPaths.flatMap((path) => resolvePatchPath(path, folder) ?? []);
  return { ...UNREADABLE, targets: hinted.map((path) => ({ at: { path, folder }, replaces: true })) };
}

function createPatchTarget(file: PatchedFile, folder: string): WriteTarget {
  const { path, steps } = file;
  const ends = chooseEnds(file);
  const chunks = steps.reduce((count, step) => count + ("chunks" in step ? step.chunks.length : 0), 0);
  const foretold = chunks <= EDITS_MAX && steps.every((step) => step.kind !== "arrive");
  return {
    at: { path, folder },
    ...(ends && { ends }),
    ...(foretold && { propose: (before: string | undefined) => proposeTextAfterPatch(before, steps) }),
    replaces: steps[0]?.kind === "remove",
  };
}

/** Chooses what a file's path means where it ends at a link, or below something that the patch removes before. */
function chooseEnds({ steps, namesBelowRemoved }: PatchedFile): WriteTarget["ends"] {
  if (namesBelowRemoved > 0) return [{ namesBelowRemoved }];
  const firstRemoval = steps.findIndex(isRemoval);
  if (firstRemoval === -1) return undefined;
  // Once a link is removed, the host creates a file in its place, and what it led to stays as it is.
  return firstRemoval === 0 ? ["entry"] : ["entry", "target"];
}

function readFilePath(params: unknown, folder: string): string | undefined {
  const path = readTextParam(params, "path");
  return path === undefined ? undefined : resolveFileToolPath(path, folder);
}
