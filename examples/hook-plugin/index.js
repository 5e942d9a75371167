/** Wires the hooks to the host. The host loads this file more than once, and registering again replaces. */
import { registerCoordinationHooks } from "openclaw-coordination/hooks";
import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";
import { createHooks } from "./hooks.js";

export default definePluginEntry({
  id: "hook-plugin",
  name: "Hook plugin",
  description: "Rules, verifies, tells and counts, beside the coordination plugin.",
  register(api) {
    const { hooks, counts } = createHooks((message) => api.logger.info(message));
    registerCoordinationHooks(api, hooks);
    api.registerGatewayMethod("hook-plugin.counts", ({ respond }) => respond(true, counts()), {
      scope: "operator.read",
    });
  },
});
