import { afterEach, describe, expect, it } from "vitest";
import { createHookHost } from "../../src/plugins/hooks/hook-host.ts";
import { HOOK_BUDGETS_MS, HOOK_LIMITS } from "../../src/plugins/hooks/hook-limits.ts";
import {
  registerCoordinationHooks,
  type CoordinationEvent,
  type ObserveHook,
} from "../../src/plugins/hooks/hooks.ts";
import { createHookHarness, sampleEvent, type HookHarness } from "../../src/plugins/hooks/testing.ts";
import { createHookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { findRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { OWNER } from "../support/ledger-fixtures.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { createFakeHost } from "./fake-host.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";

const harnesses: HookHarness[] = [];
afterEach(() => {
  for (const harness of harnesses.splice(0)) harness.close();
});

function createObserving(observe: ObserveHook, pluginId = "watcher"): HookHarness {
  const harness = createHookHarness({ pluginId });
  harnesses.push(harness);
  registerCoordinationHooks(harness.api, { observe });
  return harness;
}

const createEvents = (count: number): CoordinationEvent[] =>
  Array.from({ length: count }, (_, sequence) => ({ ...sampleEvent(), sequence }));

describe("an observer", () => {
  it("is told of every event in order, never in the caller's turn", async () => {
    const seen: number[] = [];
    const harness = createObserving(({ sequence }) => seen.push(sequence));
    harness.host.observe(createEvents(100));
    expect(seen).toEqual([]);
    await harness.host.observed();
    expect(seen).toEqual(createEvents(100).map(({ sequence }) => sequence));
  });

  it("gets frozen copies of its own", async () => {
    const seen: CoordinationEvent[] = [];
    const keep: ObserveHook = (event) => seen.push(event);
    const harness = createObserving(keep);
    createObserving(keep, "other");
    const event = sampleEvent();
    await harness.observe(event);
    expect(seen).toEqual([event, event]);
    expect(new Set([...seen, event]).size).toBe(3);
    expect(seen.every((each) => Object.isFrozen(each) && Object.isFrozen(each.payload))).toBe(true);
    expect(Object.isFrozen(event)).toBe(false);
  });

  it("has one event under way at a time, while others are told on", async () => {
    const underWay: (() => void)[] = [];
    const slow = createObserving(() => new Promise<void>((resolve) => underWay.push(resolve)));
    const seen: number[] = [];
    const quick = createObserving(({ sequence }) => seen.push(sequence), "quick");
    // One host tells both.
    slow.host.observe(createEvents(2));
    await slow.clock.advance(0);
    slow.host.observe(createEvents(3).slice(2));
    await slow.clock.advance(0);
    expect(underWay).toHaveLength(1);
    expect(seen).toEqual([0, 1, 2]);
    for (let n = 0; n < 3; n += 1) {
      underWay[n]?.();
      await slow.clock.advance(0);
    }
    await slow.host.observed();
    expect(underWay).toHaveLength(3);
    expect(quick.problems).toEqual([]);
  });

  it("that is late or throws is told the next event, and its failures are said less and less often", async () => {
    const seen: number[] = [];
    const harness = createObserving(({ sequence }) => {
      seen.push(sequence);
      if (sequence === 0) return new Promise(() => undefined);
      throw new Error(`broken at ${sequence}`);
    });
    const pendingAnswer = harness.observe(...createEvents(20));
    await harness.clock.advance(HOOK_BUDGETS_MS.observe.usual);
    await pendingAnswer;
    expect(seen).toHaveLength(20);
    expect(harness.problems).toHaveLength(20);
    expect(harness.problems[0]).toMatchObject({ because: "timed_out" });
    expect(harness.logged.map((line) => /at (\d+)$/.exec(line)?.[1])).toEqual([
      undefined,
      "1",
      "3",
      "7",
      "15",
    ]);
  });

  it("that is too slow loses the newest events, is told how many, and keeps no more than so many", async () => {
    const lines: string[] = [];
    const harness = createHookHarness({ pluginId: "slow" });
    harnesses.push(harness);
    const seen: [number, number][] = [];
    registerCoordinationHooks(harness.api, {
      observe: ({ sequence }, { dropped }) => void seen.push([sequence, dropped]),
    });
    const say = (_fields: object, message: string): void => void lines.push(message);
    const host = createHookHost({
      clock: systemClock,
      logger: { debug: say, info: say, warn: say, error: say },
    });
    const all = createEvents(HOOK_LIMITS.observedMax + 12);
    host.observe(all.slice(0, -2));
    await new Promise((resolve) => setImmediate(resolve));
    host.observe(all.slice(-2));
    await host.observed();
    expect(seen.filter(([, dropped]) => dropped > 0)).toEqual([[HOOK_LIMITS.observedMax + 10, 10]]);
    expect(seen).toHaveLength(HOOK_LIMITS.observedMax + 2);
    expect(lines).toEqual(["the plugin slow observes too slowly: events are dropped"]);
  });

  it("that was taken back is told nothing more", async () => {
    const seen: number[] = [];
    const harness = createObserving(({ sequence }) => {
      seen.push(sequence);
      harness.end("disable");
    });
    await harness.observe(...createEvents(5));
    expect(seen).toEqual([0]);
    await harness.observe(...createEvents(5));
    expect(seen).toEqual([0]);
  });

  it("that is loaded again goes on with the event after the last one", async () => {
    const seen: string[] = [];
    const harness = createObserving(({ sequence }) => {
      seen.push(`old ${sequence}`);
      if (sequence === 1) harness.end("reload");
    });
    const pendingAnswer = harness.observe(...createEvents(4));
    await harness.clock.advance(0);
    registerCoordinationHooks(harness.api, { observe: ({ sequence }) => seen.push(`new ${sequence}`) });
    await harness.clock.advance(500);
    await pendingAnswer;
    expect(seen).toEqual(["old 0", "old 1", "new 2", "new 3"]);
  });

  it("that is loaded again for long is told afterwards what happened meanwhile", async () => {
    const seen: [number, number][] = [];
    const observe: ObserveHook = ({ sequence }, { dropped }) => seen.push([sequence, dropped]);
    const harness = createObserving(observe);
    harness.end("reload");
    await harness.clock.advance(2 * HOOK_LIMITS.reloadMs);
    const pendingAnswer = harness.observe(...createEvents(2));
    await harness.clock.advance(2 * HOOK_LIMITS.reloadMs);
    harness.host.observe(createEvents(3).slice(2));
    registerCoordinationHooks(harness.api, { observe });
    await harness.clock.advance(500);
    await pendingAnswer;
    expect(seen).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
    ]);
  });

  it.each([
    ["stayed away for too long", "reload"],
    ["was disabled", "disable"],
  ] as const)("that %s is told how many events it missed since", async (_what, ending) => {
    const seen: [number, number][] = [];
    const harness = createObserving(({ sequence }, { dropped }) => {
      seen.push([sequence, dropped]);
      if (sequence === 1) harness.end(ending);
    });
    const pendingAnswer = harness.observe(...createEvents(6));
    await harness.clock.advance(HOOK_LIMITS.gatesClosedMs);
    await pendingAnswer;
    registerCoordinationHooks(harness.api, {
      observe: ({ sequence }, { dropped }) => seen.push([sequence, dropped]),
    });
    await harness.observe(...createEvents(8).slice(6));
    expect(seen).toEqual([
      [0, 0],
      [1, 0],
      [6, 4],
      [7, 0],
    ]);
  });
});

describe("the observers of a process", () => {
  it("are told in order, one event at a time, also over a reload of the coordination plugin", async () => {
    using folder = createTempFolder();
    const released = Promise.withResolvers<undefined>();
    const begun = Promise.withResolvers<undefined>();
    const seen: CoordinationEvent[] = [];
    const isTold = Promise.withResolvers<undefined>();
    let underWay = 0;
    let mostUnderWay = 0;
    const harness = createHookHarness({ pluginId: "watcher" });
    harnesses.push(harness);
    registerCoordinationHooks(harness.api, {
      observe: {
        budgetMs: 10_000,
        run: async (event) => {
          underWay += 1;
          mostUnderWay = Math.max(mostUnderWay, underWay);
          begun.resolve(undefined);
          await released.promise;
          underWay -= 1;
          seen.push(event);
          if (seen.filter(({ type }) => type === "coordination.escalated").length === 2)
            isTold.resolve(undefined);
        },
      },
    });
    const { api } = createFakeHost({ stateDir: folder.path });
    const asker = { askedBy: OWNER, agentId: "main", kind: "clarification" } as const;
    const askPeople = async (question: string): Promise<void> => {
      const coordinator = await findRuntime()?.coordinator();
      expect(await coordinator?.ask({ ...asker, question })).not.toMatchObject({ kind: "refused" });
    };
    const before = createHookHandlers(api);
    await before.start();
    await askPeople("Which colour?");
    await begun.promise;
    await before.stop();
    const after = createHookHandlers(api);
    await after.start();
    try {
      await askPeople("Which size?");
      await new Promise((resolve) => setImmediate(resolve));
      released.resolve(undefined);
      await isTold.promise;
      expect(mostUnderWay).toBe(1);
    } finally {
      await after.stop();
    }
  });
});
