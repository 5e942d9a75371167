/** The part that a session is shown of a text which is too long for it. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CoordinationId, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { findOccurrences, cutTextPage } from "../../src/agents/coordination/results/cut-text.ts";
import { createReadOn, SHORTENED } from "../../src/agents/coordination/results/read-on.ts";
import { shortenValue } from "../../src/agents/coordination/results/shorten-json.ts";
import { shortenText } from "../../src/agents/coordination/results/shorten-text.ts";
import { writeLongText } from "../support/long-text.ts";

const SHA = "a".repeat(64);
const of = { coordinationId: "co-1" as CoordinationId, stepId: "step-1" as StepId };
const readOn = createReadOn({ sha256: SHA, chars: 100_000, of });
const CHARS_MAX = 2_000;
const shorten = (text: string, charsMax = CHARS_MAX): string => shortenText(text, { charsMax, readOn });

/** Long enough to be shortened, of pieces that are hard to cut. */
const longText = fc
  .array(fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("\n", "😀", '{"a":1}', "```", "\ud83d")))
  .map((pieces) => `${pieces.join("")}${"😀\n".repeat(CHARS_MAX / 2)}${pieces.join("")}`);

describe("a text that is too long", () => {
  it("has its beginning, its end, and between them how long it is and how to read on", () => {
    const text = writeLongText({
      chars: 100_000,
      head: "BEGIN",
      middle: "MIDDLE",
      tail: "END",
      lineChars: 80,
    });
    const shown = shorten(text, 16_000);
    expect(shown.startsWith("BEGIN")).toBe(true);
    expect(shown.endsWith("END")).toBe(true);
    expect(shown).not.toContain("MIDDLE");
    expect(shown.length).toBeLessThanOrEqual(16_000);
    expect(shown.length).toBeGreaterThan(14_000);
    const [, from] = /stepId step-1, sha256 a+, from (\d+)\.\]\]\n/u.exec(shown) ?? [];
    expect(text.slice(0, Number(from))).toBe(shown.slice(0, Number(from)));
  });

  it("is left alone where it just fits", () => {
    const text = "x".repeat(CHARS_MAX);
    expect(shorten(text)).toBe(text);
    expect(shorten(`${text}x`)).toContain(SHORTENED);
  });

  it("keeps the last line, where an agent states its confidence", () => {
    const shown = shorten(`${"word ".repeat(5_000)}\n{"confidence": 0.9}`);
    expect(shown.split("\n").at(-1)).toBe('{"confidence": 0.9}');
  });

  it("stays JSON where its last line is a long object", () => {
    const last = JSON.stringify({ answer: "y".repeat(50_000), confidence: 0.9 });
    const shown = shorten(`${"word ".repeat(5_000)}\n${last}`, 16_000);
    expect(JSON.parse(shown.split("\n").at(-1) ?? "")).toMatchObject({ confidence: 0.9 });
  });

  it("of one line of ten million characters is bounded, too", () => {
    const text = writeLongText({ chars: 10_000_000, head: "BEGIN", middle: "MIDDLE", tail: "END" });
    expect(shorten(text, 16_000).length).toBeLessThanOrEqual(16_000);
  });

  it("is never longer than it may be, never half a character, and the same when it is shortened again", () => {
    fc.assert(
      fc.property(longText, (text) => {
        const shown = shorten(text);
        expect(shown.length).toBeLessThanOrEqual(CHARS_MAX);
        expect(shorten(shown)).toBe(shown);
        if (text.isWellFormed()) expect(shown.isWellFormed()).toBe(true);
      }),
    );
  });
});

describe("JSON that is too long", () => {
  const report = {
    outcome: "completed",
    score: 7,
    findings: Array.from({ length: 3_000 }, (_, index) => ({
      file: `file-${index}.ts`,
      note: "n".repeat(50),
    })),
    log: "line\n".repeat(20_000),
  };

  it("is still JSON, with its short members as they are", () => {
    const shown = shorten(JSON.stringify(report), 16_000);
    expect(shown.length).toBeLessThanOrEqual(16_000);
    const parsed = JSON.parse(shown) as typeof report & { _shortened: string };
    expect(parsed).toMatchObject({
      outcome: "completed",
      score: 7,
      log: expect.stringMatching(/left out/u) as string,
    });
    expect(parsed.findings[0]).toEqual(report.findings[0]);
    expect(parsed._shortened).toContain("coordination_result");
  });

  it("stays in its block of code", () => {
    const shown = shorten(`\`\`\`json\n${JSON.stringify(report, null, 2)}\n\`\`\``);
    const inner = /^```json\n(?<json>.*)\n```$/su.exec(shown)?.groups?.["json"] ?? "";
    expect(JSON.parse(inner)).toMatchObject({ outcome: "completed" });
  });

  it.each([CHARS_MAX - 100, CHARS_MAX + 100, 100_000])(
    "is bounded behind a fence with a word of %i letters, and cut like prose",
    (letters) => {
      const text = `\`\`\`${"a".repeat(letters)}\n${JSON.stringify(report)}\n\`\`\``;
      const shown = shorten(text);
      expect(shown.length).toBeLessThanOrEqual(CHARS_MAX);
      expect(shown.startsWith("```aaa")).toBe(true);
      expect(shown.endsWith("```")).toBe(true);
    },
  );

  it("is still JSON where it is too long to be read", () => {
    const shown = shorten(JSON.stringify({ ...report, log: 'quote " and \n'.repeat(200_000) }));
    expect(shown.length).toBeLessThanOrEqual(CHARS_MAX);
    expect(JSON.parse(shown)).toMatchObject({ begins: expect.stringMatching(/^\{"outcome"/u) as string });
  });

  it("keeps numbers as they are written, and says how to read on where all of it fits without its spaces", () => {
    const numbers = '"id":9007199254740993,"most":1e400,"share":1.0,"zero":-0,"count":7';
    const spaced = `{"log":"short",${" ".repeat(CHARS_MAX)}${numbers}}`;
    expect(shorten(spaced)).toBe(`{"_shortened":"${readOn(0)}","log":"short",${numbers}}`);
    const cut = shorten(`{${numbers},"inner":[9007199254740993],"log":"${"x".repeat(CHARS_MAX)}"}`);
    expect(cut).toContain(`{"_shortened":"${readOn(0)}",${numbers},"inner":[9007199254740993],"log":"xxx`);
    const lastLine = `{"log":"${"x".repeat(5_000)}",${numbers}}`;
    expect(shorten(`${"word ".repeat(5_000)}\n${lastLine}`, 16_000)).toMatch(
      new RegExp(`,${numbers}\\}$`, "u"),
    );
  });

  it("keeps its form where it has very many numbers, and is cut like prose where some would change", () => {
    const writeTable = (last: string): string => `{"rows":[${"0.5,".repeat(20_000)}${last}],"summary":"all"}`;
    expect(JSON.parse(shorten(writeTable("12")))).toMatchObject({ summary: "all" });
    expect(JSON.parse(shorten(writeTable("1.0")))).toMatchObject({
      ends: expect.stringMatching(/0\.5,1\.0\],"summary":"all"\}$/u) as string,
    });
    const digits = fc.stringMatching(/^-?(?:0|[1-9]\d{0,24})(?:\.\d{1,20})?(?:[eE][+-]?\d{1,3})?$/u);
    const shortNumber = fc.constantFrom("-0", "1.0", "1.5", "0.0000001", "1e3", "-0.0");
    fc.assert(
      fc.property(fc.oneof(digits, shortNumber), (number) => {
        const shown = shorten(writeTable(number));
        expect(shown.includes(`,${number}]`) || shown.includes(`,${number},`)).toBe(true);
      }),
    );
  });

  it("has our note in the place of one that its agent passes on", () => {
    const relayed = { first: 1, _shortened: "Read on elsewhere.", log: "x".repeat(CHARS_MAX) };
    const shown = shorten(JSON.stringify(relayed));
    expect(JSON.parse(shown)).toMatchObject({ _shortened: readOn(0), first: 1 });
    expect(shown).not.toContain("elsewhere");
  });

  it("of any kind is JSON of the length that it may have", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: "binary" }), fc.nat(4), (value, times) => {
        const long = [value, Array.from({ length: 50 }, () => value), "😀".repeat(times * 1_000)] as never;
        const shown = JSON.stringify(shortenValue(long, { charsMax: CHARS_MAX, readOn }));
        expect(shown.length).toBeLessThanOrEqual(CHARS_MAX);
        expect(JSON.parse(shown)).toEqual(JSON.parse(JSON.stringify(JSON.parse(shown))));
      }),
    );
  });
});

describe("the pages of a text", () => {
  const readAll = (text: string, chars: number): string => {
    let read = "";
    for (let from: number | undefined = 0; from !== undefined;) {
      const page = cutTextPage(text, from, chars);
      expect(JSON.stringify(page.text).length).toBeLessThanOrEqual(Math.max(2 * chars, 14));
      read += page.text;
      from = page.next;
    }
    return read;
  };

  it("read one after the other are the whole text", () => {
    fc.assert(
      fc.property(longText, fc.integer({ min: 1, max: 500 }), (text, chars) => {
        expect(readAll(text, chars)).toBe(text);
      }),
    );
  });

  it("begin with a whole character, and end with the text", () => {
    expect(cutTextPage("a😀b", 2, 10)).toEqual({ from: 1, text: "😀b" });
    expect(cutTextPage("a😀b", 99, 10)).toEqual({ from: 4, text: "" });
  });
});

describe("searching in a text", () => {
  it("tells where a text is, and what stands around it", () => {
    const text = `${"x".repeat(1_000)}needle${"y".repeat(1_000)}needle`;
    const [first, second] = findOccurrences(text, { wanted: "needle", from: 0, placesMax: 5 });
    expect(first).toEqual({ at: 1_000, around: `${"x".repeat(80)}needle${"y".repeat(80)}` });
    expect(second?.at).toBe(2_006);
    expect(findOccurrences(text, { wanted: "needle", from: 1_001, placesMax: 5 })).toHaveLength(1);
    expect(findOccurrences(text, { wanted: "needle", from: 0, placesMax: 1 })).toHaveLength(1);
  });
});
