/** Owns: all that a host under the protocol's conformance suite has beside the product. Loaded for such a host only. */
import { agentSeams } from "./agent-seams.ts";
import { CONFORMANCE_AGENTS } from "./conformance-agents.ts";
import { createConformancePlay } from "./create-conformance-play.ts";
import { loopSeam } from "./loop-seam.ts";
import { NODE_PLAY } from "./node-play.ts";
import { modelSeamRoutes } from "./seam-model-routes.ts";
import { seamRoutes } from "./seam-routes.ts";
import { spansSeam } from "./spans-seam.ts";
import { isSuiteWorkflow } from "./suite-fixtures.ts";
import { verifierSeams } from "./verifier-seams.ts";
import { workspaceSeam } from "./workspace-seam.ts";

/** Everything of the suite, as `load-conformance.ts` hands it out. */
export const CONFORMANCE_SUITE = {
  agents: CONFORMANCE_AGENTS,
  createPlay: createConformancePlay,
  nodePlay: NODE_PLAY,
  face: {
    routes: [
      ...seamRoutes,
      ...agentSeams,
      ...modelSeamRoutes,
      ...verifierSeams,
      workspaceSeam,
      loopSeam,
      spansSeam,
    ],
    isFixture: isSuiteWorkflow,
  },
  /** The suite wants a secret that must never be found again. */
  secrets: new Map([["conformance-test-secret", "openwop-conformance-canary-secret"]]),
};
