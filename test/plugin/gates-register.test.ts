import { beforeEach, describe, expect, it, vi } from "vitest";
import type { GateHandlers } from "../../src/plugins/openclaw/withholding/gate-handlers.ts";
import { registerGates } from "../../src/plugins/openclaw/withholding/register-gates.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import { forgetAll } from "./gates-scene.ts";

beforeEach(() => {
  forgetAll();
  Reflect.deleteProperty(globalThis, TRANSFORMS);
});

const TRANSFORMS = Symbol.for("openclaw-coordination.text-transforms");

/** An instance of the plugin, and the hooks that the host has of it. */
function createInstance() {
  const hooks = new Map<string, (event: unknown, ctx: unknown) => unknown>();
  const patterns: RegExp[] = [];
  const heard: string[] = [];
  const handlers: GateHandlers = {
    beforeRun: () => Promise.resolve(undefined),
    modelCallStarted: () => void heard.push("model_call_started"),
    beforeMessageWrite: () => void heard.push("before_message_write"),
  };
  const api = {
    registerTextTransforms: ({ output }: { output: { from: RegExp }[] }) => {
      patterns.push(...output.map(({ from }) => from));
    },
    on: (name: string, handler: (event: unknown, ctx: unknown) => unknown) => hooks.set(name, handler),
  };
  registerGates(api as unknown as OpenClawPluginApi, () => Promise.resolve(handlers));
  const writeMessage = (): void => void hooks.get("before_message_write")?.({ message: {} }, {});
  return {
    heard,
    writes: writeMessage,
    hears: (name: string) => hooks.get(name)?.({}, {}),
    pattern: patterns[0],
  };
}

const areLoaded = () => vi.waitFor(() => expect(TRANSFORMS in globalThis).toBe(true));

describe("an instance that a reload made in the middle of a run", () => {
  it("hears of the messages of that run without having heard of its begin", async () => {
    const first = createInstance();
    await first.hears("before_agent_run");
    first.writes();
    expect(first.heard).toEqual(["before_message_write"]);
    const second = createInstance();
    await vi.waitFor(() => {
      second.writes();
      expect(second.heard).not.toEqual([]);
    });
  });

  it("keeps back by the code of the one before until its own is loaded", async () => {
    createInstance();
    await areLoaded();
    Reflect.set(globalThis, TRANSFORMS, { fromModel: /.+/gu, toModel: /.+/gu });
    const second = createInstance();
    expect("The code is 4711.".replace(second.pattern ?? /x/u, "")).toBe("");
  });
});

describe("the first instance", () => {
  it("lets texts pass as they are while nothing is loaded, and hears of no message", () => {
    const first = createInstance();
    expect("The code is 4711.".replace(first.pattern ?? /x/u, "")).toBe("The code is 4711.");
    first.writes();
    expect(first.heard).toEqual([]);
  });
});
