/** Owns: the list of all routes that the OpenWOP host serves, and which of them are there under its settings. */
import type { Advertised } from "./http/advertised.ts";
import { diffRoute } from "./routes/diff-route.ts";
import { eventRoutes } from "./routes/event-routes.ts";
import { forkRoute } from "./routes/fork-route.ts";
import { hostRoutes } from "./routes/host-routes.ts";
import { interruptRoutes } from "./routes/interrupt-routes.ts";
import type { Route } from "./http/route.ts";
import type { SuiteFace } from "./http/suite-face.ts";
import { runRoutes } from "./routes/run-routes.ts";
import { workspaceRoutes } from "./routes/workspace-routes.ts";

/** Returns all routes of the host, with those of the conformance suite where it is tested. */
export function routesOf(advertised: Advertised, suite?: SuiteFace): readonly Route[] {
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

/** Hides a route from whoever may not use it. */
function hideRoute(route: Route): Route {
  return { ...route, isHidden: true };
}
