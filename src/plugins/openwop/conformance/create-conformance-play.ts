/** Owns: the play of one host: what its models were programmed to say, and which side effects it caused. */
import type { ConformancePlay } from "../../../agents/coordination/runtime/workflow-host/records/conformance-play.ts";
import { createMockAgent } from "./agent-mocks.ts";
import { createMockModel } from "./mock-model.ts";
import { NODE_PLAY } from "./node-play.ts";
import { createSideEffects } from "./side-effects.ts";
import { SUITE_PREFIX } from "./suite-fixtures.ts";
import { createWorkflowSeams } from "./workflow-seams.ts";

/**
 * Creates the parts that play models, agents and side effects for the conformance suite, which a host under test uses
 * in place of real ones.
 */
export function createConformancePlay(): ConformancePlay {
  const mockModel = createMockModel();
  const sideEffects = createSideEffects();
  return {
    nodes: NODE_PLAY,
    modelOf: (node) => mockModel.modelOf(node),
    agentOf: createMockAgent,
    causeSideEffect: (run, effect) => sideEffects.cause(run, effect),
    // In workflows of the suite only.
    believesVoter: ({ started: { workflowId } }) => workflowId.startsWith(SUITE_PREFIX),
    openSeams: (access) => createWorkflowSeams({ ...access, mockModel, sideEffects }),
  };
}
