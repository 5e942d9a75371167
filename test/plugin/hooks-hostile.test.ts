/** Owns: that nothing which a hook does or answers gets further than its own failure. */
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { criterionKeySchema } from "../../src/agents/coordination/contracts/verification.ts";
import { registerCoordinationHooks } from "../../src/plugins/hooks/hooks.ts";
import { createHookHarness, type HookHarness } from "../../src/plugins/hooks/testing.ts";

const harnesses: HookHarness[] = [];
afterEach(() => {
  for (const harness of harnesses.splice(0)) harness.close();
});

function createAnswering(answer: () => unknown): HookHarness {
  const harness = createHookHarness();
  harnesses.push(harness);
  const hook = answer as () => never;
  registerCoordinationHooks(harness.api, {
    arbitrate: hook,
    verify: hook,
    decide: hook,
    escalate: hook,
    observe: hook,
  });
  return harness;
}

const throwBoom = (): never => {
  throw new Error("boom");
};
const unreadable: unknown = new Proxy(
  {},
  {
    get: throwBoom,
    ownKeys: throwBoom,
    has: throwBoom,
    getPrototypeOf: throwBoom,
    getOwnPropertyDescriptor: throwBoom,
  },
);
/** Resolves to itself for ever, and would keep the thread if it were followed. */
const endless = { then: (resolve: (value: unknown) => void) => resolve(endless) } as { then: unknown };

const HOSTILE: readonly (readonly [string, () => unknown])[] = [
  ["throws what cannot be read", () => throwError(unreadable)],
  ["throws nothing", () => throwError(undefined)],
  ["rejects with what cannot be read", () => rejectWith(unreadable)],
  ["answers with what cannot be read", () => unreadable],
  ["answers later with what cannot be read", () => Promise.resolve().then(() => ({ inner: unreadable }))],
  ["answers with a promise that resolves to itself", () => endless],
  [
    "answers with a promise of a promise",
    () => ({ then: (resolve: (v: unknown) => void) => resolve(Promise.resolve(1)) }),
  ],
  ["answers with a promise that throws", () => ({ then: throwBoom })],
  [
    "answers with a promise that cannot be looked at",
    () => ({
      get then(): never {
        return throwBoom();
      },
    }),
  ],
  [
    "answers with getters that throw",
    () => ({
      get award(): never {
        return throwBoom();
      },
      get verdict(): never {
        return throwBoom();
      },
    }),
  ],
  ["answers with a symbol", () => Symbol("x")],
  ["answers with a function", () => throwBoom],
  ["answers with a list", () => ["holder"]],
  ["answers with null", () => null],
  ["answers with symbols for fields", () => ({ [Symbol("award")]: 1, award: "holder", reason: "x" })],
  [
    "answers with an endless list",
    () => ({
      verdict: "fail",
      criteria: new Proxy([], { get: (_list, key) => (key === "length" ? 2 ** 53 : "a") }),
    }),
  ],
];

function throwError(error: unknown): never {
  throw error;
}

// oxlint-disable-next-line typescript/prefer-promise-reject-errors -- an author may
const rejectWith = (reason: unknown): Promise<never> => Promise.reject(reason);

async function expectNothingGetsThrough(harness: HookHarness): Promise<void> {
  expect(await harness.arbitrate()).toMatchObject({ failed: "plugin-under-test" });
  expect(await harness.verify()).toMatchObject({ kind: "none" });
  expect(await harness.decide()).toMatchObject({ action: "deny", failed: true });
  const { outcome, answers } = await harness.escalate();
  expect(outcome).toMatchObject({ kind: "failed" });
  expect(answers).toEqual([]);
  await harness.observe();
  for (const { message } of harness.problems)
    expect(message).toMatch(/^the hook \w+ of the plugin plugin-under-test /);
}

describe("a hook", () => {
  it.each(HOSTILE)("that %s lets nothing through and throws nothing at us", async (_what, answer) => {
    await expectNothingGetsThrough(createAnswering(answer));
  });

  it("that answers twice is heard once", async () => {
    const twice = {
      then: (resolve: (value: unknown) => void) => {
        resolve({ award: "holder", reason: "first" });
        resolve({ award: "requester", reason: "second" });
        throwBoom();
      },
    };
    expect(await createAnswering(() => twice).arbitrate()).toMatchObject({
      award: "holder",
      reason: "first",
    });
  });

  it("that changes its mind between two looks is taken at its first word", async () => {
    let looks = 0;
    const answer = {
      get award() {
        looks += 1;
        return looks === 1 ? "holder" : "requester";
      },
      reason: "x",
    };
    expect(await createAnswering(() => answer).arbitrate()).toMatchObject({ award: "holder" });
    expect(looks).toBe(1);
  });

  it("has its reason in one line, without control characters, and cut", async () => {
    const reason = `a\n\u001b[31mb\u2028c\u202e${"\u{1F600}".repeat(400)}`;
    const ruling = await createAnswering(() => ({ award: "holder", reason })).arbitrate();
    expect(ruling).toMatchObject({
      reason: expect.stringMatching(/^a \[31mb c \u{1F600}+\uFFFD?$/u) as string,
    });
    expect(ruling && "reason" in ruling && ruling.reason.length).toBe(300);
  });

  it("whose log throws fails as quietly as any other", async () => {
    const harness = createHookHarness();
    harnesses.push(harness);
    registerCoordinationHooks({ ...harness.api, logger: { error: throwBoom } }, { arbitrate: throwBoom });
    expect(await harness.arbitrate()).toMatchObject({ failed: "plugin-under-test" });
  });

  it("that was registered by somebody who writes anything is passed over or fails", async () => {
    const key = Symbol.for("openclaw-coordination.hooks");
    const harness = createAnswering(() => undefined);
    const { slots } = (globalThis as unknown as Record<symbol, { slots: Map<string, unknown> }>)[key] as {
      slots: Map<string, unknown>;
    };
    slots
      .set("null", { entries: [null] })
      .set("number", { entries: [5] })
      .set("empty", { entries: [] });
    slots.set("bare", { entries: [{ version: 1, pluginId: "bare", kinds: ["arbitrate"] }] });
    expect(harness.host.hasAny("verify")).toBe(true);
    expect(await harness.arbitrate()).toMatchObject({ failed: "bare" });
    for (const name of ["null", "number", "empty", "bare"]) slots.delete(name);
  });

  it("never lets through what is not exactly an answer, whatever it is", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.anything({ withNullPrototype: true, withBigInt: true, withMap: true }),
        async (answer) => {
          fc.pre(answer !== undefined);
          const harness = createAnswering(() => answer);
          await expectNothingGetsThrough(harness);
          harness.close();
        },
      ),
      { numRuns: 300 },
    );
  });

  it("is read for what it says, and nothing else, when it is an answer", async () => {
    const answers = fc.record(
      {
        verdict: fc.constantFrom("pass", "fail", "revise"),
        criteria: fc.array(fc.stringMatching(/^[A-Za-z0-9@][A-Za-z0-9._:@/-]{0,62}$/), { maxLength: 64 }),
        confidence: fc.double({ min: 0, max: 1, noNaN: true }),
      },
      { requiredKeys: ["verdict"] },
    );
    await fc.assert(
      fc.asyncProperty(answers, async (answer) => {
        const harness = createAnswering(() => answer);
        const expected = { kind: "verdict", criteria: [], ...answer, agentId: "plugin:plugin-under-test" };
        expect(await harness.verify()).toEqual(expected);
        // The ledger keeps every key that a plugin may answer.
        expect(answer.criteria?.every((key) => criterionKeySchema.safeParse(key).success)).not.toBe(false);
        harness.close();
      }),
      { numRuns: 200 },
    );
  });
});
