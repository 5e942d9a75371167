import { afterEach, describe, expect, it, vi } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { extractorsOf } from "../../src/plugins/openclaw/writes/extractor-registry.ts";
import {
  registerResourceExtractor,
  type ResourceExtractor,
} from "../../src/plugins/openclaw/writes/resources.ts";
import { conflicts, FOLDER, reading, shown } from "./writes-calls.ts";

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

const deploy = async (params: unknown = {}) =>
  shown(await reading("deploy", params, { extractors: extractorsOf }));
const failed = { targets: [], reads: [], undetermined: { because: "extractor_failed", extractor: "test" } };

describe("an extractor", () => {
  it("names what a call changes and looks at", async () => {
    register(({ tool, params, folder }) => ({
      resources: [`db:${tool}`, "queue:mail", "session:agent:b:main"],
      paths: [String(params["file"]), "/abs"],
      reads: [`${folder}/in`],
    }));
    const read = await reading("deploy", { file: "a" }, { extractors: extractorsOf });
    expect(shown(read)).toEqual({
      targets: [["a", true], ["/abs", true], ["db:deploy"], ["queue:mail"], ["session:agent:b:main"]],
      reads: [{ path: `${FOLDER}/in`, folder: FOLDER }],
    });
  });

  it("may answer later, and with nothing", async () => {
    vi.useFakeTimers();
    register(() => Promise.resolve({}));
    expect(await deploy()).toEqual({ targets: [], reads: [] });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is asked about its own tools only", async () => {
    const extract = vi.fn(() => ({}));
    register(extract, { tools: ["other"] });
    expect(await deploy()).toBeUndefined();
    expect(extract).not.toHaveBeenCalled();
  });

  it("adds to what is known of a tool, and takes nothing from it", async () => {
    register(() => ({ resources: ["db:x"] }), { tools: ["exec", "write", "configured"] });
    const config = conflicts({ tools: { configured: { paths: ["to"] } } });
    const read = async (tool: string, params: object) =>
      shown(await reading(tool, params, { config, extractors: extractorsOf }));
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
    expect(await deploy(params)).toMatchObject({ targets: [["db:seen"]] });
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
    expect(await deploy()).toEqual(failed);
  });

  it("that does not answer within a second makes the call be refused", async () => {
    vi.useFakeTimers();
    register(() => new Promise(() => {}));
    const read = deploy();
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
    const read = await reading("exec", { command: "x" }, { extractors: extractorsOf });
    expect(shown(read)).toEqual({ ...failed, targets: [["db:x"]], mayTouchAnything: true });
  });

  it("is not asked about parameters that are none, or cannot be copied", async () => {
    const extract = vi.fn(() => ({}));
    register(extract);
    for (const params of [{ a: () => 1 }, [], "a", null]) expect(await deploy(params)).toEqual(failed);
    expect(extract).not.toHaveBeenCalled();
  });

  it("reads parameters nested as deep as a model likes", async () => {
    let deep: unknown = 1;
    for (let depth = 0; depth < 2_000; depth += 1) deep = [deep];
    register(() => ({ resources: ["db:x"] }));
    expect(await deploy({ deep })).toMatchObject({ targets: [["db:x"]] });
  });
});

describe("registering an extractor", () => {
  const named = (name: string) => () => ({ resources: [`db:${name}`] });

  it("ends with what it returns", async () => {
    const unregister = register(named("a"));
    expect(extractorsOf("deploy")).toHaveLength(1);
    unregister();
    unregister();
    expect(extractorsOf("deploy")).toEqual([]);
    expect(await deploy()).toBeUndefined();
  });

  it("again replaces the one before, which comes back when the later one ends", async () => {
    const first = register(named("first"));
    const second = register(named("second"));
    expect(await deploy()).toMatchObject({ targets: [["db:second"]] });
    second();
    expect(await deploy()).toMatchObject({ targets: [["db:first"]] });
    const third = register(named("third"));
    first();
    expect(await deploy()).toMatchObject({ targets: [["db:third"]] });
    third();
    expect(await deploy()).toBeUndefined();
  });

  it("reaches the same list from every instance of the module", async () => {
    vi.resetModules();
    const other = await import("../../src/plugins/openclaw/writes/resources.ts");
    expect(other.registerResourceExtractor).not.toBe(registerResourceExtractor);
    undo.push(other.registerResourceExtractor({ id: "other", tools: ["deploy"], extract: named("other") }));
    expect(await deploy()).toMatchObject({ targets: [["db:other"]] });
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
    expect(await deploy()).toMatchObject({ targets: [["db:mine"]] });
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
    expect(() => register(named("x"), wrong as Partial<ResourceExtractor>)).toThrow(TypeError);
    expect(extractorsOf("deploy")).toEqual([]);
  });

  it("is refused where there are too many", () => {
    for (let count = 0; count < 64; count += 1) register(named("x"), { id: `e${count}` });
    expect(() => register(named("x"), { id: "one-more" })).toThrow(RangeError);
    register(named("again"), { id: "e0" });
    expect(extractorsOf("deploy")).toHaveLength(64);
  });
});
