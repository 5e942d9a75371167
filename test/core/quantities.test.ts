/** Owns: how numbers of tokens read. */
import { expect, test } from "vitest";
import { formatTokens } from "../../src/agents/coordination/std/quantities.ts";

test.each([
  [0, "0"],
  [99_999, "99,999"],
  [100_000, "100k"],
  [999_999, "999k"],
  [1_000_000, "1.00M"],
  [999_999_999, "999.99M"],
  [1_000_000_000, "1.00G"],
  [999_999_999_999, "999.99G"],
])("%d tokens read as %s, in at most seven characters", (tokens, text) => {
  expect(formatTokens(tokens)).toBe(text);
  expect(text.length).toBeLessThanOrEqual(7);
});
