/** Owns: offering the operator's page to the host: its routes and its tab. Its code is loaded with the first request. */
import {
  readSection,
  readWrittenSettings,
} from "../../agents/coordination/contracts/config/written-settings.ts";
import { PAGE_PATH, TAB_PATH } from "./page/page-face.ts";
import { planAccess } from "./runtime-access/plan-access.ts";
import { takePageRequest } from "./runtime-access/page-request.ts";
import type { OpenClawPluginApi } from "./host/sdk.ts";

/** Names who answered through the page, as a gateway client has a name. */
const CALLER = { clientId: "coordination-page" };

export function registerPage(api: OpenClawPluginApi): void {
  if (!isWanted(api)) return;
  api.registerHttpRoute({
    path: PAGE_PATH,
    match: "prefix",
    // Its own tokens are the authority, not the gateway's: a browser opens it by a link that signs in once.
    auth: "plugin",
    handler: async (request, response) => {
      const { createPlanMethods } = await import("./plans/plan-methods.ts");
      const methods = createPlanMethods(planAccess(api));
      await takePageRequest(api, response, (page) =>
        page.handle(request, response, (method, params) => methods(method, params, CALLER)),
      );
      return true;
    },
  });
  api.registerHttpRoute({
    path: TAB_PATH,
    match: "exact",
    auth: "gateway",
    handler: async (request, response) => {
      await takePageRequest(api, response, (page) => page.handleTab(request, response));
      return true;
    },
  });
  api.session.controls.registerControlUiDescriptor({
    surface: "tab",
    id: "coordination",
    label: "Coordination",
    description: "What agents do together: coordinations, plans, questions and claims, live.",
    icon: "network",
    group: "control",
    path: TAB_PATH,
    requiredScopes: ["operator.read"],
  });
}

/** It is, unless the operator says otherwise. */
function isWanted({ pluginConfig }: OpenClawPluginApi): boolean {
  return readSection(readWrittenSettings(pluginConfig), "page")["enabled"] !== false;
}
