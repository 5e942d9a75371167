/** Owns: how many cells of a terminal a text takes, and how it is cut to fit. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countCells, fitToCells, shorten, shortenStart } from "../../src/plugins/cli/terminal/printable.ts";

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Ends of the ranges whose characters are counted without looking at what joins them. */
const SINGLE_CELLS = [
  [0x20, 0x7e],
  [0xa1, 0x2ff],
  [0x2010, 0x2027],
  [0x2190, 0x21ff],
  [0x2500, 0x259f],
] as const;

const codePoints = SINGLE_CELLS.flatMap(([first, last]) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index),
);
const singleCharacters = fc.constantFrom(...codePoints.map((codePoint) => String.fromCodePoint(codePoint)));

describe("the cells of a text", () => {
  it("are as many as its characters where each has one and none joins another", () => {
    fc.assert(
      fc.property(fc.string({ unit: singleCharacters }), (text) => {
        expect([...segmenter.segment(text)].length).toBe(text.length);
        expect(countCells(text)).toBe(text.length);
      }),
      { numRuns: 500 },
    );
  });

  it("are two for no character that is counted as one", () => {
    const wide = codePoints.filter((codePoint) =>
      /[\p{Emoji_Presentation}\p{M}]/u.test(String.fromCodePoint(codePoint)),
    );
    expect(wide).toEqual([]);
  });

  it.each([
    ["表", 2],
    ["e\u0301", 1],
    ["👩‍👩‍👧", 2],
    ["❤️", 2],
    ["a→表…", 5],
    ["─│é", 3],
  ])("of %s are %i", (text, cells) => {
    expect(countCells(text)).toBe(cells);
  });
});

describe("a text that is too long", () => {
  it.each([
    ["abcdef", 4, "abc…", "…def"],
    ["é→─é→─", 4, "é→─…", "…é→─"],
    ["表表表", 4, "表…", "…表"],
    ["e\u0301e\u0301e\u0301", 2, "e\u0301…", "…e\u0301"],
    ["abc", 0, "", ""],
  ])("is cut without tearing a character apart: %s to %i cells", (text, cells, cut, end) => {
    expect(shorten(text, cells, true)).toBe(cut);
    expect(shortenStart(text, cells, true)).toBe(end);
  });

  it("is never longer than it may be, and is padded to exactly that", () => {
    const texts = fc.string({ unit: fc.oneof(singleCharacters, fc.constantFrom("表", "👩‍👩‍👧", "\u0301")) });
    fc.assert(
      fc.property(texts, fc.nat({ max: 12 }), (text, cells) => {
        expect(countCells(shorten(text, cells, true))).toBeLessThanOrEqual(cells);
        expect(countCells(shortenStart(text, cells, true))).toBeLessThanOrEqual(cells);
        expect(countCells(fitToCells(text, cells, true))).toBe(cells);
      }),
    );
  });
});
