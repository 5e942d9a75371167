import { describe, expect, it } from "vitest";
import { problemsOf, step } from "./plan-scene.ts";

describe("an output schema", () => {
  const findProblems = (outputSchema: unknown): string[] =>
    problemsOf([step("a", [], { outputSchema })]).map((each) => each.replace("steps[0].outputSchema", "#"));

  it.each<[unknown]>([
    [{}],
    [{ type: ["string", "null"], enum: ["a", null], minLength: 0, maxLength: 5, pattern: "^a+$" }],
    [
      {
        type: "object",
        properties: { a: true, b: { $ref: "#/$defs/x~1y" } },
        $defs: { "x/y": { minimum: -1.5 } },
      },
    ],
    [{ type: "object", properties: { next: { $ref: "#" } } }],
    [{ anyOf: [{ $ref: "#/$defs/a" }], $defs: { a: { items: { $ref: "#" } } } }],
    [{ prefixItems: [{ type: "string" }], items: false }],
    [{ $id: "https://example.com/own", $schema: "https://json-schema.org/draft/2020-12/schema" }],
    [{ properties: { $id: {}, dependencies: {} }, dependentRequired: { a: ["b"] } }],
    [{ required: ["a"], additionalProperties: false, properties: {}, patternProperties: { "^a": {} } }],
    [{ description: "annotations", "x-mine": 7, default: { type: "anything" }, const: { type: 1 } }],
  ])("of %j is usable", (schema) => {
    expect(findProblems(schema)).toEqual([]);
  });

  it.each<[unknown, string]>([
    [{ type: "text" }, "#.type"],
    [{ type: [] }, "#.type"],
    [{ type: ["null", "null"] }, "#.type"],
    [{ properties: [] }, "#.properties"],
    [{ properties: { a: 1 } }, "#.properties.a"],
    [{ properties: { a: { items: { minimum: "1" } } } }, "#.properties.a.items.minimum"],
    [{ required: "a" }, "#.required"],
    [{ required: ["a", "a"] }, "#.required"],
    [{ required: ["a"], properties: { b: {} }, additionalProperties: false }, "#.required"],
    [{ enum: [] }, "#.enum"],
    [{ maxItems: -1 }, "#.maxItems"],
    [{ multipleOf: 0 }, "#.multipleOf"],
    [{ pattern: "(" }, "#.pattern"],
    [{ pattern: 1 }, "#.pattern"],
    [{ pattern: "(?=a)" }, "#.pattern"],
    [{ patternProperties: { "(a)\\1": {} } }, "#.patternProperties.(a)\\1"],
    [{ allOf: Array.from({ length: 5 }, () => ({ pattern: "x".repeat(999) })) }, "#.allOf[4].pattern"],
    [{ allOf: Array.from({ length: 30 }, () => ({ pattern: "a{999}" })) }, "#.allOf[25].pattern"],
    [{ patternProperties: Object.fromEntries(createManySchemas(257)) }, "#.patternProperties"],
    [{ anyOf: Array.from({ length: 257 }, () => ({})) }, "#.anyOf"],
    [{ properties: Object.fromEntries(createManySchemas(1_000)) }, "#"],
    [chainOfReferences(80), "#"],
    [{ items: [{ type: "string" }] }, "#.items"],
    [{ additionalItems: false }, "#.additionalItems"],
    [{ unevaluatedProperties: false }, "#.unevaluatedProperties"],
    [{ unevaluatedItems: {} }, "#.unevaluatedItems"],
    [{ dependencies: { a: ["b"] } }, "#.dependencies"],
    [{ dependentRequired: { a: "b" } }, "#.dependentRequired"],
    [{ properties: { a: { $id: "b" } } }, "#.properties.a.$id"],
    [{ pattern: "x".repeat(1_001) }, "#.pattern"],
    [{ anyOf: [] }, "#.anyOf"],
    [{ allOf: [{}, null] }, "#.allOf[1]"],
    [{ $ref: "https://example.com/schema" }, "#.$ref"],
    [{ $ref: "#/$defs/none" }, "#.$ref"],
    [{ $ref: 1 }, "#.$ref"],
    [{ $ref: "#%" }, "#.$ref"],
    [{ $dynamicRef: "#" }, "#.$dynamicRef"],
    [{ $ref: "#" }, "#"],
    [{ properties: { a: { not: { $ref: "#/properties/a" } } } }, "#.properties.a"],
    [{ enum: Array.from({ length: 5_000 }, (_, index) => index) }, "#"],
    [createDeepSchema(9), "#"],
  ])("of %j is refused at %s", (schema, path) => {
    expect(findProblems(schema)).toEqual([`OUTPUT_SCHEMA_INVALID ${path}`]);
  });
});

function createManySchemas(count: number): [string, unknown][] {
  return Array.from({ length: count }, (_, index) => [`a${index}`, {}]);
}

function chainOfReferences(length: number): unknown {
  const links = Array.from({ length }, (_, index): [string, unknown] => [
    `d${index}`,
    { properties: { next: { $ref: `#/$defs/d${(index + 1) % length}` } } },
  ]);
  return { $ref: "#/$defs/d0", $defs: Object.fromEntries(links) };
}

function createDeepSchema(levels: number): unknown {
  let schema: unknown = {};
  for (let level = 0; level < levels; level += 1) schema = { properties: { a: schema } };
  return schema;
}
