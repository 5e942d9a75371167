import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { createFakeInstances } from "../../src/plugins/hooks/fake-instances.ts";
import { findExtractors } from "../../src/plugins/openclaw/writes/extractor-registry.ts";
import {
  registerResourceExtractor,
  type ResourceExtractor,
} from "../../src/plugins/openclaw/writes/resources.ts";
import { parseConflicts, FOLDER, readCall, showReading } from "./writes-calls.ts";

const undo: (() => void)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const each of undo.splice(0)) each();
});

function register(
  extract: ResourceExtractor["extract"] | (() => unknown),
  more: Partial<ResourceExtractor> = {},
) {
  const extractor = { id: "test", tools: ["deploy"], extract, ...more } as ResourceExtractor;
  const unregister = registerResourceExtractor(extractor);
  undo.push(unregister);
  return unregister;
}

const readDeploy = async (params: unknown = {}) =>
  showReading(await readCall("deploy", params, { extractors: findExtractors }));
const failed = { targets: [], reads: [], undetermined: { because: "extractor_failed", extractor: "test" } };

describe("an extractor", () => {
  it("names what a call changes and looks at", async () => {
    register(({ tool, params, folder }) => ({
      resources: [`db:${tool}`, "queue:mail", "session:agent:b:main"],
      paths: [String(params["file"]), "/abs"],
      reads: [`${folder}/in`],
    }));
    const read = await readCall("deploy", { file: "a" }, { extractors: findExtractors });
    expect(showReading(read)).toEqual({
      targets: [["a", true], ["/abs", true], ["db:deploy"], ["queue:mail"], ["session:agent:b:main"]],
      reads: [{ path: `${FOLDER}/in`, folder: FOLDER }],
    });
  });

  it("may answer later, and with nothing", async () => {
    vi.useFakeTimers();
    register(() => Promise.resolve({}));
    expect(await readDeploy()).toEqual({ targets: [], reads: [] });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is asked about its own tools only", async () => {
    const extract = vi.fn(() => ({}));
    register(extract, { tools: ["other"] });
    expect(await readDeploy()).toBeUndefined();
    expect(extract).not.toHaveBeenCalled();
  });

  it("adds to what is known of a tool, and takes nothing from it", async () => {
    register(() => ({ resources: ["db:x"] }), { tools: ["exec", "write", "configured"] });
    const config = parseConflicts({ tools: { configured: { paths: ["to"] } } });
    const read = async (tool: string, params: object) =>
      showReading(await readCall(tool, params, { config, extractors: findExtractors }));
    expect(await read("exec", { command: "x" })).toMatchObject({
      targets: [["db:x"]],
      undetermined: { because: "undeclared" },
      mayTouchAnything: true,
    });
    expect(await read("write", { path: "/a", content: "" })).toEqual({
      targets: [["/a", true], ["db:x"]],
      reads: [],
    });
    expect(await read("configured", { to: "b" })).toMatchObject({ targets: [["b", true], ["db:x"]] });
  });

  it("gets a copy of the parameters that it cannot change", async () => {
    const params = { list: [{ a: 1 }] };
    register((call) => {
      expect(call.params).toEqual(params);
      const { list } = call.params as typeof params;
      expect([call.params, list, list[0]].every((value) => Object.isFrozen(value))).toBe(true);
      expect(list).not.toBe(params.list);
      return { resources: ["db:seen"] };
    });
    expect(await readDeploy(params)).toMatchObject({ targets: [["db:seen"]] });
    expect(Object.isFrozen(params)).toBe(false);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no"))],
    ["answers nothing", () => undefined],
    ["answers something else", () => "a"],
    ["misspells what it answers", () => ({ resource: ["db:x"] })],
    ["answers no list", () => ({ paths: "a" })],
    ["names a file among the resources", () => ({ resources: ["file:/a"] })],
    ["names a resource without a kind", () => ({ resources: ["customers"] })],
    ["names a resource in capitals", () => ({ resources: ["DB:x"] })],
    ["names a resource with line breaks", () => ({ resources: ["db:a\nb"] })],
    ["names a drive", () => ({ resources: ["c:x"] })],
    ["names nothing of a kind", () => ({ resources: ["db:"] })],
    ["names too long a resource", () => ({ resources: [`db:${"x".repeat(BOUNDS.resourceCharsMax)}`] })],
    ["names too many resources", () => ({ resources: Array(BOUNDS.resourcesPerCallMax + 1).fill("db:x") })],
    ["names a blank path", () => ({ paths: [" "] })],
    ["names a path that is none", () => ({ reads: ["a\0b"] })],
    [
      "answers with a trap",
      () => ({
        get paths() {
          throw new Error("no");
        },
      }),
    ],
  ])("that %s makes the call be refused", async (_name, extract) => {
    register(extract);
    expect(await readDeploy()).toEqual(failed);
  });

  it("that does not answer within a second makes the call be refused", async () => {
    vi.useFakeTimers();
    register(() => new Promise(() => {}));
    const read = readDeploy();
    await vi.advanceTimersByTimeAsync(999);
    const answered = vi.fn();
    void read.then(answered);
    await vi.advanceTimersByTimeAsync(0);
    expect(answered).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(await read).toEqual(failed);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("that fails weighs more than anything else that is not known, whatever another one says", async () => {
    register(() => ({ resources: ["db:x"] }), { id: "good", tools: ["exec"] });
    register(() => undefined, { tools: ["exec"] });
    const read = await readCall("exec", { command: "x" }, { extractors: findExtractors });
    expect(showReading(read)).toEqual({
      ...failed,
      targets: [["db:x"]],
      mayTouchAnything: true,
      folder: FOLDER,
    });
  });

  it("is not asked about parameters that are none, or cannot be copied", async () => {
    const extract = vi.fn(() => ({}));
    register(extract);
    for (const params of [{ a: () => 1 }, [], "a", null]) expect(await readDeploy(params)).toEqual(failed);
    expect(extract).not.toHaveBeenCalled();
  });

  it("reads parameters nested as deep as a model likes", async () => {
    let deep: unknown = 1;
    for (let depth = 0; depth < 2_000; depth += 1) deep = [deep];
    register(() => ({ resources: ["db:x"] }));
    expect(await readDeploy({ deep })).toMatchObject({ targets: [["db:x"]] });
  });
});

describe("registering an extractor", () => {
  const createNamed = (name: string) => () => ({ resources: [`db:${name}`] });

  it("ends with what it returns", async () => {
    const unregister = register(createNamed("a"));
    expect(findExtractors("deploy")).toHaveLength(1);
    unregister();
    unregister();
    expect(findExtractors("deploy")).toEqual([]);
    expect(await readDeploy()).toBeUndefined();
  });

  describe("with the plugin's API", () => {
    const failedCrm = { ...failed, undetermined: { because: "extractor_failed", extractor: "crm" } };
    let instances = createFakeInstances("crm", () => undefined);
    const registerIn = (name: string, tools = ["deploy"]) => {
      const extractor = { id: "crm", tools, extract: createNamed(name) };
      undo.push(registerResourceExtractor(extractor, instances.open()));
    };

    beforeEach(() => {
      vi.useFakeTimers();
      instances = createFakeInstances("crm", () => undefined);
      registerIn("full");
      registerIn("discovered");
      undo.push(() => {
        // Also what is waited for after the test is gone with a plugin that is disabled.
        registerIn("last");
        instances.end("disable");
      });
    });

    it("is waited for while the plugin is loaded again, however the host tells of its end", async () => {
      instances.end("reload");
      const read = readDeploy();
      await vi.advanceTimersByTimeAsync(2_900);
      registerIn("again");
      await vi.advanceTimersByTimeAsync(100);
      expect(await read).toMatchObject({ targets: [["db:again"]] });
      instances.end("disable");
      expect(findExtractors("deploy")).toEqual([]);
    });

    it("makes calls be refused where its plugin is not back in time, at last at once, until the plugin is gone", async () => {
      instances.end("reload");
      const read = readDeploy();
      await vi.advanceTimersByTimeAsync(3_000);
      expect(await read).toEqual(failedCrm);
      expect(await readDeploy()).toEqual(failedCrm);
      await vi.advanceTimersByTimeAsync(296_999);
      expect(await readDeploy()).toEqual(failedCrm);
      await vi.advanceTimersByTimeAsync(1);
      expect(await readDeploy()).toBeUndefined();
    });

    it("says nothing of a call that it does not read any more, once it is loaded again", async () => {
      instances.end("reload");
      const read = readDeploy();
      registerIn("again", ["other"]);
      await vi.advanceTimersByTimeAsync(100);
      expect(await read).toBeUndefined();
    });

    it("is not waited for once a newer instance of its plugin has registered another one", async () => {
      const api = instances.newest();
      undo.push(
        registerResourceExtractor({ id: "crm.orders", tools: ["order"], extract: createNamed("old") }, api),
      );
      instances.end("reload");
      const read = readDeploy();
      const renamed = { id: "crm.v2", tools: ["deploy"], extract: createNamed("renamed") };
      undo.push(registerResourceExtractor(renamed, instances.open()));
      await vi.advanceTimersByTimeAsync(100);
      expect(await read).toEqual({ targets: [["db:renamed"]], reads: [] });
      expect(findExtractors("order")).toEqual([]);
      instances.end("reload");
      expect(findExtractors("deploy")).toMatchObject([{ id: "crm.v2", leftAtMs: Date.now() }]);
    });

    it("is not waited for where it ends after a newer instance of its plugin has registered another one", () => {
      const newer = createFakeInstances("crm", () => undefined);
      const renamed = { id: "crm.v2", tools: ["deploy"], extract: createNamed("renamed") };
      undo.push(registerResourceExtractor(renamed, newer.open()));
      instances.end("reload");
      expect(findExtractors("deploy").map(({ id }) => id)).toEqual(["crm.v2"]);
    });

    it("is waited for whatever another plugin registers", () => {
      instances.end("reload");
      const other = createFakeInstances("other", () => undefined);
      const extractor = { id: "other", tools: ["deploy"], extract: createNamed("other") };
      undo.push(registerResourceExtractor(extractor, other.open()));
      expect(findExtractors("deploy").map(({ id }) => id)).toEqual(["crm", "other"]);
    });

    it("ends at once with a plugin that is disabled, also while it is waited for", () => {
      instances.end("disable");
      expect(findExtractors("deploy")).toEqual([]);
      const late = instances.open();
      undo.push(registerResourceExtractor({ id: "crm", tools: ["deploy"], extract: () => ({}) }, late));
      const disabled = createFakeInstances("crm", () => undefined);
      const other = { id: "crm", tools: ["deploy"], extract: () => ({}) };
      undo.push(registerResourceExtractor(other, disabled.open()));
      instances.end("reload");
      disabled.end("disable");
      expect(findExtractors("deploy")).toEqual([]);
    });

    it("is followed once for two registrations of one instance, since the host takes each name once", () => {
      const lifecycleIds: string[] = [];
      const { lifecycle } = instances.open();
      const twice = {
        lifecycle: {
          ...lifecycle,
          registerRuntimeLifecycle: ({ id }: { readonly id: string }) => void lifecycleIds.push(id),
        },
      };
      for (const name of ["first", "second"])
        undo.push(
          registerResourceExtractor({ id: "crm", tools: ["deploy"], extract: createNamed(name) }, twice),
        );
      expect(lifecycleIds).toEqual(["crm.resource-extractor"]);
      instances.end("disable");
    });
  });

  it("with the API of a host that tells of no end is ended by what it returns", () => {
    const unregister = registerResourceExtractor({ id: "crm", tools: ["deploy"], extract: () => ({}) }, {});
    expect(findExtractors("deploy")).toHaveLength(1);
    unregister();
    expect(findExtractors("deploy")).toEqual([]);
  });

  it("again replaces the one before, which comes back when the later one ends", async () => {
    const first = register(createNamed("first"));
    const second = register(createNamed("second"));
    expect(await readDeploy()).toMatchObject({ targets: [["db:second"]] });
    second();
    expect(await readDeploy()).toMatchObject({ targets: [["db:first"]] });
    const third = register(createNamed("third"));
    first();
    expect(await readDeploy()).toMatchObject({ targets: [["db:third"]] });
    third();
    expect(await readDeploy()).toBeUndefined();
  });

  it("reaches the same list from every instance of the module", async () => {
    vi.resetModules();
    const other = await import("../../src/plugins/openclaw/writes/resources.ts");
    expect(other.registerResourceExtractor).not.toBe(registerResourceExtractor);
    undo.push(
      other.registerResourceExtractor({ id: "other", tools: ["deploy"], extract: createNamed("other") }),
    );
    expect(await readDeploy()).toMatchObject({ targets: [["db:other"]] });
  });

  it("is refused with a sentence where another build of the package holds the list", () => {
    const key = Symbol.for("openclaw-coordination.resource-extractors");
    const holder = globalThis as Record<symbol, unknown>;
    const list = holder[key];
    undo.push(() => (holder[key] = list));
    // The form of earlier builds.
    holder[key] = { byId: new Map([["test", [{ id: "test" }]]]), byTool: new Map() };
    expect(() => register(createNamed("never asked"))).toThrow(
      "versions of openclaw-coordination that do not fit",
    );
  });

  it("keeps `this` of the extractor", async () => {
    const extractor = {
      id: "own",
      tools: ["deploy"],
      name: "mine",
      extract() {
        return { resources: [`db:${this.name}`] };
      },
    };
    undo.push(registerResourceExtractor(extractor));
    expect(await readDeploy()).toMatchObject({ targets: [["db:mine"]] });
  });

  it.each([
    [{ id: "" }],
    [{ id: "a b" }],
    [{ id: "x".repeat(65) }],
    [{ tools: [] }],
    [{ tools: [""] }],
    [{ tools: "deploy" }],
    [{ tools: Array(65).fill("x") }],
    [{ extract: "no" }],
  ])("is refused where it is not one: %.40j", (wrong) => {
    expect(() => register(createNamed("x"), wrong as Partial<ResourceExtractor>)).toThrow(TypeError);
    expect(findExtractors("deploy")).toEqual([]);
  });

  it("is refused where there are too many", () => {
    for (let count = 0; count < 64; count += 1) register(createNamed("x"), { id: `e${count}` });
    expect(() => register(createNamed("x"), { id: "one-more" })).toThrow(RangeError);
    register(createNamed("again"), { id: "e0" });
    expect(findExtractors("deploy")).toHaveLength(64);
  });
});
