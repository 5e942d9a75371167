/**
 * Owns: how a file is merged: by its format where that is sure, else by line. Does not own: formats, or lines.
 *
 * 1. A file that a tool owns is never merged, a manifest of a package by key or not at all.
 *    Two that created the same file have no base that says which of their keys belong together: by line, too.
 * 2. Where a format can read all three texts, a merge by line that it cannot read is none.
 * 3. Exchanging the sides changes nothing.
 */
import { findOwningTool, isPackageManifest } from "../../agents/coordination/contracts/owned-files.ts";
import type { TextMerge, TextMerged, TextsToMerge } from "../../agents/coordination/ports/text-merge.ts";
import { findFormat } from "./formats/format-of.ts";
import { createLineMerge } from "./line-merge.ts";
import { isBrokenForFormat, mergeByFormat, type MergedByFormat } from "./merge-by-format.ts";
import type { MergeLeaf } from "./pieces/merge-pieces.ts";
import type { TextFormat } from "./pieces/text-format.ts";

const OVERLAP = { kind: "obstacle", obstacle: "overlapping_changes" } as const;

/**
 * Creates the merge of a file's three texts: by the format of its name where the result is sure, else line by line. A
 * file that a tool owns, such as a lock file, is not merged; the result says so.
 */
export function createFormatMerge(): TextMerge {
  const lines = createLineMerge();
  const mergeLeaf: MergeLeaf = ({ base, left, right }) => {
    const merged = lines.merge({ base, current: left, proposed: right });
    return merged.kind === "clean" ? merged.text : undefined;
  };
  return {
    merge: (texts) => {
      const { base, current, proposed, path = "" } = texts;
      const mergeByLine = (): TextMerged => lines.merge({ base, current, proposed });
      if (current === base || proposed === base || current === proposed) return mergeByLine();
      if (findOwningTool(path) !== undefined) return { kind: "obstacle", obstacle: "owned_by_tool" };
      const format = findFormat(path);
      if (!format || base.trim() === "") return mergeByLine();
      return chooseMerge(format, {
        texts,
        byFormat: mergeSidesByFormat(format, texts, mergeLeaf),
        mergeByLine,
      });
    },
  };
}

/** Merges by the format, with the sides in an order that does not depend on who asks. */
function mergeSidesByFormat(
  format: TextFormat,
  { base, current, proposed }: TextsToMerge,
  mergeLeaf: MergeLeaf,
): MergedByFormat {
  const [left, right] = current < proposed ? [current, proposed] : [proposed, current];
  return mergeByFormat(format, { base, left, right }, mergeLeaf);
}

/** The merge by format, and the merge by line that may take its place. */
interface MergeOptions {
  readonly texts: TextsToMerge;
  readonly byFormat: MergedByFormat;
  readonly mergeByLine: () => TextMerged;
}

/**
 * Returns the merge by format where it is sure and differs from the one by line, else the one by line; an obstacle
 * where it is unsure for a package manifest, or where the merge by line breaks the format.
 */
function chooseMerge(format: TextFormat, { texts, byFormat, mergeByLine }: MergeOptions): TextMerged {
  const { path = "" } = texts;
  if (byFormat.kind === "unsure") {
    if (isPackageManifest(path)) return OVERLAP;
    const merged = mergeByLine();
    const isUnusable =
      merged.kind === "clean" && byFormat.isReadable && isBrokenForFormat(format, merged.text);
    return isUnusable ? OVERLAP : merged;
  }
  const merged = mergeByLine();
  if (merged.kind === "clean" && merged.text === byFormat.text) return merged;
  return { kind: "clean", text: byFormat.text, way: format.way };
}
