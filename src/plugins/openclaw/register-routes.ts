/**
 * Owns: offering HTTP routes to the host, where the operator wants them: the address for signed answers, OpenWOP, the
 * operator's page with its tab, and metrics. Their code is loaded with the first request.
 */
import {
  readSection,
  readWrittenSettings,
} from "../../agents/coordination/contracts/config/written-settings.ts";
import { ANSWER_PATH } from "../answer-path.ts";
import type { OpenClawPluginApi } from "./host/sdk.ts";
import { OPENWOP_PATH } from "./openwop/openwop-address.ts";
import { PAGE_PATH, TAB_PATH } from "./page/page-face.ts";
import { createPlanAccess } from "./runtime-access/plan-access.ts";

/** Where Prometheus reads the metrics of the gateway. */
const METRICS_PATH = "/coordination/metrics";

/** Names who answered through the page, as a gateway client has a name. */
const CALLER = { clientId: "coordination-page" };

const loadRequests = () => import("./runtime-access/http-requests.ts");

/**
 * Registers the HTTP routes of the plugin: signed answers, OpenWOP, the page and the metrics, each where it is
 * enabled.
 */
export function registerRoutes(api: OpenClawPluginApi): void {
  registerAnswerRoute(api);
  registerOpenWopRoute(api);
  registerPageRoutes(api);
  registerMetricsRoute(api);
}

/** Offers the address for signed answers where a webhook is configured. */
function registerAnswerRoute(api: OpenClawPluginApi): void {
  const webhooks = readSection(readSettingsSection(api, "escalations"), "webhooks");
  if (Object.keys(webhooks).length === 0) return;
  api.registerHttpRoute({
    path: ANSWER_PATH,
    match: "prefix",
    // The signature is the authority, not the gateway's token.
    auth: "plugin",
    handler: async (request, response) => {
      const [{ takeSignedAnswer }, { createHostLogger: hostLogger }] = await Promise.all([
        import("./questions/signed-answer.ts"),
        import("./host/host-logger.ts"),
      ]);
      const dependencies = { use: createPlanAccess(api), logger: hostLogger(api.logger) };
      await takeSignedAnswer(dependencies, request, response);
      return true;
    },
  });
}

/** Registers the HTTP route of OpenWOP where the written configuration enables it; the route checks its own tokens. */
export function registerOpenWopRoute(api: OpenClawPluginApi): void {
  if (readSettingsSection(api, "openwop")["enabled"] !== true) return;
  api.registerHttpRoute({
    path: OPENWOP_PATH,
    match: "prefix",
    // Its own bearer tokens are the authority, not the gateway's token.
    auth: "plugin",
    handler: async (request, response) => {
      const { takeOpenWopRequest } = await loadRequests();
      await takeOpenWopRequest(api, request, response);
      return true;
    },
  });
}

/** Offers the page and its tab in the Control UI, unless the operator says otherwise. */
function registerPageRoutes(api: OpenClawPluginApi): void {
  if (readSettingsSection(api, "page")["enabled"] === false) return;
  api.registerHttpRoute({
    path: PAGE_PATH,
    match: "prefix",
    // Its own tokens are the authority, not the gateway's: a browser opens it by a link that signs in once.
    auth: "plugin",
    handler: async (request, response) => {
      const [{ takePageRequest }, { createPlanMethods }] = await Promise.all([
        loadRequests(),
        import("./plans/plan-methods.ts"),
      ]);
      const methods = createPlanMethods(createPlanAccess(api));
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
      const { takePageRequest } = await loadRequests();
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

/**
 * Registers the HTTP route of the metrics where the written configuration enables it, for whoever may use the gateway.
 */
export function registerMetricsRoute(api: OpenClawPluginApi): void {
  if (readSettingsSection(api, "metrics")["enabled"] !== true) return;
  api.registerHttpRoute({
    path: METRICS_PATH,
    match: "exact",
    // Whoever may use the gateway over HTTP, and nobody else.
    auth: "gateway",
    handler: async (request, response) => {
      const { takeMetricsRequest } = await loadRequests();
      await takeMetricsRequest(api, request.method, response);
      return true;
    },
  });
}

function readSettingsSection({ pluginConfig }: OpenClawPluginApi, section: string): Record<string, unknown> {
  return readSection(readWrittenSettings(pluginConfig), section);
}
