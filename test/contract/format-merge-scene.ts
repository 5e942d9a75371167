/** Helpers of the tests of merges by format. */
import { expect } from "vitest";
import type { TextMerged, TextsToMerge } from "../../src/agents/coordination/ports/text-merge.ts";
import { createFormatMerge } from "../../src/infra/merge/format-merge.ts";

export const OVERLAP = { kind: "obstacle", obstacle: "overlapping_changes" };
export const OWNED = { kind: "obstacle", obstacle: "owned_by_tool" };

/** Merges both ways round: who asks makes no difference. */
export function merge(
  path: string,
  base: string,
  [current, proposed]: readonly [string, string],
): TextMerged {
  const textMerge = createFormatMerge();
  const merged = textMerge.merge({ base, current, proposed, path });
  const exchanged: TextsToMerge = { base, current: proposed, proposed: current, path };
  expect(textMerge.merge(exchanged)).toEqual(merged);
  return merged;
}

export function describeMerge(way: string, text: string): unknown {
  return { kind: "clean", text, way };
}

export function joinLines(...all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join("");
}
