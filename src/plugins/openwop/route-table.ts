/** Owns: the list of all routes that the OpenWOP host serves, and which of them are there under its settings. */
import type { AdvertisedHost } from "./http/advertised.ts";
import { diffRoute } from "./routes/diff-route.ts";
import { eventRoutes } from "./routes/event-routes.ts";
import { forkRoute } from "./routes/fork-route.ts";
import { hostRoutes } from "./routes/host-routes.ts";
import { interruptRoutes } from "./routes/interrupt-routes.ts";
import type { Route } from "./http/route.ts";
import type { SuiteFace } from "./http/suite-face.ts";
import { runRoutes } from "./routes/run-routes.ts";
import { workspaceRoutes } from "./routes/workspace-routes.ts";

/**
 * Lists the routes that the host serves for what it advertises, with those of the conformance suite where one is
 * given, which nobody without a known token finds.
 */
export function listRoutes(advertised: AdvertisedHost, suite?: SuiteFace): readonly Route[] {
  const routes = [
    ...hostRoutes,
    diffRoute,
    ...runRoutes,
    forkRoute,
    ...eventRoutes,
    ...interruptRoutes,
    ...workspaceRoutes,
  ];
  return [...routes, ...(suite?.routes ?? []).map(hideRoute)].filter(
    (route) => route.when?.(advertised) ?? true,
  );
}

/** Returns the route as one that is answered as not found, rather than refused, without a known token. */
function hideRoute(route: Route): Route {
  return { ...route, isHidden: true };
}
