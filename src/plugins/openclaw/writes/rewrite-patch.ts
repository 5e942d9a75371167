/** Owns: changing a patch so that it leaves merged texts in some of its files and does to the others what it did. */
import type { MergedFile, WriteTarget } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { removeByteOrderMark } from "./apply-edits.ts";
import { listLines } from "./find-lines.ts";
import { resolvePatchPath } from "./host-path.ts";
import { listPatchedFiles, proposeTextAfterPatch, type PatchedFile } from "./patched-files.ts";
import {
  ADD_FILE,
  AT_END,
  CHUNK,
  DELETE_FILE,
  PATCH_BEGIN,
  PATCH_END,
  readPatch,
  UPDATE_FILE,
  type Hunk,
} from "./read-patch.ts";

/**
 * Returns the patch with the hunks of the merged files replaced by ones that leave the merged texts; `undefined` where
 * no patch can.
 */
export function rewritePatch(
  input: string,
  targets: readonly WriteTarget[],
  merged: readonly MergedFile[],
): string | undefined {
  const hunks = readPatch(input);
  const files = indexMergedFiles(targets, merged);
  if (!hunks || !files) return undefined;
  const rewritten = new Map<string, readonly string[]>();
  for (const [path, file] of files.byPath) {
    const lines = createWholeFileHunk(findHunks(hunks, path, files), file, files.folder);
    if (!lines) return undefined;
    rewritten.set(path, lines);
  }
  return formatPatch(replaceHunks(hunks, rewritten, files));
}

interface PlacedFiles {
  readonly folder: string;
  readonly byPath: ReadonlyMap<string, MergedFile>;
  /** The path of each file by every other path that the patch has for it, such as one through a link. */
  readonly firstPaths: ReadonlyMap<string, string>;
}

/**
 * Finds the path of each merged file among the targets; `undefined` where one has none, two share one, or one lies
 * below something that the patch removes before.
 */
function indexMergedFiles(
  targets: readonly WriteTarget[],
  merged: readonly MergedFile[],
): PlacedFiles | undefined {
  const byPath = new Map<string, MergedFile>();
  const firstPaths = new Map<string, string>();
  let folder: string | undefined;
  for (const file of merged) {
    const place = readTargetPlace(targets, file.target);
    if (!place || byPath.has(place.path) || isAgainBelowRemoved(targets, place.path)) return undefined;
    byPath.set(place.path, file);
    folder = place.folder;
    for (const other of file.others ?? []) {
      const otherPlace = readTargetPlace(targets, other);
      if (!otherPlace) return undefined;
      firstPaths.set(otherPlace.path, place.path);
    }
  }
  return folder === undefined ? undefined : { folder, byPath, firstPaths };
}

/** True where the patch removes something above a file and then writes the file: its hunks are of two files, or the second of none. */
function isAgainBelowRemoved(targets: readonly WriteTarget[], path: string): boolean {
  return targets.some(
    ({ at, ends }) => "path" in at && at.path === path && ends?.some((end) => typeof end === "object"),
  );
}

function readTargetPlace(targets: readonly WriteTarget[], index: number) {
  const place = targets[index]?.at;
  return place && "path" in place ? place : undefined;
}

function resolveFirstPath(path: string, { folder, firstPaths }: PlacedFiles): string | undefined {
  const resolved = resolvePatchPath(path, folder);
  return resolved === undefined ? undefined : (firstPaths.get(resolved) ?? resolved);
}

function findHunks(hunks: readonly Hunk[], path: string, files: PlacedFiles): readonly Hunk[] {
  return hunks.filter(
    (hunk) =>
      resolveFirstPath(hunk.path, files) === path ||
      ("movePath" in hunk && resolveFirstPath(hunk.movePath, files) === path),
  );
}

/** Puts the new hunk of a file in place of its first one, and leaves its other hunks out. */
function replaceHunks(
  hunks: readonly Hunk[],
  rewritten: ReadonlyMap<string, readonly string[]>,
  files: PlacedFiles,
): readonly string[] {
  const written = new Set<string>();
  return hunks.flatMap((hunk) => {
    const path = resolveFirstPath(hunk.path, files) ?? "";
    const lines = rewritten.get(path);
    if (!lines) return hunk.lines;
    if (written.has(path)) return [];
    written.add(path);
    return lines;
  });
}

/**
 * Returns the lines that leave the merged text in a file: one update of all of it, which fails once the file has
 * changed, else its removal and addition. `undefined` where neither does, or it is moved.
 */
function createWholeFileHunk(
  hunks: readonly Hunk[],
  file: MergedFile,
  folder: string,
): readonly string[] | undefined {
  const { current, merged } = file;
  const [first] = hunks;
  if (!first || hunks.some((hunk) => "movePath" in hunk)) return undefined;
  const { path } = first;
  const added = [`${ADD_FILE}${path}`, ...markLines("+", merged)];
  const candidates =
    current === undefined
      ? [added]
      : [
          [
            `${UPDATE_FILE}${path}`,
            CHUNK,
            ...markLines("-", removeByteOrderMark(current)),
            ...markLines("+", removeByteOrderMark(merged)),
            AT_END,
          ],
          [`${DELETE_FILE}${path}`, ...added],
        ];
  return candidates.find((lines) => isLeavingMerged(lines, file, folder));
}

/** True where a patch of these lines makes exactly the merged text of the current one. */
function isLeavingMerged(lines: readonly string[], { current, merged }: MergedFile, folder: string): boolean {
  const hunks = readPatch(formatPatch(lines));
  const files: readonly PatchedFile[] = (hunks && listPatchedFiles(hunks, folder)) ?? [];
  const [file] = files;
  if (!file || files.length > 1) return false;
  const proposed = proposeTextAfterPatch(current, file.steps);
  return proposed.kind === "text" && proposed.text === merged;
}

function markLines(mark: "+" | "-", text: string): readonly string[] {
  return listLines(text).map((line) => mark + line.replace(/[\r\n]+$/u, ""));
}

function formatPatch(lines: readonly string[]): string {
  return [PATCH_BEGIN, ...lines, PATCH_END].join("\n");
}
