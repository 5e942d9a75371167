import type { Advertised } from "./advertised.ts";
import { eventRoutes } from "./event-routes.ts";
import { forkRoute } from "./fork-route.ts";
import { hostRoutes } from "./host-routes.ts";
import { interruptRoutes } from "./interrupt-routes.ts";
import type { Route } from "./route.ts";
import { runRoutes } from "./run-routes.ts";
import { seamRoutes } from "./seam-routes.ts";

/** All routes that are there. */
export function routesOf(advertised: Advertised, withTestSeams: boolean): readonly Route[] {
  const routes = [...hostRoutes, ...runRoutes, forkRoute, ...eventRoutes, ...interruptRoutes];
  return [...routes, ...(withTestSeams ? seamRoutes : [])].filter(
    (route) => route.when?.(advertised) ?? true,
  );
}
