/** Owns: offering OpenWOP to the host, where the operator wants it. Its code is loaded with the first request. */
import {
  readSection,
  readWrittenSettings,
} from "../../agents/coordination/contracts/config/written-settings.ts";
import { OPENWOP_PATH } from "./openwop/openwop-address.ts";
import type { OpenClawPluginApi } from "./host/sdk.ts";

export function registerOpenWopRoute(api: OpenClawPluginApi): void {
  if (!isWanted(api)) return;
  api.registerHttpRoute({
    path: OPENWOP_PATH,
    match: "prefix",
    // Its own bearer tokens are the authority, not the gateway's token.
    auth: "plugin",
    handler: async (request, response) => {
      const { takeOpenWopRequest } = await import("./runtime-access/openwop-request.ts");
      await takeOpenWopRequest(api, request, response);
      return true;
    },
  });
}

function isWanted({ pluginConfig }: OpenClawPluginApi): boolean {
  return readSection(readWrittenSettings(pluginConfig), "openwop")["enabled"] === true;
}
