import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findJsonExcess, parseBoundedJson } from "../../src/agents/coordination/std/json-text-excess.ts";

const tricky = fc.string({ unit: fc.constantFrom('"', "\\", "[", "]", "{", "}", ",", ":", "a", "😀") });
const { value: jsonValue } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    fc.oneof(tricky, fc.integer(), fc.constant(null), fc.boolean()),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(tricky, tie("value"), { maxKeys: 4 }),
  ),
}));

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function countOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return 1 + Object.values(value).reduce<number>((sum, each) => sum + countOf(each), 0);
}

describe("the excess of a JSON text", () => {
  it("is depth exactly where the value is deeper than the bound, whatever stands in its texts", () => {
    fc.assert(
      fc.property(jsonValue, fc.integer({ min: 0, max: 6 }), fc.boolean(), (value, depthMax, isIndented) => {
        const text = JSON.stringify(value, null, isIndented ? 1 : undefined);
        const excess = findJsonExcess(text, { depthMax, valuesMax: Infinity });
        expect(excess).toBe(depthOf(value) > depthMax ? "depth" : undefined);
      }),
    );
  });

  it("is values only where the value has more of them than the bound", () => {
    fc.assert(
      fc.property(jsonValue, fc.integer({ min: 1, max: 20 }), (value, valuesMax) => {
        const excess = findJsonExcess(JSON.stringify(value), { depthMax: Infinity, valuesMax });
        if (excess !== undefined) expect(countOf(value)).toBeGreaterThan(valuesMax);
      }),
    );
    expect(findJsonExcess("[1,2,3]", { depthMax: 1, valuesMax: 2 })).toBe("values");
  });

  it("takes one pass over a text that is not JSON", () => {
    for (const text of [
      '"'.repeat(1_000_000),
      "\\".repeat(1_000_000),
      `"${"\\".repeat(999_999)}`,
      "]".repeat(1_000_000),
    ])
      expect(findJsonExcess(text, { depthMax: 1, valuesMax: 1 })).toBeUndefined();
  });
});

describe("parsing within bounds", () => {
  it("reads no text that is not JSON or breaks a bound", () => {
    const parse = (text: string): unknown => parseBoundedJson(text, { depthMax: 1, valuesMax: 2 });
    expect(["[1,2]", "[1,2,3]", "[[]]", "[1,"].map(parse)).toEqual([[1, 2], undefined, undefined, undefined]);
  });
});
