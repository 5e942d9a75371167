/** Owns: what a patch does to each of its files, in order, and what that makes of one of them. */
import type { Proposed } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { applyChunks, LOOKS_MAX } from "./apply-chunks.ts";
import { resolvePatchPath } from "./host-path.ts";
import type { Chunk, Hunk } from "./read-patch.ts";
import { createSearchBudget, proposeWithinBudget, type SpendSearch } from "./find-lines.ts";

export interface PatchedFile {
  readonly path: string;
  readonly steps: readonly FileStep[];
}

type FileStep =
  | { readonly kind: "create"; readonly contents: string }
  | { readonly kind: "update"; readonly chunks: readonly Chunk[] }
  | { readonly kind: "remove" }
  /** Moved to another place, updated. */
  | { readonly kind: "leave"; readonly chunks: readonly Chunk[] }
  /** Moved here; what it will be depends on another file. */
  | { readonly kind: "arrive" };

/** Lists each file once, however it is spelled, in the order of the patch; `undefined` when one has no path. */
export function listPatchedFiles(hunks: readonly Hunk[], folder: string): readonly PatchedFile[] | undefined {
  const files = new Map<string, FileStep[]>();
  for (const hunk of hunks) {
    const steps = stepsOf(hunk, folder);
    if (!steps) return undefined;
    for (const [path, step] of steps) {
      const existing = files.get(path);
      if (existing) existing.push(step);
      else files.set(path, [step]);
    }
  }
  return [...files].map(([path, steps]) => ({ path, steps }));
}

function stepsOf(hunk: Hunk, folder: string): readonly (readonly [string, FileStep])[] | undefined {
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

export function proposePatched(before: string | undefined, steps: readonly FileStep[]): Proposed {
  return proposeWithinBudget(() => applySteps(before, steps));
}

function applySteps(before: string | undefined, steps: readonly FileStep[]): Proposed {
  const spend = createSearchBudget(LOOKS_MAX);
  let text = before;
  for (const step of steps) {
    const next = applyStep(text, step, spend);
    if (next === "fails") return { kind: "fails" };
    text = next.text;
  }
  return text === undefined ? { kind: "deleted" } : { kind: "text", text: text.toWellFormed() };
}

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
