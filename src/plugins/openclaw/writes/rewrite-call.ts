/**
 * Owns: changing a tool call so that the host's tool leaves a merged text in a file. Does not own: merging.
 *
 * A rewritten call is tried on the text that is there. Where it would not leave exactly the merged text it is none: the
 * tools choose line endings themselves, and some texts they cannot write.
 */
import type { MergedFile, WriteTarget } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { proposeTextAfterEdits, removeByteOrderMark, withLineFeeds, type TextEdit } from "./apply-edits.ts";
import { readParam, readTextParam } from "./param.ts";
import { rewritePatch } from "./rewrite-patch.ts";

/** The parameters of a tool call, unchecked. */
type CallParameters = Readonly<Record<string, unknown>>;

/**
 * Returns the arguments with which a tool call leaves the merged texts in its files; `undefined` where the tool, the
 * texts or the arguments do not allow that.
 */
export function rewriteToolCall(
  tool: string,
  params: unknown,
  targets: readonly WriteTarget[],
  merged: readonly MergedFile[],
): CallParameters | undefined {
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
) => CallParameters | undefined;

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

/**
 * Returns the one file of a `write` or an `edit`, their first target; `undefined` where others are merged. Whatever
 * extractors add comes behind it.
 */
function findOnlyFile(merged: readonly MergedFile[]): MergedFile | undefined {
  return merged.length === 1 && merged[0]?.target === 0 ? merged[0] : undefined;
}

function rewriteWrite(merged: readonly MergedFile[]): CallParameters | undefined {
  const file = findOnlyFile(merged);
  return file && { content: file.merged };
}

function rewriteEdit(params: object, merged: readonly MergedFile[]): CallParameters | undefined {
  const file = findOnlyFile(merged);
  if (file?.current === undefined || !Array.isArray(readParam(params, "edits"))) return undefined;
  const { current, merged: wanted } = file;
  const edit = [createWholeFileEdit, createChangedLinesEdit]
    .map((make) => make(normalizeText(current), normalizeText(wanted)))
    .find((candidate) => isLeavingWanted(current, candidate, wanted));
  return edit && { edits: [edit] };
}

/** True where the edit makes exactly the wanted text of the current one. */
function isLeavingWanted(current: string, edit: TextEdit, wanted: string): boolean {
  if (edit.oldText.trim() === "") return false;
  const proposed = proposeTextAfterEdits(current, [edit]);
  return proposed.kind === "text" && proposed.text === wanted;
}

function normalizeText(text: string): string {
  return withLineFeeds(removeByteOrderMark(text));
}

/** Returns an edit that fits the whole file once, and no longer fits if the file changes before the tool runs. */
function createWholeFileEdit(current: string, wanted: string): TextEdit {
  return { oldText: current, newText: wanted };
}

/**
 * Returns an edit of the lines from the first to the last that differ. It leaves the lines around in their own
 * endings, where a file mixes them.
 */
function createChangedLinesEdit(current: string, wanted: string): TextEdit {
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
