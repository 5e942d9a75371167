/** Owns: the value with which the protocol's mock provider answers a schema, and how large it may become. */
import { describe, expect, it } from "vitest";
import { createSchemaSample } from "../../src/plugins/openwop/conformance/sample-of.ts";

describe("the sample of a schema", () => {
  it("has as many items as a nested array asks for", () => {
    const row = { type: "array", minItems: 2, items: { type: "integer", minimum: 3 } };
    expect(createSchemaSample({ type: "array", minItems: 3, items: row })).toEqual([
      [3, 3],
      [3, 3],
      [3, 3],
    ]);
  });

  it.each([
    [{ const: 1, default: 2 }, 1],
    [{ const: null }, null],
    [{ default: "d", enum: ["e"] }, "d"],
    [{ enum: ["e", "f"], type: "string" }, "e"],
    [{ type: ["null", "string"] }, null],
    [{ type: "string", minLength: 8 }, "sample.."],
    [{ type: "object", required: ["a"], properties: { a: { type: "boolean" } } }, { a: true }],
    ["none", null],
  ])("of %j is %j", (schema, sample) => {
    expect(createSchemaSample(schema)).toEqual(sample);
  });

  it("stays small where a long constant is repeated", () => {
    const items = { type: "array", minItems: 100, items: { const: "x".repeat(50_000) } };
    expect(JSON.stringify(createSchemaSample(items)).length).toBeLessThan(200_000);
  });

  it("stays small where an object with a long key is repeated", () => {
    let schema: object = { type: "object", required: ["k".repeat(10_000)] };
    for (let depth = 0; depth < 3; depth += 1) schema = { type: "array", minItems: 100, items: schema };
    expect(JSON.stringify(createSchemaSample(schema)).length).toBeLessThan(1_000_000);
  });

  it.each<[string, (inner: object) => object]>([
    ["arrays", (items) => ({ type: "array", minItems: 100, items })],
    [
      "objects in arrays",
      (a) => ({ type: "array", minItems: 9, items: { type: "object", required: ["a"], properties: { a } } }),
    ],
    ["repeated members", (a) => ({ type: "object", required: Array(50).fill("a"), properties: { a } })],
  ])("stays small where %s are nested", (_, nest) => {
    let schema: object = { type: "string", minLength: 10_000 };
    for (let depth = 0; depth < 8; depth += 1) schema = nest(schema);
    expect(JSON.stringify(createSchemaSample(schema)).length).toBeLessThan(1_000_000);
  });
});
