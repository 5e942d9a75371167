/** Owns: that sensitive texts are masked wherever they are, and in bounded time also where a variable has many of them. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  cleanNestedTexts,
  collectSensitiveTexts,
  maskTexts,
} from "../../src/agents/coordination/workflow/state/sensitive-texts.ts";
import { createVariable, createView } from "./workflow-node-view-scene.ts";

const readHidden = (secret: unknown) =>
  collectSensitiveTexts([
    createView({
      variables: [createVariable("secret", { sensitive: true })],
      started: { inputs: { secret } },
    }),
  ]);

/** Masks each stretch of the text that hidden texts cover, where these overlap as one. */
function maskSlowly(text: string, hidden: readonly string[]): string {
  const ends = Array.from(text, (_, at) =>
    Math.max(at, ...hidden.filter((each) => text.startsWith(each, at)).map(({ length }) => at + length)),
  );
  let masked = "";
  let until = 0;
  for (const [at, end] of ends.entries()) {
    if (end > at && at >= until) masked += "[masked]";
    until = Math.max(until, end);
    if (at >= until) masked += text[at] ?? "";
  }
  return masked;
}

describe("the texts of sensitive variables", () => {
  it.each([
    ["abcdefgh-is-it", "[masked]-is-it"],
    ["it-is-abcdefgh", "it-is-[masked]"],
    ["abcdefghabcdefgh", "[masked][masked]"],
    ["abcdefghijkl", "[masked]"],
    ["abcdefg", "abcdefg"],
    ["", ""],
  ])("are masked where they overlap as one: %s", (text, masked) => {
    expect(maskTexts(text, readHidden(["abcdefgh", "efghijkl"]))).toBe(masked);
  });

  it("are masked wherever they are, whatever they have in common", () => {
    const createLetters = (minLength: number, maxLength: number) =>
      fc.string({ unit: fc.constantFrom("a", "a", "a", "b"), minLength, maxLength });
    fc.assert(
      fc.property(fc.array(createLetters(8, 12), { maxLength: 12 }), createLetters(0, 60), (hidden, text) => {
        expect(maskTexts(text, readHidden(hidden))).toBe(maskSlowly(text, hidden));
      }),
    );
  });

  const createRun = (letter: string, chars: number): string => letter.repeat(chars);
  const beginnings = Array.from({ length: 1_400 }, (_, at) => createRun("a", 8 + at));
  it.each([
    ["one long text in a longer one", [createRun("a", 100_000)], createRun("a", 200_000)],
    ["texts that begin with one another", beginnings, createRun("a", 1_000_000)],
    ["texts that begin so, beside others", beginnings, "aaaaaaaab".repeat(111_111)],
  ])("are found in less than a second, whatever is repeated in them: %s", (_, secret, shown) => {
    const measureMs = (): number => {
      const beganMs = performance.now();
      expect(maskTexts(shown, readHidden(secret))).not.toContain("a".repeat(8));
      return performance.now() - beganMs;
    };
    expect(Math.min(measureMs(), measureMs())).toBeLessThan(1_000);
  });

  it("are found in less than a second where there are as many as a request may have", () => {
    const createTexts = (start: string) =>
      Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`name${at}`, `${start}${at}`]));
    const secret = createTexts("customer-");
    const shown = { list: createTexts("a text "), copy: "of customer-17" };
    const measureMs = (): number => {
      const beganMs = performance.now();
      const hidden = readHidden(secret);
      const cleaned = cleanNestedTexts(shown, (text) => maskTexts(text, hidden));
      expect(cleaned).toEqual({ ...shown, copy: "of [masked]" });
      return performance.now() - beganMs;
    };
    expect(Math.min(measureMs(), measureMs(), measureMs())).toBeLessThan(1_000);
  });
});
