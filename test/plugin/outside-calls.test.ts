import { AsyncLocalStorage } from "node:async_hooks";
import { afterEach, describe, expect, it, vi } from "vitest";
import { runOutsideCalls } from "../../src/plugins/openclaw/host/outside-calls.ts";
import { createPlanAccess } from "../../src/plugins/openclaw/runtime-access/plan-access.ts";
import type { OpenClawPluginApi } from "../../src/plugins/openclaw/host/sdk.ts";
import {
  replaceRuntime,
  type SharedRuntime,
} from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";

const client = new AsyncLocalStorage<string>();

afterEach(() => {
  vi.resetModules();
});

describe("outside of calls", () => {
  it("what is begun does not carry the call's context, then or later", async () => {
    const seen = await client.run("gone", () =>
      runOutsideCalls(async () => {
        const first = client.getStore();
        await new Promise((resolve) => setImmediate(resolve));
        return [first, client.getStore()];
      }),
    );
    expect(seen).toEqual([undefined, undefined]);
  });

  it("the caller keeps its own context", () => {
    const kept = client.run("here", () => {
      runOutsideCalls(() => undefined);
      return client.getStore();
    });
    expect(kept).toBe("here");
  });

  it("a module instance that is loaded within a call leaves that call too", async () => {
    vi.resetModules();
    const other = await client.run(
      "loading",
      () => import("../../src/plugins/openclaw/host/outside-calls.ts"),
    );
    expect(other.runOutsideCalls).not.toBe(runOutsideCalls);
    expect(client.run("gone", () => other.runOutsideCalls(() => client.getStore()))).toBeUndefined();
  });

  it("is where tools and methods ask the coordinator", async () => {
    const runtime = { closed: false, coordinator: () => Promise.resolve({}), close: () => Promise.resolve() };
    await replaceRuntime(runtime as unknown as SharedRuntime);
    const use = createPlanAccess({} as OpenClawPluginApi);
    const seen = await client.run("gone", () => use(() => Promise.resolve(client.getStore() ?? "nothing")));
    expect(seen).toBe("nothing");
  });
});
