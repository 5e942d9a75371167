/** Owns: what tests of hooks share: plugins with hooks, each under a harness that is closed after the test. */
import { afterEach } from "vitest";
import { registerCoordinationHooks, type CoordinationHooks } from "../../src/plugins/hooks/hooks.ts";
import { createHookHarness, type HookHarness } from "../../src/plugins/hooks/testing.ts";

const harnesses: HookHarness[] = [];

afterEach(() => {
  for (const harness of harnesses.splice(0)) harness.close();
});

/** A plugin with these hooks. Its harness asks all plugins that there are. */
export function createPlugin(hooks: CoordinationHooks, pluginId = "guard"): HookHarness {
  const harness = createHookHarness({ pluginId });
  harnesses.push(harness);
  registerCoordinationHooks(harness.api, hooks);
  return harness;
}

export const waitForever = (): Promise<never> => new Promise<never>(() => undefined);

export const throwSecret = (): never => {
  throw new Error("secret words");
};
