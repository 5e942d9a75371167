import { beforeEach, describe, expect, it } from "vitest";
import type { OutputContract, OutputProblem } from "../../src/agents/coordination/ports/output-contract.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";
import { problemsOf, step, type Fields } from "../core/plan-scene.ts";

/** Far above what was measured (1 s at the most), so that a busy machine does not matter; what hangs takes for ever. */
const IN_TIME_MS = 15_000;
const TOO_LONG = "holding this against the schema takes too long; make the output or the schema simpler";

let contract: OutputContract;

beforeEach(() => {
  contract = createAjvOutputContract();
});

/** As `path: message`. */
function listProblems(schema: Fields, outputs: Fields): string[] {
  return contract.check(schema, outputs).map(({ path, message }: OutputProblem) => `${path}: ${message}`);
}

/** A schema of the one property `x`. */
const listProblemsOf = (schema: unknown, value: unknown): string[] =>
  listProblems({ properties: { x: schema } }, { x: value });

function checkInTime(check: () => readonly unknown[]): readonly unknown[] {
  const began = performance.now();
  const problems = check();
  expect(performance.now() - began).toBeLessThan(IN_TIME_MS);
  return problems;
}

const list = <T>(length: number, make: (index: number) => T): T[] =>
  Array.from({ length }, (_, index) => make(index));
const createFields = (length: number, make: (index: number) => [string, unknown]): Fields =>
  Object.fromEntries(list(length, make));

describe("what is wrong with outputs", () => {
  it.each<[unknown, unknown, string]>([
    [{ type: "string" }, 1, "x: expected string, got number"],
    [{ type: ["string", "null"] }, [], "x: expected string or null, got array"],
    [{ type: "integer" }, 1.5, "x: expected integer, got number"],
    [{ required: ["a"] }, {}, "x.a: expected a value, got nothing"],
    [{ required: ["constructor"] }, {}, "x.constructor: expected a value, got nothing"],
    [{ items: { properties: { a: { type: "null" } } } }, [{}, { a: 1 }], "x[1].a: expected null, got number"],
    [{ additionalProperties: false }, { secret: 1 }, "x: expected no property that the schema does not name"],
    [{ additionalProperties: { type: "null" } }, { secret: 1 }, "x.*: expected null, got number"],
    [{ propertyNames: { maxLength: 1 } }, { secret: 1 }, "x: expected other names of properties"],
    [{ dependentRequired: { a: ["b"] } }, { a: 1 }, "x.b: expected a value beside another one, got nothing"],
    [{ enum: ["a", "b"] }, "secret", "x: expected one of the values of enum"],
    [{ const: { a: 1 } }, { a: 2 }, "x: expected the value of const"],
    [{ minimum: 2 }, 1, "x: expected at least 2"],
    [{ exclusiveMaximum: 2 }, 2, "x: expected less than 2"],
    [{ multipleOf: 2 }, 1, "x: expected a multiple of 2"],
    [{ minLength: 2 }, "a", "x: expected at least 2 characters, got fewer"],
    [{ maxItems: 1 }, [1, 2], "x: expected at most 1 item, got more"],
    [{ minProperties: 1 }, {}, "x: expected at least 1 properties, got fewer"],
    [{ prefixItems: [{}], items: false }, [1, 2], "x: expected at most 1 items, got more"],
    [
      { uniqueItems: true },
      [
        { a: 1, b: [2] },
        { b: [2], a: 1 },
      ],
      "x: expected different items, got the same one twice",
    ],
    [{ contains: { type: "null" } }, [1], "x: expected 1 or more items that meet contains"],
    [{ contains: {}, minContains: 0, maxContains: 1 }, [1, 2], "x: expected 0 to 1 items that meet contains"],
    [{ pattern: "^a$" }, "secret", "x: expected a text that matches the pattern"],
    [{ patternProperties: { "^a": { type: "null" } } }, { ab: 1 }, "x.*: expected null, got number"],
    [{ not: {} }, 1, "x: expected what does not meet not"],
    [{ oneOf: [{}, {}] }, 1, "x: expected to meet one of oneOf, got more"],
    [{ anyOf: [{ const: 1 }, { const: 2 }] }, 3, "x: expected to meet one of anyOf, got none"],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, 3, "x: expected string or null, got number"],
    [
      { anyOf: [{ type: "null" }, { required: ["a"], type: "object" }] },
      {},
      "x.a: expected a value, got nothing",
    ],
    [{ if: { type: "number" }, then: { minimum: 5 } }, 3, "x: expected at least 5"],
    [{ dependentSchemas: { a: { required: ["b"] } } }, { a: 1 }, "x.b: expected a value, got nothing"],
    [false, 1, "x: expected nothing here"],
  ])("by %j of %j is a sentence with its path, and without its values", (schema, value, sentence) => {
    expect(listProblemsOf(schema, value)).toEqual([sentence]);
  });

  it("is all said at once, up to a bound, each thing once", () => {
    expect(listProblems({ required: ["a", "b"], properties: { c: { type: "null" } } }, { c: 1 })).toEqual([
      ...["a: expected a value, got nothing", "b: expected a value, got nothing"],
      "c: expected null, got number",
    ]);
    expect(listProblems({ required: list(50, (index) => `p${index}`) }, {})).toHaveLength(8);
    expect(listProblems({ additionalProperties: false }, { a: 1, b: 2 })).toHaveLength(1);
  });

  it("is said of what a $ref leads to, however it is written", () => {
    const schema = {
      properties: {
        x: { $ref: "#/$defs/a~1b%25" },
        y: { properties: { "": { type: "string" } } },
        z: { $ref: "#/properties/y/properties/" },
        self: { $ref: "#" },
      },
      $defs: { "a/b%": { type: "null" } },
    };
    const wrong = { x: 1, z: 1, self: { x: 1, self: { z: 1 } } };
    expect(listProblems(schema, wrong).map((each) => each.split(":")[0])).toEqual([
      "x",
      "z",
      "self.x",
      "self.self.z",
    ]);
    expect(listProblems(schema, { x: null, y: { "": "" }, z: "", self: { self: {} } })).toEqual([]);
  });
});

describe("a schema", () => {
  it.each<[string, Fields]>([
    [
      "keywords of ajv's own",
      { $async: true, nullable: true, id: "x", discriminator: { propertyName: "x" } },
    ],
    ["an unknown dialect", { $schema: "https://example.com/none", $vocabulary: { x: true } }],
    ["unknown formats", { properties: { x: { format: "nothing known" } } }],
    [
      "annotations that look like schemas",
      { default: { $id: "#", $ref: "no" }, examples: [{ $anchor: "1" }] },
    ],
    [
      "properties that are named as keywords",
      { properties: { $id: {}, $ref: {}, $async: {}, "x-work": {} } },
    ],
    ["a keyword that is ours", { "x-work": { fixed: 1e9 } }],
  ])("with %s means what JSON Schema says", (_, schema) => {
    expect(problemsOf([step("a", [], { outputSchema: schema })])).toEqual([]);
    expect(listProblems(schema, { x: "a", $id: 1 })).toEqual([]);
    expect(listProblems({ ...schema, required: ["y"] }, { x: "a" })).toEqual([
      "y: expected a value, got nothing",
    ]);
  });

  it("has each of its patterns, not one for all", () => {
    const schema = { properties: { a: { pattern: "^a$" }, b: { pattern: "^b$" } } };
    expect(listProblems(schema, { a: "a", b: "b" })).toEqual([]);
    expect(listProblems(schema, { a: "b", b: "a" })).toHaveLength(2);
  });

  it.each([".", "\\s", "\\S", "[\\s]", "[^\\s]", "[\\S]", "[^\\S]", "\\w", "\\W", "\\d", "[^]", "[-\\s]"])(
    "takes for %s the characters that JavaScript takes",
    (pattern) => {
      const nativePattern = new RegExp(`^${pattern}$`, "u");
      const schema = { properties: { x: { pattern: `^${pattern}$` } } };
      const codes = [...list(0x3100, (code) => code), ...list(0x200, (code) => 0xfe00 + code), 0x1f600];
      const differing = codes
        .map((code) => String.fromCodePoint(code))
        .filter((x) => nativePattern.test(x) !== (contract.check(schema, { x }).length === 0));
      expect(differing).toEqual([]);
    },
  );

  it.each<[string, Fields]>([
    ["a reference that never ends", { $ref: "#" }],
    ["a reference to nothing", { $ref: "#/$defs/none" }],
    [
      "a reference to an anchor",
      { properties: { x: { $ref: "#text" } }, $defs: { a: { $anchor: "text", type: "string" } } },
    ],
    ["a pattern that needs backtracking", { properties: { x: { pattern: "(a)\\1" } } }],
    ["a wrong type", { type: "text" }],
    ["too many levels", list(2_000, () => 0).reduce<Fields>((inner) => ({ not: inner }), {})],
  ])("with %s, which no compiled plan has, is a problem and not an exception", (_, schema) => {
    const [problem, ...more] = contract.check(schema, { x: "aa" });
    expect(more).toEqual([]);
    // Whoever answers a question knows of no `outputSchema`.
    expect(problem?.message).toMatch(/^the schema is not usable: |^holding this against the schema takes/);
  });

  it("is told from others that were checked before it, and forgotten ones work again", () => {
    for (let round = 0; round < 2; round += 1)
      for (let index = 0; index < 300; index += 1)
        expect(contract.check({ required: [`p${index}`] }, { p7: 1 })).toHaveLength(index === 7 ? 0 : 1);
  });
});

describe("a hostile schema or output", () => {
  it("cannot make a pattern take more than linear time", () => {
    const text = `${"a".repeat(50_000)}!`;
    expect(checkInTime(() => listProblemsOf({ pattern: "^(a+)+$" }, text))).toEqual([
      "x: expected a text that matches the pattern",
    ]);
    expect(
      checkInTime(() => listProblemsOf({ patternProperties: { "^(a|aa)+$": false } }, { [text]: 1 })),
    ).toEqual([]);
  });

  it.each<[string, Fields, unknown]>([
    [
      "references that double",
      createFields(30, (index) => [
        `d${index}`,
        { allOf: list(2, () => ({ $ref: `#/$defs/d${index + 1}` })) },
      ]),
      1,
    ],
    [
      "branches at every level",
      { d0: { anyOf: list(100, () => ({ required: ["q"], properties: { n: { $ref: "#/$defs/d0" } } })) } },
      JSON.parse(`${'{"n":'.repeat(30)}1${"}".repeat(30)}`),
    ],
    [
      "long lists for many items",
      { d0: { items: { enum: list(4_000, (index) => `v${index}`) } } },
      list(90_000, () => 1),
    ],
    [
      "alternatives for many items",
      { d0: { contains: { anyOf: list(250, () => ({ type: "null" })) } } },
      list(90_000, () => 1),
    ],
    [
      "many tests of many items",
      { d0: { allOf: list(400, () => ({ items: { type: "number" } })) } },
      list(90_000, () => 1),
    ],
    [
      "many lengths of a long text",
      { d0: { allOf: list(900, (index) => ({ minLength: index })) } },
      "x".repeat(199_000),
    ],
    ["a large automaton and a long text", { d0: { pattern: "a[ab]{900}[cd]" } }, "ab".repeat(50_000)],
  ])("cannot take long by %s", (_, defs, value) => {
    const schema = { properties: { x: { $ref: "#/$defs/d0" } }, $defs: { ...defs, d30: {} } };
    expect(problemsOf([step("a", [], { outputSchema: schema })])).toEqual([]);
    expect(checkInTime(() => listProblems(schema, { x: value }))).toEqual([`(root): ${TOO_LONG}`]);
  });

  it("cannot take long by uniqueness", () => {
    expect(
      checkInTime(() =>
        listProblemsOf(
          { uniqueItems: true },
          list(40_000, (index) => index),
        ),
      ),
    ).toEqual([]);
    expect(
      checkInTime(() =>
        listProblemsOf(
          { uniqueItems: true },
          list(9_000, (index) => [[index]]),
        ),
      ),
    ).toEqual([]);
  });

  it.each<[string, Fields]>([
    [
      "properties",
      {
        properties: createFields(998, (index) => [`p${index}`, { type: "string" }]),
        additionalProperties: false,
      },
    ],
    [
      "merged properties",
      { allOf: list(499, (index) => ({ properties: { [`p${index}`]: {} } })), additionalProperties: false },
    ],
    ["alternatives", { oneOf: list(256, (index) => ({ const: index })) }],
    ["choices", { anyOf: list(256, (index) => ({ const: index })) }],
    [
      "patterns of names",
      { patternProperties: createFields(256, (index) => [`^p${index}`, {}]), additionalProperties: false },
    ],
    [
      "conditions",
      { allOf: list(249, (index) => ({ if: { minimum: index }, then: { maximum: 3 }, else: {} })) },
    ],
    [
      "dependent schemas",
      { dependentSchemas: createFields(999, (index) => [`p${index}`, { required: ["a"] }]) },
    ],
    ["leading items", { prefixItems: list(999, (index) => ({ const: index })) }],
    ["required names", { required: list(4_998, (index) => `p${index}`) }],
    ["patterns", { allOf: list(4, () => ({ pattern: "(?:\\p{L}|\\p{N}|\\p{P}){4}".repeat(37) })) }],
    ...["not", "items", "contains", "propertyNames", "if", "additionalProperties"].map(
      (keyword): [string, Fields] => [`${keyword} behind references`, nestKeyword(keyword)],
    ),
  ])("that has as many %s as it may have is turned into code", (_, schema) => {
    expect(problemsOf([step("a", [], { outputSchema: schema })])).toEqual([]);
    const problems = checkInTime(() => listProblems(schema, { x: { x: 1 } }));
    expect(problems.filter((each) => String(each).includes("not usable"))).toEqual([]);
  });
});

/** References as deep as they may be. */
function nestKeyword(keyword: string): Fields {
  const link = (to: number): Fields =>
    list(11, () => 0).reduce<Fields>((inner) => ({ [keyword]: inner }), { $ref: `#/$defs/d${to}` });
  return {
    $ref: "#/$defs/d0",
    $defs: { ...createFields(12, (index) => [`d${index}`, link(index + 1)]), d12: {} },
  };
}
