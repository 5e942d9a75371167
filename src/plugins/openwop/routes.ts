import type { Advertised } from "./advertised.ts";
import { agentSeams } from "./agent-seams.ts";
import { diffRoute } from "./diff-route.ts";
import { eventRoutes } from "./event-routes.ts";
import { forkRoute } from "./fork-route.ts";
import { hostRoutes } from "./host-routes.ts";
import { interruptRoutes } from "./interrupt-routes.ts";
import { loopSeam } from "./loop-seam.ts";
import type { Route } from "./route.ts";
import { runRoutes } from "./run-routes.ts";
import { modelSeamRoutes } from "./seam-model-routes.ts";
import { seamRoutes } from "./seam-routes.ts";
import { verifierSeams } from "./verifier-seams.ts";
import { workspaceRoutes, workspaceSeam } from "./workspace-routes.ts";

/** All routes that are there. */
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
          hidden,
        )
      : []),
  ].filter((route) => route.when?.(advertised) ?? true);
}

/** To whoever may not ask, a seam is not there. */
function hidden(route: Route): Route {
  return { ...route, isHidden: true };
}
