import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TextsToMerge } from "../../src/agents/coordination/ports/text-merge.ts";
import { createFormatMerge } from "../../src/infra/merge/format-merge.ts";
import { DOCUMENT_FORMATS, editLists, editTree, trees } from "./format-merge-documents.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 100);
const textMerge = createFormatMerge();

/** Counts the lines of a text. The comma behind an entry of JSON says nothing, nor do spaces around a line. */
function countLines(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const written of text.split("\n")) {
    const line = written.trim().replace(/,$/u, "");
    if (line !== "") counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return counts;
}

/** Lists the lines that a side added more often than they are in the merged text. */
function findLostLines(merged: string, { base, current, proposed }: TextsToMerge): string[] {
  const inBase = countLines(base);
  const inMerged = countLines(merged);
  return [current, proposed].flatMap((side) =>
    [...countLines(side)].flatMap(([line, count]) =>
      (inMerged.get(line) ?? 0) < count - (inBase.get(line) ?? 0) ? [line] : [],
    ),
  );
}

describe.each(DOCUMENT_FORMATS.map((format) => [format.path, format] as const))(
  "for all of %s",
  (path, format) => {
    const { write, canRead } = format;

    it("a merge loses no line that a side added, what it wrote can be read, and the sides can be exchanged", () => {
      const counts = { line: 0, format: 0 };
      fc.assert(
        fc.property(trees, editLists, editLists, (tree, left, right) => {
          const [base, current, proposed] = [tree, editTree(tree, left, "l"), editTree(tree, right, "r")].map(
            write,
          );
          const texts = { base: base ?? "", current: current ?? "", proposed: proposed ?? "", path };
          const merged = textMerge.merge(texts);
          expect(textMerge.merge({ ...texts, current: texts.proposed, proposed: texts.current })).toEqual(
            merged,
          );
          if (merged.kind === "obstacle") return;
          counts[merged.way === undefined ? "line" : "format"] += 1;
          expect(findLostLines(merged.text, texts)).toEqual([]);
          if ([texts.base, texts.current, texts.proposed].every(canRead))
            expect(canRead(merged.text)).toBe(true);
        }),
        { numRuns: RUNS * 3 },
      );
      expect(counts.format).toBeGreaterThan(RUNS / 20);
    });

    it("a merge of lines that were taken apart at random loses none either", () => {
      const writtenLines = trees.map((tree) => write(tree).split(/(?<=\n)/u));
      const picks = fc.array(
        fc.record({ at: fc.nat(30), change: fc.constantFrom("drop", "twice", "cut", "up") }),
        {
          maxLength: 3,
        },
      );
      fc.assert(
        fc.property(writtenLines, picks, picks, (base, left, right) => {
          const [current, proposed] = [left, right].map((all) => breakLines(base, all));
          const texts = { base: base.join(""), current: current ?? "", proposed: proposed ?? "", path };
          const merged = textMerge.merge(texts);
          if (merged.kind === "obstacle") return;
          expect(findLostLines(merged.text, texts)).toEqual([]);
          if ([texts.base, texts.current, texts.proposed].every(canRead))
            expect(canRead(merged.text)).toBe(true);
        }),
        { numRuns: RUNS * 3 },
      );
    });
  },
);

describe("for all maps in one line", () => {
  const maps = fc.dictionary(fc.constantFrom("a", "b", "c", "d", "__proto__", "e f"), fc.nat(2), {
    maxKeys: 6,
  });

  it("a merge has change each side added or changed, and lacks change each removed", () => {
    fc.assert(
      fc.property(maps, maps, maps, fc.constantFrom(0, 1, 2), (base, left, right, spaces) => {
        const write = (map: Readonly<Record<string, number>>): string => {
          const members = Object.entries(map).map(([key, value]) => `${JSON.stringify(key)}: ${value}`);
          return `{${" ".repeat(spaces)}${members.join(`,${" ".repeat(spaces)}`)}${" ".repeat(spaces)}}`;
        };
        const texts = { base: write(base), current: write(left), proposed: write(right), path: "x.json" };
        const merged = textMerge.merge(texts);
        if (merged.kind === "obstacle") return;
        const found = new Map(Object.entries(JSON.parse(merged.text) as Record<string, number>));
        const [inBase, inLeft, inRight] = [base, left, right].map((map) => new Map(Object.entries(map)));
        for (const key of new Set([...Object.keys(base), ...Object.keys(left), ...Object.keys(right)])) {
          const was = inBase?.get(key);
          const expected = inLeft?.get(key) === was ? inRight?.get(key) : inLeft?.get(key);
          expect([key, found.get(key)]).toEqual([key, expected]);
        }
      }),
      { numRuns: RUNS * 10 },
    );
  });
});

function breakLines(
  base: readonly string[],
  picks: readonly { readonly at: number; readonly change: string }[],
): string {
  const broken = [...base];
  for (const { at, change } of picks) {
    const place = at % Math.max(1, broken.length);
    const line = broken[place] ?? "";
    if (change === "drop") broken.splice(place, 1);
    if (change === "twice") broken.splice(place, 0, line);
    if (change === "cut") broken[place] = `${line.slice(0, line.length / 2).trimEnd()}\n`;
    if (change === "up") broken.unshift(...broken.splice(place, 1));
  }
  return broken.join("");
}
