import type { Advertised } from "./http/advertised.ts";
import { agentSeams } from "./conformance/agent-seams.ts";
import { diffRoute } from "./routes/diff-route.ts";
import { eventRoutes } from "./routes/event-routes.ts";
import { forkRoute } from "./routes/fork-route.ts";
import { hostRoutes } from "./routes/host-routes.ts";
import { interruptRoutes } from "./routes/interrupt-routes.ts";
import { loopSeam } from "./conformance/loop-seam.ts";
import type { Route } from "./http/route.ts";
import { runRoutes } from "./routes/run-routes.ts";
import { modelSeamRoutes } from "./conformance/seam-model-routes.ts";
import { seamRoutes } from "./conformance/seam-routes.ts";
import { verifierSeams } from "./conformance/verifier-seams.ts";
import { workspaceRoutes, workspaceSeam } from "./routes/workspace-routes.ts";

/** Returns all routes of the host. */
export function routesOf(advertised: Advertised, withTestSeams: boolean): readonly Route[] {
  const routes = [
    ...hostRoutes,
    diffRoute,
    ...runRoutes,
    forkRoute,
    ...eventRoutes,
    ...interruptRoutes,
    ...workspaceRoutes,
  ];
  return [
    ...routes,
    ...(withTestSeams
      ? [...seamRoutes, ...agentSeams, ...modelSeamRoutes, ...verifierSeams, workspaceSeam, loopSeam].map(
          hideRoute,
        )
      : []),
  ].filter((route) => route.when?.(advertised) ?? true);
}

/** Hides a route from whoever may not use it. */
function hideRoute(route: Route): Route {
  return { ...route, isHidden: true };
}
