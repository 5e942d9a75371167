import { afterEach, describe, expect, it, vi } from "vitest";
import { createHookHost } from "../../src/plugins/hooks/hook-host.ts";
import { HOOK_LIMITS } from "../../src/plugins/hooks/hook-limits.ts";
import { findHookSlots } from "../../src/plugins/hooks/hook-registry.ts";
import {
  registerCoordinationHooks,
  type CoordinationHooks,
  type CoordinationHooksApi,
} from "../../src/plugins/hooks/hooks.ts";
import { createHookHarness, type HookHarness } from "../../src/plugins/hooks/testing.ts";
import { createFakeClock } from "../support/fake-clock.ts";

/** The same file as another module. */
const COPY: string = new URL("../../src/plugins/hooks/hooks.ts?copy", import.meta.url).href;
const KEY = Symbol.for("openclaw-coordination.hooks");
const holder = globalThis as { [KEY]?: unknown };

let harness = createHookHarness();
afterEach(() => {
  holder[KEY] = undefined;
  harness = createHookHarness();
});

/** Hooks that say which registration was asked. */
const createSaying = (reason: string): CoordinationHooks => ({
  arbitrate: () => ({ award: "holder", reason }),
});
const askHarness = async (from: HookHarness = harness): Promise<string | undefined> => {
  const ruling = await from.arbitrate();
  return ruling && ("failed" in ruling ? ruling.message : ruling.reason);
};
const register = (reason: string, api: CoordinationHooksApi = harness.anotherApi()): (() => void) =>
  registerCoordinationHooks(api, createSaying(reason));

interface CleanedApis {
  /** End the instances, in the order of their registrations. */
  readonly cleanUps: ((context: { reason: string }) => void)[];
  readonly createApi: () => CoordinationHooksApi;
}

/** Instances of a plugin that the host ends one by one. */
function createCleanedApis(): CleanedApis {
  const cleanUps: CleanedApis["cleanUps"] = [];
  const createApi = (): CoordinationHooksApi => ({
    ...harness.api,
    lifecycle: {
      registerRuntimeLifecycle: (runtimeLifecycle) =>
        cleanUps.push((context) => runtimeLifecycle.cleanup(context)),
    },
  });
  return { cleanUps, createApi };
}

describe("a registration", () => {
  it("is replaced by the next one of the same plugin, and never asked twice", async () => {
    let calls = 0;
    const counting: CoordinationHooks = { arbitrate: () => void (calls += 1) };
    registerCoordinationHooks(harness.anotherApi(), counting);
    registerCoordinationHooks(harness.anotherApi(), counting);
    await harness.arbitrate();
    expect(calls).toBe(1);
    register("newest");
    expect(await askHarness()).toBe("newest");
    expect(calls).toBe(1);
  });

  it("that is taken back brings the one before it back, and costs nothing when there is none", async () => {
    const first = register("first");
    const second = register("second");
    const third = register("third");
    second();
    expect(await askHarness()).toBe("third");
    third();
    third();
    expect(await askHarness()).toBe("first");
    first();
    expect(await askHarness()).toBeUndefined();
    expect(findHookSlots()?.size).toBe(0);
  });

  it("ends with the instance that made it", async () => {
    register("full");
    register("discovery");
    harness.end("disable");
    expect(await askHarness()).toBeUndefined();
    expect(findHookSlots()?.size).toBe(0);
  });

  it("survives the end of the instances before it, however late that comes", async () => {
    const late = new AbortController();
    const api = { ...harness.api, lifecycle: { signal: late.signal } };
    register("old", api);
    harness.end("reload");
    register("new");
    late.abort();
    expect(await askHarness()).toBe("new");
  });

  it("survives the disabling of an older instance, and not that of a newer one", async () => {
    const { cleanUps, createApi } = createCleanedApis();
    register("leaked", createApi());
    register("old", createApi());
    register("new", createApi());
    cleanUps[1]?.({ reason: "reset" });
    cleanUps[1]?.({ reason: "disable" });
    expect(await askHarness()).toBe("new");
    // The host never said that the leaked one ended.
    cleanUps[2]?.({ reason: "disable" });
    expect(await askHarness()).toBeUndefined();
    expect(findHookSlots()?.size).toBe(0);
  });

  it("ends by the signal of its instance alone, also where that has ended already", async () => {
    register("first");
    const controller = new AbortController();
    const { signal } = controller;
    register("second", { ...harness.api, lifecycle: { signal } });
    expect(await askHarness()).toBe("second");
    controller.abort();
    expect(await askHarness()).toBe("first");
    register("late", { ...harness.api, lifecycle: { signal } });
    expect(await askHarness()).toBe("first");
  });

  it.each(["restart", "disable"])(
    "ends with its instance, which is followed once however often it registers (%s)",
    async (reason) => {
      const ends: ((context: { reason: string }) => void)[] = [];
      const onDispose = vi.fn();
      const { signal } = new AbortController();
      const onSignal = vi.spyOn(signal, "addEventListener");
      const lifecycle = {
        signal,
        onDispose,
        registerRuntimeLifecycle: ({
          cleanup,
        }: {
          readonly cleanup: (context: { reason: string }) => void;
        }) => ends.push(cleanup),
      };
      const api = { ...harness.api, lifecycle };
      for (const name of ["first", "second", "third"]) register(name, api)();
      register("fourth", api);
      register("fifth", api);
      expect(await askHarness()).toBe("fifth");
      expect([ends.length, onDispose.mock.calls.length, onSignal.mock.calls.length]).toEqual([1, 1, 1]);
      ends[0]?.({ reason });
      expect(findHookSlots()?.get(harness.api.id)?.entries ?? []).toEqual([]);
      register("late", api);
      ends.at(-1)?.({ reason });
      expect(findHookSlots()?.get(harness.api.id)?.entries ?? []).toEqual([]);
    },
  );

  it("works without any lifecycle, and for two plugins at once", async () => {
    const { id, logger } = harness.api;
    register("plain", { id, logger });
    const other = createHookHarness({ pluginId: "aaa" });
    register("other", other.api);
    expect(await askHarness()).toBe("other");
    other.end("disable");
    expect(await askHarness()).toBe("plain");
  });
});

const AWAY =
  "the hook arbitrate of the plugin plugin-under-test is not there while its plugin is loaded again";

describe("while a plugin is loaded again", () => {
  it("its gates wait for it", async () => {
    register("old");
    register("old");
    harness.end("reload");
    expect(harness.host.hasAny("arbitrate")).toBe(true);
    const ruling = askHarness();
    await harness.clock.advance(100);
    register("new");
    await harness.clock.advance(25);
    expect(await ruling).toBe("new");
  });

  it("they fail when it does not come back in time", async () => {
    registerCoordinationHooks(harness.api, {
      ...createSaying("old"),
      verify: { agents: ["a"], run: () => ({ verdict: "pass" }) },
    });
    harness.end("reload");
    expect(harness.isVerified("a")).toBe(true);
    expect(harness.isVerified("b")).toBe(false);
    const [ruling, verdict] = [askHarness(), harness.verify()];
    await harness.clock.advance(HOOK_LIMITS.reloadMs);
    expect(await ruling).toBe(AWAY);
    expect(await verdict).toMatchObject({ kind: "none", because: "unavailable" });
  });

  it("they fail at once from then on, until it comes back", async () => {
    registerCoordinationHooks(harness.api, {
      ...createSaying("old"),
      verify: () => ({ verdict: "pass" }),
      decide: () => undefined,
    });
    harness.end("reload");
    await harness.clock.advance(HOOK_LIMITS.gatesClosedMs - 1);
    expect(await askHarness()).toBe(AWAY);
    expect(await harness.verify()).toMatchObject({ kind: "none", because: "unavailable" });
    expect(await harness.decide()).toMatchObject({ action: "deny", failed: true });
    expect(harness.isVerified("a")).toBe(true);
    register("new");
    expect(await askHarness()).toBe("new");
    expect(harness.isVerified("a")).toBe(false);
  });

  it("it counts as gone when it stays away for minutes", async () => {
    registerCoordinationHooks(harness.api, { ...createSaying("old"), verify: () => ({ verdict: "pass" }) });
    harness.end("reload");
    await harness.clock.advance(HOOK_LIMITS.gatesClosedMs);
    expect(await askHarness()).toBeUndefined();
    expect(harness.isVerified("a")).toBe(false);
  });

  it("it is gone where its clean-up says only after the end of its signal that it is disabled", async () => {
    const cleanUps: ((context: { reason: string }) => void)[] = [];
    const controller = new AbortController();
    const lifecycle: CoordinationHooksApi["lifecycle"] = {
      signal: controller.signal,
      registerRuntimeLifecycle: (runtimeLifecycle) =>
        cleanUps.push((context) => runtimeLifecycle.cleanup(context)),
    };
    register("old", { ...harness.api, lifecycle });
    controller.abort();
    expect(findHookSlots()?.size).toBe(1);
    for (const reason of ["restart", "reset"]) cleanUps[0]?.({ reason });
    expect(findHookSlots()?.size).toBe(1);
    cleanUps[0]?.({ reason: "disable" });
    expect(findHookSlots()?.size).toBe(0);
    expect(await askHarness()).toBeUndefined();
  });

  it.each([[["disable"]], [["restart", "disable"]]])(
    "it is gone where the host disables one instance, by %j, and ends a newer one for a reload",
    async (reasons) => {
      const { cleanUps, createApi } = createCleanedApis();
      register("full", createApi());
      register("discovery", createApi());
      for (const reason of reasons) cleanUps[0]?.({ reason });
      expect(await askHarness()).toBe("discovery");
      cleanUps[1]?.({ reason: "restart" });
      expect(await askHarness()).toBeUndefined();
      expect(findHookSlots()?.size).toBe(0);
    },
  );

  it("it is remembered where it was disabled and registered again before", () => {
    const { cleanUps, createApi } = createCleanedApis();
    register("disabled", createApi());
    register("discovery", createApi());
    cleanUps[0]?.({ reason: "disable" });
    register("full", createApi());
    for (const end of cleanUps.slice(1)) end({ reason: "restart" });
    expect(findHookSlots()?.size).toBe(1);
  });

  it("nobody waits where the clock was put back meanwhile", () => {
    register("old");
    harness.end("reload");
    const clock = createFakeClock(harness.clock.now() - 3_600_000);
    const doNothing = (): void => undefined;
    const logger = { debug: doNothing, info: doNothing, warn: doNothing, error: doNothing };
    expect(harness.host.hasAny("arbitrate")).toBe(true);
    expect(createHookHost({ clock, logger }).hasAny("arbitrate")).toBe(false);
  });

  it("they are gone when it comes back without them, or is disabled", async () => {
    register("old");
    harness.end("reload");
    const ruling = askHarness();
    registerCoordinationHooks(harness.api, { observe: () => undefined });
    await harness.clock.advance(25);
    expect(await ruling).toBeUndefined();
    register("old");
    harness.end("reload");
    const other = askHarness();
    harness.close();
    await harness.clock.advance(25);
    expect(await other).toBeUndefined();
  });
});

describe("copies of the package", () => {
  it("share the hooks, though they share no module", async () => {
    const copy = (await import(COPY)) as {
      registerCoordinationHooks: typeof registerCoordinationHooks;
    };
    expect(copy.registerCoordinationHooks).not.toBe(registerCoordinationHooks);
    copy.registerCoordinationHooks(harness.api, createSaying("of the copy"));
    expect(await askHarness()).toBe("of the copy");
  });

  it("of a version that is not known fail in the gates that they name, and in no other", async () => {
    register("known", createHookHarness({ pluginId: "known" }).api);
    const report = (): void => undefined;
    const entry = {
      version: 2,
      pluginId: "future",
      kinds: ["verify", "decide", "enchant"],
      hooks: 7,
      report,
    };
    (findHookSlots() as Map<string, unknown>).set("future", { entries: [entry] });
    expect(await askHarness()).toBe("known");
    expect(harness.host.verifiersFor("any")).toEqual(["plugin:future"]);
    const message = "the hook decide of the plugin future is of the form 2, which is not known";
    expect(await harness.decide()).toEqual({
      action: "deny",
      plugin: "future",
      reason: message,
      failed: true,
    });
  });

  it("that do not fit are said when a plugin registers", () => {
    holder[KEY] = { version: 2, slots: new Map() };
    expect(() => register("never asked")).toThrow("versions of openclaw-coordination that do not fit");
  });
});

describe("what is registered", () => {
  const registerBad =
    (hooks: unknown, api: object = {}, options?: object) =>
    () =>
      registerCoordinationHooks({ ...harness.api, ...api }, hooks as CoordinationHooks, options);

  it.each([
    ["no object", registerBad(undefined), "the hooks of the plugin plugin-under-test: they are no object"],
    ["a misspelt hook", registerBad({ arbitrat: () => undefined }), "there is no hook arbitrat"],
    ["no function", registerBad({ verify: 5 }), "verify: it is neither a function nor an object with one"],
    ["an object without one", registerBad({ verify: { agents: ["a"] } }), "verify: `run` is no function"],
    [
      "a misspelt setting",
      registerBad({ decide: { run: () => undefined, budget: 1 } }),
      "decide: there is no setting budget",
    ],
    [
      "a misspelt option",
      registerBad({}, {}, { budget: 7 }),
      "plugin-under-test: there is no setting budget",
    ],
    ["agents among the options", registerBad({}, {}, { agents: ["a"] }), "there is no setting agents"],
    ["agents of another hook", registerBad({ decide: { run: () => undefined, agents: ["a"] } }), "`agents`"],
    ["no agents", registerBad({ verify: { run: () => undefined, agents: [] } }), "`agents`"],
    ["agents that are none", registerBad({ verify: { run: () => undefined, agents: [""] } }), "`agents`"],
    [
      "a priority that is none",
      registerBad({ decide: { run: () => undefined, priority: Number.NaN } }),
      "`priority`",
    ],
    ["a budget that is none", registerBad({}, {}, { budgetMs: 0 }), "`budgetMs`"],
    ["a plugin without an id", registerBad({}, { id: undefined }), "a plugin with hooks has an id"],
    ["an id in capitals", registerBad({}, { id: "Guard" }), "a plugin with hooks has an id"],
    ["an id that begins with an @", registerBad({}, { id: "@acme/guard" }), "the first a letter or a digit"],
    ["too long an id", registerBad({}, { id: "a".repeat(58) }), "a plugin with hooks has an id"],
  ])("is refused with a sentence: %s", (_what, act, sentence) => {
    expect(act).toThrow(TypeError);
    expect(act).toThrow(sentence);
    expect(findHookSlots()?.size ?? 0).toBe(0);
  });

  it("has its settings from its own, else from the options", async () => {
    const other = createHookHarness({ pluginId: "a-first" });
    registerCoordinationHooks(other.api, createSaying("of the others"), { priority: 2 });
    registerCoordinationHooks(
      harness.api,
      { arbitrate: { run: () => new Promise(() => undefined), priority: 3 } },
      { priority: 1, budgetMs: 7 },
    );
    const ruling = askHarness();
    await harness.clock.advance(7);
    expect(await ruling).toContain("did not answer within 7 ms");
  });

  it("is bounded by plugins and by instances of one", async () => {
    for (let n = 0; n < HOOK_LIMITS.pluginsMax; n += 1) register("x", { ...harness.api, id: `p${n}` });
    expect(() => register("x", { ...harness.api, id: "one-more" })).toThrow(RangeError);
    for (let n = 0; n < 2 * HOOK_LIMITS.registrationsMax; n += 1)
      register(`n${n}`, { ...harness.api, id: "p0" });
    expect(findHookSlots()?.get("p0")?.entries).toHaveLength(HOOK_LIMITS.registrationsMax);
    expect(await askHarness()).toBe(`n${2 * HOOK_LIMITS.registrationsMax - 1}`);
  });
});
