/** Held to ajv without our changes, and to JavaScript's own patterns, which may both take any time. */
import { createContext, runInContext } from "node:vm";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkPlan } from "../../src/agents/coordination/plan/check-plan.ts";
import { readPattern } from "../../src/agents/coordination/plan/pattern-syntax.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";
import { plan, step, type Fields } from "../core/plan-scene.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 300);
const contract = createAjvOutputContract();

const JUDGE_MS = 1_000;
const bench = createContext({});
/** The answer of somebody else's engine; nothing where it takes too long, which for some patterns and schemas is for ever. */
function judgeInTime(call: () => boolean): boolean | undefined {
  bench["call"] = call;
  try {
    return runInContext("call()", bench, { timeout: JUDGE_MS }) as boolean;
  } catch (error) {
    // It is an error of the other context.
    if ((error as { code?: unknown }).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return undefined;
    throw error;
  }
}

const names = fc.constantFrom("a", "b", "$ref", "$id", "constructor", "__proto__", "x/y");
const types = fc.constantFrom("null", "boolean", "object", "array", "number", "string", "integer");
const scalars = fc.constantFrom<unknown>(null, true, 0, 1, 1.5, "", "a", "ab");
const { schema: schemas } = fc.letrec<{ schema: unknown }>((tie) => {
  const schema = tie("schema");
  const some = fc.array(schema, { minLength: 1, maxLength: 3 });
  const count = fc.integer({ min: 0, max: 3 });
  const byName = fc.dictionary(names, schema, { maxKeys: 3 });
  const plain = {
    type: fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 })),
    enum: fc.array(scalars, { minLength: 1, maxLength: 3 }),
    const: fc.oneof(scalars, fc.jsonValue({ maxDepth: 1 })),
    required: fc.uniqueArray(names, { maxLength: 2 }),
    dependentRequired: fc.dictionary(names, fc.uniqueArray(names, { maxLength: 2 }), { maxKeys: 2 }),
    pattern: fc.constantFrom("^a", "b$", ".", "^(a|b)*$"),
    minimum: count,
    exclusiveMaximum: count,
    minLength: count,
    maxLength: count,
    minItems: count,
    maxItems: count,
    minProperties: count,
    maxProperties: count,
    minContains: count,
    maxContains: count,
    uniqueItems: fc.boolean(),
    format: fc.string(),
    $ref: fc.constantFrom("#", "#/$defs/a", "#/properties/a", "#/items", "#/$defs/none"),
    "x-unknown": fc.jsonValue({ maxDepth: 1 }),
  };
  const nesting = {
    items: schema,
    contains: schema,
    not: schema,
    if: schema,
    then: schema,
    else: schema,
    additionalProperties: schema,
    propertyNames: schema,
    allOf: some,
    anyOf: some,
    oneOf: some,
    prefixItems: some,
    properties: byName,
    $defs: byName,
    dependentSchemas: byName,
    patternProperties: fc.dictionary(fc.constantFrom("^a", "b"), schema, { maxKeys: 2 }),
  };
  const pickFew = (model: object, maxKeys: number): fc.Arbitrary<Fields> =>
    fc
      .subarray(Object.entries(model) as [string, fc.Arbitrary<unknown>][], { maxLength: maxKeys })
      .chain((entries) => fc.record(Object.fromEntries(entries)));
  const leaf = fc.oneof(fc.boolean(), pickFew(plain, 2));
  const deep = fc
    .tuple(pickFew(plain, 2), pickFew(nesting, 3))
    .map(([ownFields, inner]) => ({ ...ownFields, ...inner }));
  return { schema: fc.oneof({ maxDepth: 3, withCrossShrink: true }, leaf, deep) };
});
const objectSchemas = schemas.filter((schema): schema is Fields => typeof schema === "object");
const values = fc.dictionary(names, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });
/** A schema as a compiled plan has it; nothing where it is refused. */
function takeSchema(outputSchema: unknown): Fields | undefined {
  const checked = checkPlan(plan([step("a", [], { outputSchema })]));
  return checked.kind === "compiled" ? checked.graph.steps[0]?.outputSchema : undefined;
}

describe("for every schema that a plan may have", () => {
  it("ajv compiles it, and finds the same outputs right as without our changes to it", () => {
    let compared = 0;
    fc.assert(
      fc.property(objectSchemas, fc.array(values, { minLength: 1, maxLength: 4 }), (generated, outputs) => {
        const schema = takeSchema(generated);
        if (!schema) return;
        const plain = createPlainAjv(schema);
        for (const each of outputs) {
          const problems = contract.check(schema, each);
          expect(problems.filter(({ message }) => message.includes("usable"))).toEqual([]);
          // A check that takes too long here would take ajv by itself for ever.
          if (!plain || problems.some(({ message }) => message.includes("too long"))) continue;
          const isRight = judgeInTime(() => plain(each));
          if (isRight === undefined) continue;
          compared += 1;
          expect({ schema, each, isRight: problems.length === 0 }).toEqual({ schema, each, isRight });
        }
      }),
      { numRuns: RUNS * 5 },
    );
    expect(compared).toBeGreaterThan(RUNS);
  });

  it("problems have a path and a sentence without anything of the outputs", () => {
    const secret = "s3cret";
    fc.assert(
      fc.property(objectSchemas, fc.jsonValue({ maxDepth: 2 }), (generated, value) => {
        const schema = takeSchema(generated);
        if (!schema) return;
        const outputs = { a: { [secret]: value, b: secret }, [secret]: [secret, value] };
        for (const problem of contract.check(schema, outputs)) {
          expect(Object.keys(problem)).toEqual(["path", "message"]);
          expect(JSON.stringify(problem)).not.toContain(secret);
        }
      }),
      { numRuns: RUNS },
    );
  });
});

/** Nothing where ajv by itself does not take it, such as one with a property that is named `$id`. */
function createPlainAjv(schema: Fields): ((value: unknown) => boolean) | undefined {
  const ajv = new Ajv2020({
    strict: false,
    validateFormats: false,
    ownProperties: true,
    logger: false,
    validateSchema: false,
    // Without it ajv 8.20 takes an empty array for one that meets `contains`, beside `prefixItems`.
    allErrors: true,
  });
  // As in ours: it would fail beside patternProperties.
  ajv.opts.unevaluated = false;
  try {
    const validate = ajv.compile(schema);
    return (value) => validate(value);
  } catch {
    return undefined;
  }
}

describe("for every pattern that a plan may have", () => {
  const atoms = fc.constantFrom(
    ...[
      "a",
      "b",
      "é",
      "\u{1f600}",
      ".",
      "\\d",
      "\\D",
      "\\w",
      "\\W",
      "\\s",
      "\\S",
      "\\b",
      "\\B",
      "^",
      "$",
      "-",
    ],
    ...[
      "[ab]",
      "[^a]",
      "[\\s-]",
      "[^\\S]",
      "[\\w\\-]",
      "[[:a]",
      "[a&&b]",
      "[^]",
      "[]",
      "\\p{L}",
      "[\\P{Lu}x]",
    ],
    ...[
      "\\x41",
      "\\u{e9}",
      "\\u00e9",
      "\\n",
      "\\.",
      "\\/",
      "\\cA",
      "\\0",
      "(?=a)",
      "(?<n>a)",
      "(a)\\1",
      "\\v",
    ],
  );
  const quantifiers = fc.constantFrom("", "", "*", "+", "?", "{2}", "{1,3}", "{0,}", "*?", "{40}");
  const { pattern: patterns } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc
      .array(
        fc.tuple(
          fc.oneof(
            { maxDepth: 3 },
            atoms,
            tie("pattern").map((inner) => `(${inner})`),
            tie("pattern").map((inner) => `(?:${inner}|b)`),
          ),
          quantifiers,
        ),
        { maxLength: 4 },
      )
      .map((parts) => parts.map((part) => part.join("")).join("")),
  }));
  const texts = fc.string({
    unit: fc.constantFrom(
      "a",
      "b",
      "A",
      "é",
      "\u{1f600}",
      " ",
      "\u00a0",
      "\n",
      "\r",
      "\u2028",
      "1",
      "-",
      ":",
      "[",
      "&",
      "\0",
    ),
    maxLength: 8,
  });

  it("it matches what JavaScript's own engine matches", () => {
    let compared = 0;
    fc.assert(
      fc.property(patterns, fc.array(texts, { minLength: 1, maxLength: 5 }), (pattern, some) => {
        if (readPattern(pattern).problem !== undefined) return;
        const nativePattern = new RegExp(pattern, "u");
        for (const text of some) {
          const isMatch = contract.check({ properties: { x: { pattern } } }, { x: text }).length === 0;
          const isTheirs = judgeInTime(() => nativePattern.test(text));
          if (isTheirs === undefined) continue;
          compared += 1;
          expect({ pattern, text, isMatch }).toEqual({ pattern, text, isMatch: isTheirs });
        }
      }),
      { numRuns: RUNS * 3 },
    );
    expect(compared).toBeGreaterThan(RUNS);
  });
});
