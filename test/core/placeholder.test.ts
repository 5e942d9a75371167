import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { heldBackIn, placeholderFor, withHeldBack } from "../../src/agents/coordination/gates/placeholder.ts";

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
        expect(heldBackIn(placeholderFor(hash))).toBe(hash);
        expect(heldBackIn(`${before}${placeholderFor(hash)}${after}`)).toBe(hash);
      }),
    );
  });

  it("comes through JSON, and JSON in JSON, as it is", () => {
    const placeholder = placeholderFor(A);
    expect(JSON.stringify(placeholder)).toBe(`"${placeholder}"`);
    expect(heldBackIn(JSON.stringify({ text: JSON.stringify([placeholder]) }))).toBe(A);
  });

  it("says nothing of the text but its hash", () => {
    expect(placeholderFor(A).replace(A, B)).toBe(placeholderFor(B));
  });

  it("is replaced at every place where it stands, each by its own", () => {
    const text = `one ${placeholderFor(A)} two ${placeholderFor(B)}${placeholderFor(A)}.`;
    const seen: string[] = [];
    const replaced = withHeldBack(text, (hash, placeholder) => {
      expect(placeholder).toBe(placeholderFor(hash));
      seen.push(hash);
      return `<${hash.slice(0, 1)}>`;
    });
    expect(replaced).toBe("one <a> two <b><a>.");
    expect(seen).toEqual([A, B, A]);
    expect(withHeldBack(text, () => "$&$1$<sha256>")).toBe(
      "one $&$1$<sha256> two $&$1$<sha256>$&$1$<sha256>.",
    );
  });

  it("of the first of several is told first, and telling does not depend on what was told before", () => {
    const text = placeholderFor(A) + placeholderFor(B);
    for (let time = 0; time < 3; time += 1) expect(heldBackIn(text)).toBe(A);
  });

  it.each([
    placeholderFor(A).slice(0, -1),
    placeholderFor(A).slice(1),
    placeholderFor(A.toUpperCase()),
    placeholderFor(A.slice(1)),
    placeholderFor(`${A}a`),
    placeholderFor("g".repeat(64)),
    placeholderFor(A).replaceAll(".", "x"),
    placeholderFor(A).replace("Ref ", "Ref  "),
    "",
    A,
  ])("%j is no placeholder", (text) => {
    expect(heldBackIn(text)).toBeUndefined();
    expect(withHeldBack(text, () => "!")).toBe(text);
  });
});
