/** Owns: the route at which Prometheus reads the metrics of a host that runs by itself. It is no part of the protocol. */
import { anySchema } from "./schemas.ts";
import { refuse } from "./error-map.ts";
import { defineRoute, type Route } from "./route.ts";

/** Gives the route what it answers with. */
export interface MetricsSource {
  readonly contentType: string;
  scrape(): Promise<string>;
}

/** Where several tenants share the host, the numbers are of all of them together. */
const SCOPE = "metrics";

/**
 * Creates the route that answers with all metrics as text; where tenants share the host, only for a token with the
 * scope for that.
 */
export function createMetricsRoute(
  metrics: MetricsSource,
  { isShared }: { readonly isShared: boolean },
): Route {
  return defineRoute({
    method: "GET",
    path: "/metrics",
    operationId: "getMetrics",
    auth: "bearer",
    summary: "All metrics, in Prometheus' text format.",
    status: 200,
    answer: anySchema,
    handle: async ({ caller }) => {
      if (isShared && caller.scopes?.includes(SCOPE) !== true)
        return refuse(
          "forbidden",
          `These are the metrics of all tenants: give the token the scope ${SCOPE}.`,
        );
      const text = await metrics.scrape();
      const headers = { "content-type": metrics.contentType, "cache-control": "no-store" };
      return { kind: "text", status: 200, text, headers };
    },
  });
}
