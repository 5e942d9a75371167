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
import { planAccess } from "./runtime-access/plan-access.ts";

/** Where Prometheus reads the metrics of the gateway. */
const METRICS_PATH = "/coordination/metrics";

/** Names who answered through the page, as a gateway client has a name. */
const CALLER = { clientId: "coordination-page" };

const loadRequests = () => import("./runtime-access/http-requests.ts");

export function registerRoutes(api: OpenClawPluginApi): void {
  registerAnswerRoute(api);
  registerOpenWopRoute(api);
  registerPage(api);
  registerMetrics(api);
}

/** Offers the address for signed answers where a webhook is configured. */
function registerAnswerRoute(api: OpenClawPluginApi): void {
  const webhooks = readSection(readWritten(api, "escalations"), "webhooks");
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
      const dependencies = { use: planAccess(api), logger: hostLogger(api.logger) };
      await takeSignedAnswer(dependencies, request, response);
      return true;
    },
  });
}

export function registerOpenWopRoute(api: OpenClawPluginApi): void {
  if (readWritten(api, "openwop")["enabled"] !== true) return;
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

/** Offers the page, unless the operator says otherwise. */
function registerPage(api: OpenClawPluginApi): void {
  if (readWritten(api, "page")["enabled"] === false) return;
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

export function registerMetrics(api: OpenClawPluginApi): void {
  if (readWritten(api, "metrics")["enabled"] !== true) return;
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

function readWritten({ pluginConfig }: OpenClawPluginApi, section: string): Record<string, unknown> {
  return readSection(readWrittenSettings(pluginConfig), section);
}
