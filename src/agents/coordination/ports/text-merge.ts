/** Merging texts by line. */
export interface TextMerge {
  /** What `current` and `proposed` made of `base`, taken together; an obstacle where both changed the same lines. */
  merge(texts: { readonly base: string; readonly current: string; readonly proposed: string }): TextMerged;
}

/** A merged text, or why there is none. */
export type TextMerged =
  | { readonly kind: "clean"; readonly text: string }
  | { readonly kind: "obstacle"; readonly obstacle: "overlapping_changes" | "too_large" };
