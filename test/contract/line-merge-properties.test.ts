import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TextMerge, TextMerged } from "../../src/agents/coordination/ports/text-merge.ts";
import { createLineMerge } from "../../src/infra/merge/line-merge.ts";
import { tempFolder, type TempFolder } from "../support/temp-ledger.ts";

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
        const whole = (text: string): string => text.replace(/([^\n])$/u, "$1\n");
        const around = (text: string): string => `head\n${whole(text)}tail\n${lines.join("")}`;
        const inner = merge({ base: whole(base), current: whole(current), proposed: whole(proposed) });
        const outer = merge({ base: around(base), current: around(current), proposed: around(proposed) });
        expect(outer).toEqual(inner.kind === "clean" ? { kind: "clean", text: around(inner.text) } : inner);
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
        const text = (...by: readonly string[]): string =>
          all
            .map(({ was, made, by: who, lineEnd }, place) => {
              const isMade = by.includes(who);
              const count = isMade ? made : was;
              const name = isMade ? "made" : "was";
              const lines = Array.from({ length: count }, (_, at) => `${name} ${place}.${at}${lineEnd}`);
              return `${lines.join("")}kept ${place}${lineEnd}`;
            })
            .join("") + `kept at the end${end}`;
        expect(
          merge({ base: text(), current: text("current", "both"), proposed: text("proposed", "both") }),
        ).toEqual({ kind: "clean", text: text("current", "proposed", "both") });
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
    using folder = tempFolder();
    let cleanCount = 0;
    fc.assert(
      fc.property(edits, fc.constantFrom("", "\n"), (all, end) => {
        const side = (of: (edit: (typeof all)[number], at: number) => string): string =>
          `${all.map(of).join("")}end${end}`;
        const input = {
          base: side((_, at) => edited("keep", at, "")),
          current: side((edit, at) => edited(edit.current, at, "current")),
          proposed: side(({ current, proposed }, at) =>
            proposed === "same" ? edited(current, at, "current") : edited(proposed, at, "proposed"),
          ),
        };
        const ours = merge(input);
        if (ours.kind === "obstacle") return;
        cleanCount += 1;
        expect(gitMerge(folder, input)).toEqual(ours);
      }),
      { numRuns: RUNS * 2 },
    );
    expect(cleanCount).toBeGreaterThan(RUNS / 10);
  });
});

function edited(how: string, at: number, side: string): string {
  const line = `line ${at}\n`;
  if (how === "drop") return "";
  if (how === "change") return `line ${at} of ${side}\n`;
  return how === "add" ? `${line}${side} after ${at}\n` : line;
}

function gitMerge(folder: TempFolder, input: Texts): TextMerged {
  for (const [name, text] of Object.entries(input)) writeFileSync(folder.file(name), text);
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
