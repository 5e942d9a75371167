/** Owns: whether recorded work builds on work that would have been another: then it is no evidence of what would have happened. */
import type { Command } from "../contracts/commands.ts";
import type { StepAdmitted } from "../contracts/fact-fields.ts";
import type { EpochMs, SessionKey, StepId } from "../contracts/ids.ts";
import { isPlanned, mustStopStep } from "../dispatch/plan-rules.ts";
import type { Coordination, OpenCoordination, Step } from "../ledger/state.ts";
import type { ReplayedDecision } from "./replay-log.ts";

/** How the other history stands. */
export interface HistoryStanding {
  readonly state: Coordination;
  /** Steps whose work is not the recorded work. */
  readonly parted: ReadonlyMap<StepId, unknown>;
  /** Sessions whose agents saw, or did not see, something else than is recorded. */
  readonly sessions: ReadonlySet<SessionKey>;
  readonly now: EpochMs;
}

/**
 * Returns the reason why recorded work is no evidence of what would have happened under another policy; `undefined`
 * where nothing is known that speaks against it.
 */
export function explainLostEvidence(
  { state, parted, sessions, now }: HistoryStanding,
  { before, command, facts: [fact] }: ReplayedDecision & { readonly command: Command },
  subject: StepId | undefined,
): string | undefined {
  if (state.kind !== "open" || before.kind !== "open") return undefined;
  if (command.type === "admitSpawn" && fact.type === "step.admitted")
    return explainOtherSpawner({ parted, sessions }, fact.payload);
  const step = subject && state.steps.get(subject);
  if (!step) return undefined;
  if (command.type === "dispatchStep") return explainOtherInput({ parted, state, before }, step);
  return isOutcomeCommand(command) ? explainOtherStop({ state, before, now }, step) : undefined;
}

/** Explains that whoever spawned the step had done, or seen, something else; `undefined` where it had not. */
function explainOtherSpawner(
  { parted, sessions }: Pick<HistoryStanding, "parted" | "sessions">,
  { sourceSession, parentStepId }: StepAdmitted,
): string | undefined {
  if (parentStepId && parted.has(parentStepId)) return `spawned by ${parentStepId}`;
  return sessions.has(sourceSession) ? "whoever spawned it had seen another result" : undefined;
}

/** The coordination in the other history, and as it is recorded. */
interface HistoryPair {
  readonly state: OpenCoordination;
  readonly before: OpenCoordination;
}

/** Explains that the step begins with another result than is recorded; `undefined` where it does not. */
function explainOtherInput(
  { parted, state, before }: HistoryPair & Pick<HistoryStanding, "parted">,
  { spec }: Step,
): string | undefined {
  const other = spec.planned?.dependsOn.find(
    (id) =>
      parted.has(id) &&
      readStepStatus(state, id) === "completed" &&
      readStepStatus(before, id) === "completed",
  );
  return other && `begins with another result of ${other}`;
}

/** Explains that the step is stopped in one of the two histories alone; `undefined` where it is not. */
function explainOtherStop(
  { state, before, now }: HistoryPair & { readonly now: EpochMs },
  step: Step,
): string | undefined {
  const recorded = before.steps.get(step.spec.stepId);
  if (!recorded || !isPlanned(state) || !isPlanned(before)) return undefined;
  const wasStopped = mustStopStep(before, recorded, now);
  if (wasStopped === mustStopStep(state, step, now)) return undefined;
  return wasStopped ? "would not have been stopped" : "would have been stopped";
}

function isOutcomeCommand({ type }: Command): boolean {
  return type === "completeStep" || type === "failStep" || type === "timeOutStep";
}

function readStepStatus({ steps }: OpenCoordination, stepId: StepId): string | undefined {
  return steps.get(stepId)?.phase.status;
}
