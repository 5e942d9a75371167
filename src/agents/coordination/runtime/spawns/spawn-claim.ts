/** Owns: which step a session speaks of when it says what became of its spawn. */
import type { CoordinationId, SessionKey, StepId } from "../../contracts/ids.ts";
import type { Step } from "../../ledger/state.ts";
import type { Logger } from "../../ports/logger.ts";
import type { RunLog } from "../log/run-log.ts";

/** Names the attempt that an envelope speaks of, with the session that asked for it. */
export interface SpawnClaim {
  readonly coordinationId: CoordinationId;
  readonly stepId: StepId;
  readonly sourceSession: SessionKey;
  readonly toolCallId?: string;
}

export interface ClaimDependencies {
  readonly runs: RunLog;
  readonly logger: Logger;
}

/**
 * Finds the step of the spawn that a session speaks of; `undefined`, with a warning, unless the ledger has it from
 * that session and tool call (H3).
 */
export async function findClaimedStep(
  { runs, logger }: ClaimDependencies,
  { coordinationId: runId, stepId, sourceSession, toolCallId }: SpawnClaim,
): Promise<Step | undefined> {
  const state = await runs.state(runId);
  const step = state.kind === "unopened" ? undefined : state.steps.get(stepId);
  const sameCall = toolCallId === undefined || step?.spec.call.toolCallId === toolCallId;
  // Runners tell of the steps of plans themselves; a tool call has nothing to say there.
  const isSame = step?.spec.sourceSession === sourceSession && sameCall && !step.spec.planned;
  if (isSame) return step;
  logger.warn({ runId, stepId }, "a spawn's envelope is not the ledger's: ignored");
  return undefined;
}
