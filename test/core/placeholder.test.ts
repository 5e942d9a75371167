import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  findHeldBackName,
  formatPlaceholder,
  isOnlyPlaceholders,
  replacePlaceholders,
} from "../../src/agents/coordination/gates/placeholder.ts";

const sha256 = fc.string({
  unit: fc.integer({ min: 0, max: 15 }).map((digit) => digit.toString(16)),
  minLength: 64,
  maxLength: 64,
});
const A = "a".repeat(64);
const B = "b".repeat(64);

describe("what stands for a text that was kept back", () => {
  it("names the text, and is found again wherever it stands", () => {
    fc.assert(
      fc.property(sha256, fc.string(), fc.string(), (hash, before, after) => {
        expect(findHeldBackName(formatPlaceholder(hash))).toBe(hash);
        expect(findHeldBackName(`${before}${formatPlaceholder(hash)}${after}`)).toBe(hash);
      }),
    );
  });

  it("comes through JSON, and JSON in JSON, as it is", () => {
    const placeholder = formatPlaceholder(A);
    expect(JSON.stringify(placeholder)).toBe(`"${placeholder}"`);
    expect(findHeldBackName(JSON.stringify({ text: JSON.stringify([placeholder]) }))).toBe(A);
  });

  it("says nothing of the text but its hash", () => {
    expect(formatPlaceholder(A).replace(A, B)).toBe(formatPlaceholder(B));
  });

  it("is replaced at every place where it stands, each by its own", () => {
    const text = `one ${formatPlaceholder(A)} two ${formatPlaceholder(B)}${formatPlaceholder(A)}.`;
    const seen: string[] = [];
    const replaced = replacePlaceholders(text, (hash, placeholder) => {
      expect(placeholder).toBe(formatPlaceholder(hash));
      seen.push(hash);
      return `<${hash.slice(0, 1)}>`;
    });
    expect(replaced).toBe("one <a> two <b><a>.");
    expect(seen).toEqual([A, B, A]);
    expect(replacePlaceholders(text, () => "$&$1$<sha256>")).toBe(
      "one $&$1$<sha256> two $&$1$<sha256>$&$1$<sha256>.",
    );
  });

  it("of the first of several is told first, and telling does not depend on what was told before", () => {
    const text = formatPlaceholder(A) + formatPlaceholder(B);
    for (let time = 0; time < 3; time += 1) expect(findHeldBackName(text)).toBe(A);
  });

  it.each([
    formatPlaceholder(A).slice(0, -1),
    formatPlaceholder(A).slice(1),
    formatPlaceholder(A.toUpperCase()),
    formatPlaceholder(A.slice(1)),
    formatPlaceholder(`${A}a`),
    formatPlaceholder("g".repeat(64)),
    formatPlaceholder(A).replaceAll(".", "x"),
    formatPlaceholder(A).replace("Ref ", "Ref  "),
    "",
    A,
  ])("%j is no placeholder", (text) => {
    expect(findHeldBackName(text)).toBeUndefined();
    expect(replacePlaceholders(text, () => "!")).toBe(text);
  });
});

describe("a text of placeholders alone", () => {
  it.each([
    [formatPlaceholder(A), true],
    [` ${formatPlaceholder(A)}\n${formatPlaceholder(B)} `, true],
    [`${formatPlaceholder(A)} and more`, false],
    ["a text", false],
    [" ", false],
  ])("%j: %s", (text, isAlone) => {
    expect(isOnlyPlaceholders(text)).toBe(isAlone);
  });
});
