/** Owns: what the protocol's log says of a decision, and who took it. */
import type { OpenWopDraft } from "../contracts/run-event.ts";
import type { EventId, StepId } from "../contracts/ids.ts";
import type { KnownCoordination } from "../ledger/state.ts";

/** Drafts the OpenWOP event by which the orchestrator decides to dispatch these steps. */
export function draftDispatchDecision(
  state: KnownCoordination,
  stepIds: readonly StepId[],
  causationId: EventId,
): OpenWopDraft {
  return {
    type: "runOrchestrator.decided",
    nodeId: "orchestrator",
    causationId,
    payload: {
      agentId: `agent:${state.created.ownerAgent}`,
      decision: { kind: "next-worker", nextWorkerIds: [...stepIds] },
      iteration: state.iterations + 1,
    },
  };
}

/**
 * Returns the OpenWOP id (`agent:...`) of the step's agent, or of the owner's where there is no step or it names none.
 */
export function nameActor(state: KnownCoordination, stepId: StepId | undefined): string {
  const agentId = (stepId && state.steps.get(stepId)?.spec.agentId) ?? state.created.ownerAgent;
  return `agent:${agentId}`;
}
