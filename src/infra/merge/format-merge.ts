/**
 * Owns: how a file is merged: by its format where that is sure, else by line. Does not own: formats, or lines.
 *
 * 1. A file that a tool owns is never merged, a manifest of a package by key or not at all.
 *    Two that created the same file have no base that says which of their keys belong together: by line, too.
 * 2. Where a format can read all three texts, a merge by line that it cannot read is none.
 * 3. Exchanging the sides changes nothing.
 */
import { findOwningTool, isManifest } from "../../agents/coordination/contracts/owned-files.ts";
import type { TextMerge, TextMerged, TextsToMerge } from "../../agents/coordination/ports/text-merge.ts";
import { formatOf } from "./formats/format-of.ts";
import { createLineMerge } from "./line-merge.ts";
import { isBroken, mergeByFormat, type MergedByFormat } from "./merge-by-format.ts";
import type { MergeLeaf } from "./pieces/merge-pieces.ts";
import type { TextFormat } from "./pieces/text-format.ts";

const OVERLAP = { kind: "obstacle", obstacle: "overlapping_changes" } as const;

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
      const format = formatOf(path);
      if (!format || base.trim() === "") return mergeByLine();
      return choose(format, { texts, byFormat: mergeSides(format, texts, mergeLeaf), mergeByLine });
    },
  };
}

function mergeSides(
  format: TextFormat,
  { base, current, proposed }: TextsToMerge,
  mergeLeaf: MergeLeaf,
): MergedByFormat {
  const [left, right] = current < proposed ? [current, proposed] : [proposed, current];
  return mergeByFormat(format, { base, left, right }, mergeLeaf);
}

interface Choice {
  readonly texts: TextsToMerge;
  readonly byFormat: MergedByFormat;
  readonly mergeByLine: () => TextMerged;
}

/** Chooses a merge. Where a merge by line would make the same, that one is taken. */
function choose(format: TextFormat, { texts, byFormat, mergeByLine }: Choice): TextMerged {
  const { path = "" } = texts;
  if (byFormat.kind === "unsure") {
    if (isManifest(path)) return OVERLAP;
    const merged = mergeByLine();
    const isUnusable = merged.kind === "clean" && byFormat.isReadable && isBroken(format, merged.text);
    return isUnusable ? OVERLAP : merged;
  }
  const merged = mergeByLine();
  if (merged.kind === "clean" && merged.text === byFormat.text) return merged;
  return { kind: "clean", text: byFormat.text, way: format.way };
}
