/** Owns: the commands that follow from the host's answer about a step whose state is unknown. */
import type { Command } from "../../contracts/commands.ts";
import { assertNever } from "../../contracts/errors.ts";
import { createStepError, type StepError } from "../../contracts/fact-fields.ts";
import { addMs, type EpochMs, type StepId } from "../../contracts/ids.ts";
import type { ChildEnding, Observation, ObservedChild } from "../../contracts/observation.ts";
import { computeOverdueTime } from "./next-effects.ts";
import type { Coordination, DispatchedPhase, RunningPhase } from "../../ledger/state.ts";

export interface AskedAttempt {
  readonly stepId: StepId;
  readonly attempt: number;
  readonly now: EpochMs;
  /** The gateway that the coordination was opened in, where another one drives it now. */
  readonly away?: string | undefined;
}

/**
 * Returns the commands that follow from what the host says about an attempt; none where that attempt is not at work.
 * An unknown outcome is never taken for a failure before the deadline, and the work is never repeated. A spawn that
 * the host does not know has `acknowledgeMs` to appear: the host may be creating it just now.
 */
export function ruleOnObservation(state: Coordination, attempt: AskedAttempt, seen: Observation): Command[] {
  if (state.kind !== "open") return [];
  const phase = state.steps.get(attempt.stepId)?.phase;
  if (phase?.attempt !== attempt.attempt) return [];
  if (phase.status !== "dispatched" && phase.status !== "running") return [];
  const about = { stepId: attempt.stepId, attempt: attempt.attempt } as const;
  const late = attempt.now >= computeOverdueTime(state, phase);
  const overdue: Command[] = late ? [{ type: "timeOutStep", ...about, via: "deadline" }] : [];
  switch (seen.kind) {
    case "unknown":
      return overdue;
    case "absent":
      return attempt.now >= addMs(findStartTime(phase), state.created.acknowledgeMs)
        ? [commandFromAbsence(phase.status, about, attempt.away)]
        : [];
    case "running":
      return [...commandsFromAcknowledgement(phase.status, about, seen), ...overdue];
    case "ended":
      return [
        ...commandsFromAcknowledgement(phase.status, about, seen),
        commandFromOutcome(about, seen, "reconciled"),
      ];
    default:
      return assertNever(seen, "observation");
  }
}

/** Returns when the child was acknowledged, or before that when the attempt was dispatched. */
function findStartTime(phase: DispatchedPhase | RunningPhase): EpochMs {
  return phase.status === "running" ? phase.acknowledgedAtMs : phase.dispatchedAtMs;
}

type AttemptId = { readonly stepId: StepId; readonly attempt: number };

/** Returns the command that fails an attempt which the host does not know. */
function commandFromAbsence(
  status: "dispatched" | "running",
  about: AttemptId,
  away: string | undefined,
): Command {
  if (away !== undefined) {
    const awayError = createStepError("child_lost", `the child ran in gateway ${away}, which is gone`);
    return { type: "failStep", ...about, error: awayError, cancelled: false, via: "reconciled" };
  }
  const common = { type: "failStep", ...about, cancelled: false, via: "reconciled" } as const;
  return status === "dispatched"
    ? {
        ...common,
        error: createStepError("spawn_not_confirmed", "the host has no record of the spawn"),
        unspawned: true,
      }
    : { ...common, error: createStepError("child_lost", "the host no longer knows the child session") };
}

/** Returns the command that records the child of an attempt; none where the child is recorded. */
function commandsFromAcknowledgement(
  status: "dispatched" | "running",
  about: AttemptId,
  child: ObservedChild,
): Command[] {
  if (status === "running") return [];
  const { childSessionKey, childRunId } = child;
  return [{ type: "acknowledgeStep", ...about, childSessionKey, childRunId, via: "reconciled" }];
}

/**
 * Returns the command that records how an attempt's child ended: completed, timed out, or failed (with an error of its
 * own where it was cancelled).
 */
export function commandFromOutcome(
  about: AttemptId,
  { outcome, message }: ChildEnding,
  via: "hook" | "reconciled",
): Command {
  switch (outcome) {
    case "completed":
      return { type: "completeStep", ...about, via };
    case "timed_out":
      return { type: "timeOutStep", ...about, via };
    case "failed":
      return commandFromFailure(
        about,
        createStepError("child_failed", message ?? "the child run failed"),
        via,
      );
    case "cancelled":
      return commandFromFailure(
        about,
        createStepError("child_cancelled", message ?? "the child run was cancelled"),
        via,
      );
    default:
      return assertNever(outcome, "child outcome");
  }
}

function commandFromFailure(about: AttemptId, error: StepError, via: "hook" | "reconciled"): Command {
  return { type: "failStep", ...about, error, cancelled: error.code === "child_cancelled", via };
}
