import fc from "fast-check";
import { expect, it } from "vitest";
import { writeJsonInParts } from "../../src/platform/write-json.ts";

function write(value: unknown): { readonly text: string; readonly slices: number } {
  const work = writeJsonInParts(value);
  for (let slices = 1; ; slices += 1) {
    const slice = work.next();
    if (slice.done === true) return { text: slice.value.join(""), slices };
  }
}

it("what is written in slices is what JSON.stringify writes", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      expect(write(value).text).toBe(JSON.stringify(value));
    }),
  );
  expect(write({ a: undefined, b: [undefined, { c: undefined }] }).text).toBe('{"b":[null,{}]}');
});

it.each([
  ["a text", "x".repeat(100_000)],
  ["a name", { ["x".repeat(100_000)]: 1 }],
  ["many numbers", Array.from({ length: 50_000 }, (_, index) => index)],
  ["deep lists", Array.from({ length: 2_000 }).reduce<unknown>((inner) => [inner], 0)],
])("writes a large value that is %s as JSON.stringify does", (_, value) => {
  expect(write({ value }).text).toBe(JSON.stringify({ value }));
});

it("writes many numbers in many slices", () => {
  expect(write(Array.from({ length: 50_000 }, (_, index) => index)).slices).toBeGreaterThan(40);
});

it("writes many long texts in as many slices", () => {
  expect(write(Array.from({ length: 50 }, () => "x".repeat(100_000))).slices).toBeGreaterThan(40);
});

it("large values take many slices", () => {
  const events = Array.from({ length: 5_000 }, (_, sequence) => ({
    sequence,
    payload: { a: "x".repeat(100) },
  }));
  const { text, slices } = write({ events, isComplete: true });
  expect(text).toBe(JSON.stringify({ events, isComplete: true }));
  expect(slices).toBeGreaterThan(8);
});
