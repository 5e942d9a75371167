import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TextMerge, TextMerged } from "../../src/agents/coordination/ports/text-merge.ts";
import { createLineMerge } from "../../src/infra/merge/line-merge.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";

type Texts = Parameters<TextMerge["merge"]>[0];

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 100);
const merge = (texts: Texts): TextMerged => createLineMerge().merge(texts);

/** Few lines, so that the same come often. The last may lack its end. */
const texts = fc
  .array(fc.constantFrom("a\n", "b\n", "c\n", "\n", "a\r\n", "a"), { maxLength: 12 })
  .map((lines) => lines.join(""));

/** Each line once, in any order. */
const moved = fc
  .shuffledSubarray(["1\n", "2\n", "3\n", "4\n", "5\n", "6\n", "7\n"])
  .map((lines) => lines.join(""));

describe("for all texts", () => {
  it("what only one side changed is taken, and what both made the same", () => {
    fc.assert(
      fc.property(texts, texts, (base, text) => {
        const expected = { kind: "clean", text };
        expect(merge({ base, current: text, proposed: base })).toEqual(expected);
        expect(merge({ base, current: base, proposed: text })).toEqual(expected);
        expect(merge({ base, current: text, proposed: text })).toEqual(expected);
      }),
      { numRuns: RUNS * 10 },
    );
  });

  it.each([
    ["where the same lines come often", texts],
    ["where lines are moved", moved],
  ])("exchanging the sides changes nothing, %s", (_, any) => {
    fc.assert(
      fc.property(any, any, any, (base, current, proposed) => {
        expect(merge({ base, current, proposed })).toEqual(
          merge({ base, current: proposed, proposed: current }),
        );
      }),
      { numRuns: RUNS * 20 },
    );
  });

  it("what is around all changes is around the merged text", () => {
    fc.assert(
      fc.property(texts, texts, texts, fc.array(texts), (base, current, proposed, lines) => {
        const endLine = (text: string): string => text.replace(/([^\n])$/u, "$1\n");
        const wrapText = (text: string): string => `head\n${endLine(text)}tail\n${lines.join("")}`;
        const inner = merge({ base: endLine(base), current: endLine(current), proposed: endLine(proposed) });
        const outer = merge({
          base: wrapText(base),
          current: wrapText(current),
          proposed: wrapText(proposed),
        });
        expect(outer).toEqual(inner.kind === "clean" ? { kind: "clean", text: wrapText(inner.text) } : inner);
      }),
      { numRuns: RUNS * 20 },
    );
  });
});

/** Places in a text, a line that nobody changes between each two, and who made what of each. */
const places = fc.array(
  fc.record({
    was: fc.nat(3),
    made: fc.nat(3),
    by: fc.constantFrom("current", "proposed", "both", "nobody"),
    lineEnd: fc.constantFrom("\n", "\r\n"),
  }),
  { maxLength: 30 },
);

describe("for all changes of lines with an unchanged one between them", () => {
  it("the merged text has them all, and nothing else", () => {
    fc.assert(
      fc.property(places, fc.constantFrom("", "\n"), (all, end) => {
        const composeText = (...by: readonly string[]): string =>
          all
            .map(({ was, made, by: participant, lineEnd }, place) => {
              const isMade = by.includes(participant);
              const count = isMade ? made : was;
              const name = isMade ? "made" : "was";
              const lines = Array.from({ length: count }, (_, at) => `${name} ${place}.${at}${lineEnd}`);
              return `${lines.join("")}kept ${place}${lineEnd}`;
            })
            .join("") + `kept at the end${end}`;
        expect(
          merge({
            base: composeText(),
            current: composeText("current", "both"),
            proposed: composeText("proposed", "both"),
          }),
        ).toEqual({ kind: "clean", text: composeText("current", "proposed", "both") });
      }),
      { numRuns: RUNS * 10 },
    );
  });
});

/** Each line of the base is another one, and each side keeps, drops, changes or adds to it. */
const edits = fc.array(
  fc.record({
    current: fc.constantFrom("keep", "keep", "keep", "drop", "change", "add"),
    proposed: fc.constantFrom("keep", "keep", "keep", "drop", "change", "add", "same"),
  }),
  { maxLength: 20 },
);

describe("beside git", () => {
  // Git finds less in the way: of what both sides changed, it looks whether they changed a part of it to the same. Where
  // lines come more than once, each may take other ones of them for those that were kept.
  it("what is clean is clean for it, with the same text, where no line comes twice", () => {
    using folder = createTempFolder();
    let cleanCount = 0;
    fc.assert(
      fc.property(edits, fc.constantFrom("", "\n"), (all, end) => {
        const composeSide = (of: (edit: (typeof all)[number], at: number) => string): string =>
          `${all.map(of).join("")}end${end}`;
        const input = {
          base: composeSide((_, at) => editLine("keep", at, "")),
          current: composeSide((edit, at) => editLine(edit.current, at, "current")),
          proposed: composeSide(({ current, proposed }, at) =>
            proposed === "same" ? editLine(current, at, "current") : editLine(proposed, at, "proposed"),
          ),
        };
        const ours = merge(input);
        if (ours.kind === "obstacle") return;
        cleanCount += 1;
        expect(mergeWithGit(folder, input)).toEqual(ours);
      }),
      { numRuns: RUNS * 2 },
    );
    expect(cleanCount).toBeGreaterThan(RUNS / 10);
  });
});

function editLine(how: string, at: number, side: string): string {
  const line = `line ${at}\n`;
  if (how === "drop") return "";
  if (how === "change") return `line ${at} of ${side}\n`;
  return how === "add" ? `${line}${side} after ${at}\n` : line;
}

function mergeWithGit(folder: TempFolder, input: Texts): TextMerged {
  for (const name of ["current", "base", "proposed"] as const) writeFileSync(folder.file(name), input[name]);
  const { status, stdout } = spawnSync(
    "git",
    ["merge-file", "-p", "-q", folder.file("current"), folder.file("base"), folder.file("proposed")],
    {
      encoding: "utf8",
      cwd: folder.path,
      env: { ...process.env, GIT_CONFIG_GLOBAL: folder.file("none"), GIT_CONFIG_NOSYSTEM: "1" },
    },
  );
  if (status === 0) return { kind: "clean", text: stdout };
  return { kind: "obstacle", obstacle: "overlapping_changes" };
}
