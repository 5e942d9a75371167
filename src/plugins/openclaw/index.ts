/**
 * Owns: wiring the plugin to the host. With the flag off it registers the CLI and nothing else (H1). With it on, hooks
 * and the service load their code at first use, so that inspection loads no native module.
 *
 * `register` runs in several module instances of one process and again after every reload, and the host decides which
 * instance hears which hook: all of them register everything, and the state they share lies in `shared-runtime.ts` and
 * in what `shareInProcess` holds.
 */
import { readWrittenSettings } from "../../agents/coordination/contracts/config/written-settings.ts";
import { registerCoordinationCli } from "./register-cli.ts";
import { registerCoordinationCommands } from "./register-commands.ts";
import { registerCoordinationMethods } from "./register-gateway-methods.ts";
import { registerHostHooks } from "./register-hooks.ts";
import { registerMentions } from "./register-mentions.ts";
import { registerRoutes } from "./register-routes.ts";
import { registerCoordinationTools } from "./register-tools.ts";
import { definePluginEntry, type OpenClawPluginApi } from "./host/sdk.ts";

export default definePluginEntry({
  id: "coordination",
  name: "Coordination",
  description: "Coordinates subagent spawns: envelope, lanes, causal ledger, recovery.",
  register: (api) => {
    registerCoordinationCli(api);
    if (!isCoordinationEnabled(api)) return;
    registerHostHooks(api);
    registerCoordinationTools(api);
    registerCoordinationMethods(api);
    registerCoordinationCommands(api);
    registerRoutes(api);
    registerMentions(api);
  },
});

function isCoordinationEnabled({ pluginConfig }: OpenClawPluginApi): boolean {
  return readWrittenSettings(pluginConfig)["enabled"] === true;
}
