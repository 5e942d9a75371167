/** Owns: offering metrics to the host, where the operator wants them. Their code is loaded with the runtime, and only then. */
import {
  readSection,
  readWrittenSettings,
} from "../../agents/coordination/contracts/config/written-settings.ts";
import type { OpenClawPluginApi } from "./host/sdk.ts";

/** Where Prometheus reads the metrics of the gateway. */
const METRICS_PATH = "/coordination/metrics";

export function registerMetrics(api: OpenClawPluginApi): void {
  if (!isWanted(api)) return;
  api.registerHttpRoute({
    path: METRICS_PATH,
    match: "exact",
    // Whoever may use the gateway over HTTP, and nobody else.
    auth: "gateway",
    handler: async (request, response) => {
      const { takeMetricsRequest } = await import("./runtime-access/metrics-request.ts");
      await takeMetricsRequest(api, request.method, response);
      return true;
    },
  });
}

function isWanted({ pluginConfig }: OpenClawPluginApi): boolean {
  return readSection(readWrittenSettings(pluginConfig), "metrics")["enabled"] === true;
}
