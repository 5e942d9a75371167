import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { TextMerge, TextMerged } from "../../src/agents/coordination/ports/text-merge.ts";
import { createLineMerge } from "../../src/infra/merge/line-merge.ts";

const merge = (texts: Parameters<TextMerge["merge"]>[0]): TextMerged => createLineMerge().merge(texts);
const clean = (text: string): unknown => ({ kind: "clean", text });
const OVERLAP = { kind: "obstacle", obstacle: "overlapping_changes" };
const TOO_LARGE = { kind: "obstacle", obstacle: "too_large" };

describe("merging by line", () => {
  it("takes changes of different lines together", () => {
    const base = "one\ntwo\nthree\nfour\n";
    expect(
      merge({ base, current: "ONE\ntwo\nthree\nfour\n", proposed: "one\ntwo\nTHREE\nfour\nfive\n" }),
    ).toEqual(clean("ONE\ntwo\nTHREE\nfour\nfive\n"));
  });

  it("takes several changes of each side together, one within the other", () => {
    const base = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
    const current = "zero\none\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n";
    expect(merge({ base, current, proposed: "one\ntwo\nfour\nfive\nsix\nseven\n" })).toEqual(
      clean("zero\none\ntwo\nfour\nfive\nsix\nSEVEN\n"),
    );
  });

  it("takes once what both sides made", () => {
    const base = "one\ntwo\nthree\n";
    expect(merge({ base, current: "one\nTWO\nthree\n", proposed: "one\nTWO\nthree\nfour\n" })).toEqual(
      clean("one\nTWO\nthree\nfour\n"),
    );
  });

  it.each([
    ["the same line", "one\n2\nthree\n", "one\nTWO\nthree\n"],
    ["lines next to each other", "oNe\ntwo\nthree\n", "one\ntWo\nthree\n"],
    ["a line that the other split, and the next", "o\nne\ntwo\nthree\n", "one\nTWO\nthree\n"],
    ["a line, and two before it that the other joined", "onetwo\nthree\n", "one\ntwo\nTHREE\n"],
    ["a line, and what was put before it", "one\nnew\ntwo\nthree\n", "one\nTWO\nthree\n"],
    ["a line that the other removed", "one\nthree\n", "one\nTWO\nthree\n"],
    ["the place where both put something", "one\nx\ntwo\nthree\n", "one\ny\ntwo\nthree\n"],
    ["the end", "one\ntwo\nthree\nx\n", "one\ntwo\nthree\ny\n"],
    ["everything", "x\n", "y\n"],
  ])("finds an obstacle where both changed %s", (_, current, proposed) => {
    expect(merge({ base: "one\ntwo\nthree\n", current, proposed })).toEqual(OVERLAP);
    expect(merge({ base: "one\ntwo\nthree\n", current: proposed, proposed: current })).toEqual(OVERLAP);
  });

  it("keeps ends of lines, and the lack of one, that nobody changed", () => {
    const base = "one\r\ntwo\nthree\r\nfour\rfive";
    expect(
      merge({ base, current: "ONE\r\ntwo\nthree\r\nfour\rfive", proposed: "one\r\ntwo\n3\r\nfour\rfive" }),
    ).toEqual(clean("ONE\r\ntwo\n3\r\nfour\rfive"));
  });

  it("takes another end of a line for a change of it", () => {
    const base = "one\ntwo\nthree\nfour";
    expect(merge({ base, current: "one\r\ntwo\nthree\nfour", proposed: "1\ntwo\nthree\nfour" })).toEqual(
      OVERLAP,
    );
    expect(merge({ base, current: "one\ntwo\nthree\nfour\n", proposed: "1\ntwo\nthree\nfour" })).toEqual(
      clean("1\ntwo\nthree\nfour\n"),
    );
    expect(merge({ base, current: "one\ntwo\nthree\nfour\n", proposed: `${base}\nfive` })).toEqual(OVERLAP);
  });

  it("keeps a byte order mark that nobody changed", () => {
    const base = "\uFEFFone\ntwo\nthree\n";
    expect(merge({ base, current: `${base}four\n`, proposed: "\uFEFFone\nTWO\nthree\n" })).toEqual(
      clean("\uFEFFone\nTWO\nthree\nfour\n"),
    );
  });

  it("takes lines for what they say, whatever they are called", () => {
    const base = "__proto__\nconstructor\n0\n1";
    expect(merge({ base, current: `toString\n${base}`, proposed: "__proto__\n0\n1" })).toEqual(
      clean("toString\n__proto__\n0\n1"),
    );
  });

  it("takes once what both made the same of one place, and what one made of another, among lines that come twice", () => {
    const [base, current, proposed] = ["r\ns\ns\nr\n", "N\ns\ns\nr\n", "N\ns\ns\nM\n"];
    expect(merge({ base, current, proposed })).toEqual(clean(proposed));
  });

  it.each([
    ["abcde", "cabde"],
    ["abcde", "bcade"],
    ["edcba", "cedba"],
    ["edcba", "dceba"],
  ])(
    "moves a block on one side, from %s to %s, and changes one that it passes on the other",
    (before, after) => {
      const createBlocks = (names: string): string =>
        Array.from(names, (name) => `${name} {\n  ${name}\n} ${name}\n\n`).join("");
      const changeText = (text: string): string => text.replace(/^ {2}[bd]$/mu, "  changed");
      expect(
        merge({
          base: createBlocks(before),
          current: createBlocks(after),
          proposed: changeText(createBlocks(before)),
        }),
      ).toEqual(clean(changeText(createBlocks(after))));
    },
  );
});

describe("two sides that moved the same line", () => {
  it("come to the same whichever of them is the current one", () => {
    const [base, one, other] = ["6\n3\n1\n4\n", "1\n3\n4\n", "6\n3\n4\n1\n"];
    const merged = merge({ base, current: one, proposed: other });
    expect(merge({ base, current: other, proposed: one })).toEqual(merged);
  });
});

describe("the bounds of a merge", () => {
  const createLines = (count: number, line: (at: number) => string): string[] =>
    Array.from({ length: count }, (_, at) => line(at));
  const withLines = (base: readonly string[], changes: Readonly<Record<number, string>>): string =>
    base.map((line, at) => changes[at] ?? line).join("");

  /** Changed at both ends by one side and in the middle by the other: all between must be compared. */
  function mergeAcross(base: readonly string[]): unknown {
    const count = base.length;
    return merge({
      base: base.join(""),
      current: withLines(base, { 1: "first\n", [count - 2]: "last\n" }),
      proposed: withLines(base, { [count >> 1]: "middle\n" }),
    });
  }

  it("merges two places of a text of any number of lines, alike or not", () => {
    const base = createLines(2_400_000, (at) => (at % 2 === 0 ? "a\n" : "b\n"));
    const [first, last] = [100, 2_399_000];
    expect(
      merge({
        base: base.join(""),
        current: withLines(base, { [last]: "y\n" }),
        proposed: withLines(base, { [first]: "x\n" }),
      }),
    ).toEqual(clean(withLines(base, { [first]: "x\n", [last]: "y\n" })));
  });

  it("merges changes all over a text of many lines that differ", () => {
    const base = createLines(18_000, (at) => (at % 3 === 0 ? "}\n" : `line ${at}\n`));
    expect(mergeAcross(base)).toEqual(
      clean(withLines(base, { 1: "first\n", [17_998]: "last\n", [9_000]: "middle\n" })),
    );
  });

  it.each([
    ["2,000 lines that are the same", createLines(2_000, () => "\n")],
    ["2,000 lines of two kinds", createLines(2_000, (at) => `${at % 2}\n`)],
    ["20,000 lines that each come twice", createLines(20_000, (at) => `${at >> 1}\n`)],
    ["5 MB of empty lines", createLines(4_900_000, () => "\n")],
    ["60,000 lines that differ", createLines(60_000, (at) => `${at}\n`)],
  ])("finds %s too large to compare", (_, base) => {
    expect(mergeAcross(base)).toEqual(TOO_LARGE);
  });

  it("finds lines turned around too large to compare where they are many", () => {
    const base = createLines(20_000, (at) => `${at}\n`);
    const proposed = withLines(base, { 0: "x\n", 19_999: "y\n" });
    expect(merge({ base: base.join(""), current: base.toReversed().join(""), proposed })).toEqual(TOO_LARGE);
  });

  it("merges what is at most as large as a file that is looked into, and what only one side changed always", () => {
    const base = "é\n".repeat(BOUNDS.mergeBytesMax / 3 - 2);
    const [current, proposed] = [`x\n${base}`, `${base}y\n`];
    expect(merge({ base, current, proposed })).toEqual(clean(`x\n${base}y\n`));
    const tooLarge = `${base}${"é\n".repeat(3)}`;
    expect(merge({ base, current, proposed: tooLarge })).toEqual(TOO_LARGE);
    expect(merge({ base: tooLarge, current, proposed })).toEqual(TOO_LARGE);
    expect(merge({ base, current: base, proposed: tooLarge })).toEqual(clean(tooLarge));
    expect(merge({ base, current: tooLarge, proposed: base })).toEqual(clean(tooLarge));
    expect(merge({ base, current: tooLarge, proposed: tooLarge })).toEqual(clean(tooLarge));
  });
});
