/** Owns: what a patch does to each of its files, in order, and what that makes of one of them. */
import { dirname } from "node:path";
import type { ChangeProposal } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { applyChunks, LOOKS_MAX } from "./apply-chunks.ts";
import { resolvePatchPath } from "./host-path.ts";
import type { Chunk, Hunk } from "./read-patch.ts";
import { createSearchBudget, proposeWithinBudget, type SpendSearch } from "./find-lines.ts";

export interface PatchedFile {
  readonly path: string;
  readonly steps: readonly FileStep[];
  /** So many names at the end of the path lie below something that the patch removes before. */
  readonly namesBelowRemoved: number;
}

type FileStep =
  | { readonly kind: "create"; readonly contents: string }
  | { readonly kind: "update"; readonly chunks: readonly Chunk[] }
  | { readonly kind: "remove" }
  /** Moved to another place, updated. */
  | { readonly kind: "leave"; readonly chunks: readonly Chunk[] }
  /** Moved here; what it will be depends on another file. */
  | { readonly kind: "arrive" };

/**
 * Lists each file that a patch changes once, however it is spelled, with the steps that change it; `undefined` when
 * one has no valid path. A file is listed once more where the patch removes something above it in between: its path
 * may lead elsewhere before.
 */
export function listPatchedFiles(hunks: readonly Hunk[], folder: string): readonly PatchedFile[] | undefined {
  const files = new Map<string, PatchedFile & { readonly steps: FileStep[] }>();
  const removed = new Set<string>();
  for (const hunk of hunks) {
    const steps = createFileSteps(hunk, folder);
    if (!steps) return undefined;
    for (const [path, step] of steps) {
      const namesBelowRemoved = countNamesBelow(removed, path);
      const key = `${namesBelowRemoved} ${path}`;
      const existing = files.get(key);
      if (existing) existing.steps.push(step);
      else files.set(key, { path, steps: [step], namesBelowRemoved });
      if (isRemoval(step)) removed.add(path);
    }
  }
  return [...files.values()];
}

/** Counts the names at the end of a path that lie below the highest of some paths; 0 where it lies below none. */
function countNamesBelow(paths: ReadonlySet<string>, path: string): number {
  let count = 0;
  let names = 0;
  for (let [at, above] = [path, dirname(path)]; above !== at; [at, above] = [above, dirname(above)]) {
    names += 1;
    if (paths.has(above)) count = names;
  }
  return count;
}

/** True of a step of a patch that deletes the file or moves it away from its place. */
export function isRemoval({ kind }: FileStep): boolean {
  return kind === "remove" || kind === "leave";
}

function createFileSteps(hunk: Hunk, folder: string): readonly (readonly [string, FileStep])[] | undefined {
  const path = resolvePatchPath(hunk.path, folder);
  if (path === undefined) return undefined;
  if (hunk.kind === "add") return [[path, { kind: "create", contents: hunk.contents }]];
  if (hunk.kind === "delete") return [[path, { kind: "remove" }]];
  const { chunks, movePath } = hunk;
  const target = movePath === undefined ? path : resolvePatchPath(movePath, folder);
  if (target === undefined) return undefined;
  if (target === path) return [[path, { kind: "update", chunks }]];
  return [
    [path, { kind: "leave", chunks }],
    [target, { kind: "arrive" }],
  ];
}

/**
 * Returns the text that a patch's steps will make of one of its files, that the file is removed, that they will fail,
 * or that this would take too long to tell.
 */
export function proposeTextAfterPatch(
  before: string | undefined,
  steps: readonly FileStep[],
): ChangeProposal {
  return proposeWithinBudget(() => applySteps(before, steps));
}

function applySteps(before: string | undefined, steps: readonly FileStep[]): ChangeProposal {
  const spend = createSearchBudget(LOOKS_MAX);
  let text = before;
  for (const step of steps) {
    const next = applyStep(text, step, spend);
    if (next === "fails") return { kind: "fails" };
    text = next.text;
  }
  return text === undefined ? { kind: "deleted" } : { kind: "text", text: text.toWellFormed() };
}

/** Returns the text after one step, `undefined` for no file; or that the patch fails. */
function applyStep(
  text: string | undefined,
  step: FileStep,
  spend: SpendSearch,
): "fails" | { readonly text: string | undefined } {
  if (step.kind === "create") return text === undefined ? { text: step.contents } : "fails";
  if (text === undefined || step.kind === "arrive") return "fails";
  if (step.kind === "remove") return { text: undefined };
  const updated = applyChunks(text, step.chunks, spend);
  if (updated === undefined) return "fails";
  return { text: step.kind === "leave" ? undefined : updated };
}
