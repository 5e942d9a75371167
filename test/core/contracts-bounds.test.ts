import { describe, expect, it } from "vitest";
import { z } from "zod";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { pluginConfigSchema } from "../../src/agents/coordination/contracts/config/config.ts";
import { coordinationEnvelopeSchema } from "../../src/agents/coordination/contracts/envelope.ts";
import { EVENT_PAYLOADS } from "../../src/agents/coordination/contracts/run-event.ts";
import { arbiterPolicySchema, coordinationPlanSchema } from "../../src/agents/coordination/contracts/plan.ts";
import {
  ENVELOPE_BOUNDS,
  EVENT_BOUNDS,
  parseBounded,
  PLAN_BOUNDS,
} from "../../src/agents/coordination/contracts/validation.ts";

const SCHEMAS: Readonly<Record<string, z.core.$ZodType>> = {
  envelope: coordinationEnvelopeSchema,
  plan: coordinationPlanSchema,
  policy: arbiterPolicySchema,
  config: pluginConfigSchema,
  ...EVENT_PAYLOADS,
};

const NAMED = new Set<number>(Object.values(BOUNDS));
/** Derived from a named bound, or the length of a list that is written out. */
const DERIVED = new Set([
  BOUNDS.agentIdCharsMax + "agent:".length,
  BOUNDS.nameCharsMax + "webhook:".length,
  BOUNDS.idCharsMax + BOUNDS.nameCharsMax,
  ...[1, 2, 3],
]);

/** From `max` or `length`. */
function maximumOf(checks: readonly z.core.$ZodCheck[]): number | undefined {
  const defs = checks.map(
    (check) => check._zod.def as { readonly maximum?: number; readonly length?: number },
  );
  return defs.map(({ maximum, length }) => maximum ?? length).find((bound) => bound !== undefined);
}

/** Where any JSON may stand: it is bounded with the whole, by size and depth, and read by the schema of what it stands for. */
const ANY_JSON: ReadonlySet<string> = new Set(["config.coordination.phase1.policies.packs{}.settings{}"]);

/** Parts of a schema that have no bound, by path. Any JSON is bounded where values come in: by size, depth and counts. */
function findUnbounded(schema: z.core.$ZodType, path: string): string[] {
  const { def } = schema._zod as { def: z.core.$ZodTypes["_zod"]["def"] };
  switch (def.type) {
    case "string":
    case "array": {
      const maximum = maximumOf(def.checks ?? []);
      const isBounded = maximum !== undefined && (NAMED.has(maximum) || DERIVED.has(maximum));
      const ownProblems = isBounded ? [] : [`${path} (${def.type}, ${String(maximum)})`];
      return def.type === "array"
        ? [...ownProblems, ...findUnbounded(def.element, `${path}[]`)]
        : ownProblems;
    }
    case "object":
      return Object.entries(def.shape).flatMap(([key, field]) => findUnbounded(field, `${path}.${key}`));
    case "record":
      return [...findUnbounded(def.keyType, `${path}{key}`), ...findUnbounded(def.valueType, `${path}{}`)];
    case "union":
      return def.options.flatMap((option, index) => findUnbounded(option, `${path}|${index}`));
    case "optional":
    case "default":
    case "prefault":
      return findUnbounded(def.innerType, path);
    case "lazy":
    case "number":
    case "boolean":
    case "enum":
    case "literal":
      return [];
    default:
      return ANY_JSON.has(path) ? [] : [`${path} (${def.type}, not known to this test)`];
  }
}

describe("bounds", () => {
  it.each(Object.entries(SCHEMAS))(
    "has a named bound for every string and every array of %s",
    (name, schema) => {
      expect(findUnbounded(schema, name)).toEqual([]);
    },
  );

  it("would notice what has none", () => {
    const loose = z.object({
      text: z.string(),
      odd: z.string().max(77),
      list: z.array(z.string()).optional(),
      map: z.record(z.string(), z.string()),
      either: z.union([z.string(), z.int()]),
      date: z.date(),
    });
    expect(findUnbounded(loose, "loose")).toHaveLength(8);
  });

  it.each(Object.entries(BOUNDS))("%s is a positive whole number", (_, bound) => {
    expect(Number.isSafeInteger(bound) && bound > 0).toBe(true);
  });

  it("fit what OpenWOP allows for event ids, run ids and agent ids", () => {
    const longest = `${"c".repeat(BOUNDS.coordinationIdCharsMax)}:${Number.MAX_SAFE_INTEGER}`.length;
    expect(longest).toBeLessThanOrEqual(BOUNDS.idCharsMax + 1);
    expect(BOUNDS.idCharsMax).toBe(128);
    expect(BOUNDS.agentIdCharsMax + "agent:".length).toBe(256);
    const key =
      BOUNDS.coordinationIdCharsMax + BOUNDS.idCharsMax + String(BOUNDS.retryBudgetMax + 1).length + 2;
    expect(key).toBeLessThanOrEqual(BOUNDS.idempotencyKeyCharsMax);
  });

  describe.each([
    ["envelopes", ENVELOPE_BOUNDS],
    ["plans", PLAN_BOUNDS],
    ["events", EVENT_BOUNDS],
  ])("of %s as a whole", (_, bounds) => {
    const any = z.unknown();
    const nestLevels = (levels: number): unknown => (levels === 0 ? 1 : { a: nestLevels(levels - 1) });

    it("take the last level and no more", () => {
      expect(parseBounded(any, nestLevels(bounds.depthMax), bounds).ok).toBe(true);
      expect(parseBounded(any, nestLevels(bounds.depthMax + 1), bounds)).toMatchObject({
        problems: [{ expected: `at most ${bounds.depthMax} levels`, received: "a deeper value" }],
      });
    });

    it("take the last character and no more", () => {
      expect(parseBounded(any, ["x".repeat(bounds.charsMax - 1)], bounds).ok).toBe(true);
      expect(parseBounded(any, ["x".repeat(bounds.charsMax)], bounds)).toMatchObject({
        problems: [{ path: "[0]", received: "a larger value" }],
      });
    });
  });

  it("name the place of an array with too many items and of an object with too many keys", () => {
    const items = Array.from({ length: BOUNDS.arrayItemsMax + 1 }, () => 0);
    expect(parseBounded(z.unknown(), { a: [{ b: items }] }, PLAN_BOUNDS)).toEqual({
      ok: false,
      problems: [{ path: "a[0].b", expected: "at most 10000 items", received: "an array of 10001 items" }],
    });
    const keys = Object.fromEntries(
      Array.from({ length: BOUNDS.objectKeysMax + 1 }, (_, index) => [`k${index}`, 0]),
    );
    expect(parseBounded(z.unknown(), { a: keys }, PLAN_BOUNDS)).toEqual({
      ok: false,
      problems: [{ path: "a", expected: "at most 1000 keys", received: "an object of 1001 keys" }],
    });
  });
});
