/** Owns: the port that merges two changed versions of a text, given the text that both were made of. */
import type { MergeWay } from "../contracts/arbitration.ts";

/** Merging texts: by what the format of a file knows where that is sure, else by line. */
export interface TextMerge {
  /** Merges `current` and `proposed`, which were both made of `base`; an obstacle where both changed the same. */
  merge(texts: TextsToMerge): TextMerged;
}

/** Three texts of a file: as it was, as it is, and as it was to become. */
export interface TextsToMerge {
  readonly base: string;
  readonly current: string;
  readonly proposed: string;
  /** The path of the file, whose name says by which format it is merged. Without it, it is merged by line. */
  readonly path?: string;
}

/** A merged text, or why there is none. */
export type TextMerged =
  /** `way`: absent for what was merged by line. */
  | { readonly kind: "clean"; readonly text: string; readonly way?: MergeWay }
  | { readonly kind: "obstacle"; readonly obstacle: "overlapping_changes" | "too_large" | "owned_by_tool" };
