/**
 * Owns: changing a tool call so that the host's tool leaves a merged text in a file. Does not own: merging.
 *
 * A rewritten call is tried on the text that is there. Where it would not leave exactly the merged text it is none: the
 * tools choose line endings themselves, and some texts they cannot write.
 */
import type { MergedFile, WriteTarget } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { proposeEdits, removeByteOrderMark, withLineFeeds, type Edit } from "./apply-edits.ts";
import { readParam, readTextParam } from "./param.ts";
import { rewritePatch } from "./rewrite-patch.ts";

type Params = Readonly<Record<string, unknown>>;

/** `undefined` where the tool cannot be made to. */
export function rewriteCall(
  tool: string,
  params: unknown,
  targets: readonly WriteTarget[],
  merged: readonly MergedFile[],
): Params | undefined {
  if (typeof params !== "object" || params === null || Array.isArray(params)) return undefined;
  const wanted = merged.every((file) => file.merged.isWellFormed() && targets[file.target]) && merged;
  if (!wanted || wanted.length === 0) return undefined;
  const rewritten = rewriters.get(tool)?.(params, targets, wanted);
  return rewritten && { ...params, ...rewritten };
}

type Rewriter = (
  params: object,
  targets: readonly WriteTarget[],
  merged: readonly MergedFile[],
) => Params | undefined;

const rewriters: ReadonlyMap<string, Rewriter> = new Map<string, Rewriter>([
  ["write", (_params, _targets, merged) => rewriteWrite(merged)],
  ["edit", (params, _targets, merged) => rewriteEdit(params, merged)],
  [
    "apply_patch",
    (params, targets, merged) => {
      const input = rewritePatch(readTextParam(params, "input") ?? "", targets, merged);
      return input === undefined ? undefined : { input };
    },
  ],
]);

/** `write` and `edit` have one file, which is their first target; what extractors add comes behind it. */
function findOnlyFile(merged: readonly MergedFile[]): MergedFile | undefined {
  return merged.length === 1 && merged[0]?.target === 0 ? merged[0] : undefined;
}

function rewriteWrite(merged: readonly MergedFile[]): Params | undefined {
  const file = findOnlyFile(merged);
  return file && { content: file.merged };
}

function rewriteEdit(params: object, merged: readonly MergedFile[]): Params | undefined {
  const file = findOnlyFile(merged);
  if (file?.current === undefined || !Array.isArray(readParam(params, "edits"))) return undefined;
  const { current, merged: wanted } = file;
  const edit = [replaceWholeFile, replaceChangedLines]
    .map((make) => make(normalizeText(current), normalizeText(wanted)))
    .find((candidate) => isLeaving(current, candidate, wanted));
  return edit && { edits: [edit] };
}

function isLeaving(current: string, edit: Edit, wanted: string): boolean {
  if (edit.oldText.trim() === "") return false;
  const proposed = proposeEdits(current, [edit]);
  return proposed.kind === "text" && proposed.text === wanted;
}

function normalizeText(text: string): string {
  return withLineFeeds(removeByteOrderMark(text));
}

/** Returns an edit that fits the whole file once, and no longer fits if the file changes before the tool runs. */
function replaceWholeFile(current: string, wanted: string): Edit {
  return { oldText: current, newText: wanted };
}

/** Leaves the lines around in their own endings, where a file mixes them. */
function replaceChangedLines(current: string, wanted: string): Edit {
  const before = current.split(/(?<=\n)/u);
  const after = wanted.split(/(?<=\n)/u);
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return {
    oldText: before.slice(head, before.length - tail).join(""),
    newText: after.slice(head, after.length - tail).join(""),
  };
}
