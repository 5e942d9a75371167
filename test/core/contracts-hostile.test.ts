import { describe, expect, it } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { coordinationEnvelopeSchema } from "../../src/agents/coordination/contracts/envelope.ts";
import { isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { parsePlan } from "../../src/agents/coordination/contracts/plan.ts";
import { decodeEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { ENVELOPE_BOUNDS, parseBounded } from "../../src/agents/coordination/contracts/validation.ts";
import { AT_MS, ENVELOPE, FACTS, PLAN } from "../support/arbitraries-examples.ts";

/** A hostile value costs no more than this. The fastest of several tries counts: a busy machine only ever adds time. */
const BUDGET_MS = 50;
const TRIES = 5;

const EVENT = {
  eventId: "co-1:0",
  runId: "co-1",
  sequence: 0,
  type: "coordination.created",
  timestamp: new Date(AT_MS).toISOString(),
  payload: FACTS["coordination.created"],
};

/** Every edge that values come in through: true where the value was taken. */
const EDGES: Readonly<
  Record<string, { readonly take: (value: unknown) => boolean; readonly valid: object }>
> = {
  envelope: {
    take: (value) => parseBounded(coordinationEnvelopeSchema, value, ENVELOPE_BOUNDS).ok,
    valid: ENVELOPE,
  },
  plan: { take: (value) => parsePlan(value).ok, valid: PLAN },
  event: { take: (value) => isTaken(() => decodeEvent(value), "EVENT_UNREADABLE"), valid: EVENT },
  config: { take: (value) => isTaken(() => parsePluginConfig(value), "CONFIG_INVALID"), valid: {} },
};

/** Anything thrown but the one error that the edge may throw is thrown on. */
function isTaken(parse: () => unknown, code: string): boolean {
  try {
    parse();
    return true;
  } catch (error) {
    if (isCoordinationError(error) && error.code === code) return false;
    throw error;
  }
}

function nestLevels(levels: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = "core";
  for (let level = 0; level < levels; level += 1) value = wrap(value);
  return value;
}

function createCycle(): object {
  const cycle: Record<string, unknown> = { a: 1 };
  cycle["self"] = cycle;
  cycle["list"] = [cycle, cycle];
  return cycle;
}

function createSparse(length: number): unknown[] {
  const items: unknown[] = [];
  items.length = length;
  return items;
}

const throwHostile = (): never => {
  throw new RangeError("hostile");
};

const createTrap = (handler: ProxyHandler<object>): object => new Proxy({}, handler);

/** A proxy that has more of itself below every key. */
function createEndless(): object {
  return new Proxy(
    {},
    {
      ownKeys: () => ["a", "b"],
      getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
      get: (_, key) => (typeof key === "string" ? createEndless() : undefined),
    },
  );
}

const MEGABYTE = 1_000_000;

/** Makers of hostile values, each of which must be refused wherever a value may come in. */
const HOSTILE: Readonly<Record<string, () => unknown>> = {
  "a megabyte of keys": () =>
    Object.fromEntries(Array.from({ length: MEGABYTE / 14 }, (_, index) => [`key-${index}`, index])),
  "one huge string": () => "x".repeat(MEGABYTE * 9),
  "one huge key": () => ({ ["k".repeat(MEGABYTE * 9)]: 1 }),
  "a huge array": () => Array.from({ length: MEGABYTE }, () => 1),
  "many large arrays": () => Array.from({ length: 100 }, () => Array.from({ length: 9_999 }, () => 1)),
  "an array of ten thousand objects": () => Array.from({ length: 10_000 }, () => ({ a: 1, b: "2", c: null })),
  "ten thousand nested objects": () => nestLevels(10_000, (inner) => ({ inner })),
  "ten thousand nested arrays": () => nestLevels(10_000, (inner) => [inner]),
  "a tree that is wide and deep": () => nestLevels(20, (inner) => [inner, inner, inner]),
  "a tree of objects that is wide and deep": () =>
    nestLevels(40, (inner) => ({ a: inner, b: inner, c: inner })),
  "a __proto__ key": () =>
    JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"prototype": 1}}') as unknown,
  "a cyclic object": createCycle,
  "a sparse array": () => createSparse(2 ** 32 - 1),
  "a getter that throws": () => Object.defineProperty({}, "stepId", { enumerable: true, get: throwHostile }),
  "an array with a getter that throws": () =>
    Object.defineProperty([1], 0, { enumerable: true, get: throwHostile }),
  "a proxy that throws on keys": () => createTrap({ ownKeys: throwHostile }),
  "a proxy that throws on reads": () => new Proxy({ stepId: 1 }, { get: throwHostile }),
  "a proxy without an end": createEndless,
  "a revoked proxy": () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  },
  "a BigInt": () => 10n ** 1000n,
  "a symbol": () => Symbol("x"),
  "a function": () => throwHostile,
  "a map": () => new Map([["a", 1]]),
  "a typed array": () => new Uint8Array(100_000),
};

/** Where the hostile value is put: alone, and inside of something that is otherwise right. */
function placeHostile(valid: object, hostile: unknown): Readonly<Record<string, unknown>> {
  return {
    alone: hostile,
    "in an unknown field": { ...valid, extra: hostile },
    "in every field": Object.fromEntries(Object.keys(valid).map((key) => [key, hostile])),
    "as an item of steps": { ...valid, steps: [hostile] },
    "as steps": { ...valid, steps: hostile },
    "as a payload": { ...valid, payload: hostile },
    "deep inside a step": { ...valid, steps: [{ ...PLAN.steps[0], input: { a: [hostile] } }] },
  };
}

/** Values that a place takes because they are not wrong there: unknown fields of events, JSON where any JSON may be. */
function isHarmless(at: {
  readonly edge: string;
  readonly place: string;
  readonly hostile: string;
}): boolean {
  const { edge, place, hostile } = at;
  const isJson = ["a __proto__ key", "an array of ten thousand objects"].includes(hostile);
  if (edge === "plan") return place === "as a payload" || (place === "deep inside a step" && isJson);
  if (edge === "event") return !["alone", "in every field", "as a payload"].includes(place);
  // A map has no keys of its own, so it is an empty configuration.
  return edge === "config" && (place === "in every field" || (place === "alone" && hostile === "a map"));
}

describe.each(Object.entries(EDGES))("a hostile value at the edge of %s", (edge, { take, valid }) => {
  it("is told from a valid one", () => {
    expect(take(valid)).toBe(true);
  });

  it.each(Object.entries(HOSTILE))(
    "that is %s is refused in time, whatever place it is in",
    (hostile, make) => {
      for (const [place, value] of Object.entries(placeHostile(valid, make()))) {
        const durations: number[] = [];
        const results = new Set<boolean>();
        for (let tries = 0; tries < TRIES; tries += 1) {
          const began = performance.now();
          results.add(take(value));
          durations.push(performance.now() - began);
        }
        if (!isHarmless({ edge, place, hostile })) expect([...results], place).toEqual([false]);
        expect(results.size, place).toBe(1);
        expect(Math.min(...durations), place).toBeLessThan(BUDGET_MS);
      }
    },
  );
});

describe("a hostile plan of the right shape", () => {
  const measureParse = (value: unknown): { readonly ok: boolean; readonly fastest: number } => {
    const durations: number[] = [];
    let ok = true;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const began = performance.now();
      ok = parsePlan(value).ok;
      durations.push(performance.now() - began);
    }
    return { ok, fastest: Math.min(...durations) };
  };

  it.each([
    ["ten thousand empty steps", { steps: Array.from({ length: 10_000 }, () => ({})) }],
    [
      "ten thousand steps of wrong fields",
      { steps: Array.from({ length: 10_000 }, () => ({ a: 1, priority: 2, lane: 3 })) },
    ],
    [
      "one bad value at the end of much JSON",
      {
        steps: [
          {
            ...PLAN.steps[0],
            input: { a: [...Array.from({ length: 9 }, () => Array.from({ length: 9_999 }, () => 0)), 1n] },
          },
        ],
      },
    ],
    [
      "dependencies beyond their bound",
      {
        steps: Array.from({ length: 19 }, () => ({
          ...PLAN.steps[0],
          dependsOn: Array.from({ length: 9_999 }, () => 1),
        })),
      },
    ],
  ])("with %s is refused in time", (_, change) => {
    const { ok, fastest } = measureParse({ ...PLAN, ...change });
    expect(ok).toBe(false);
    expect(fastest).toBeLessThan(BUDGET_MS);
  });

  it("does not change what an object is, by a __proto__ key or otherwise", () => {
    const hostile = JSON.parse('{"__proto__": {"polluted": true}}') as object;
    parsePlan({ ...PLAN, steps: [{ ...PLAN.steps[0], input: hostile }] });
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("decodeEvent", () => {
  it.each(["toString", "constructor", "__proto__", "hasOwnProperty", "step.teleported", ""])(
    "says EVENT_UNREADABLE of the type %j",
    (type) => {
      expect(() => decodeEvent({ ...EVENT, type })).toThrow(
        expect.objectContaining({ code: "EVENT_UNREADABLE" }),
      );
    },
  );

  it("names the event, its type and the field", () => {
    const value = { ...EVENT, payload: { ...EVENT.payload, settleMs: -1 } };
    expect(() => decodeEvent(value)).toThrow(
      "co-1:0: payload of coordination.created: settleMs: expected at least 0, got number -1",
    );
  });

  it("keeps a field that a later release added", () => {
    const value = { ...EVENT, payload: { ...EVENT.payload, later: 1 }, engineVersion: "2" };
    expect(decodeEvent(value)).toEqual(value);
  });
});
