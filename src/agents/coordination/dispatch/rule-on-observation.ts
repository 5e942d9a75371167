/** Owns: which commands follow from what the host says about a step that we lost sight of. */
import type { Command } from "../contracts/commands.ts";
import { unreachable } from "../contracts/errors.ts";
import { stepError, type StepError } from "../contracts/fact-fields.ts";
import { addMs, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { ChildEnding, Observation, ObservedChild } from "../contracts/observation.ts";
import { overdueAt } from "./plan-dispatch.ts";
import type { Coordination, DispatchedPhase, RunningPhase } from "../ledger/state.ts";

export interface Asked {
  readonly stepId: StepId;
  readonly attempt: number;
  readonly now: EpochMs;
}

/**
 * An unknown delivery is never taken for a failure before the deadline, and never repeated. A spawn that the host does
 * not know is given `acknowledgeMs` to appear, because the host may be creating it just now.
 */
export function ruleOnObservation(state: Coordination, asked: Asked, seen: Observation): Command[] {
  if (state.kind !== "open") return [];
  const phase = state.steps.get(asked.stepId)?.phase;
  if (phase?.attempt !== asked.attempt) return [];
  if (phase.status !== "dispatched" && phase.status !== "running") return [];
  const about = { stepId: asked.stepId, attempt: asked.attempt } as const;
  const late = asked.now >= overdueAt(state, phase);
  const overdue: Command[] = late ? [{ type: "timeOutStep", ...about, via: "deadline" }] : [];
  switch (seen.kind) {
    case "unknown":
      return overdue;
    case "absent":
      return asked.now >= addMs(startedAt(phase), state.created.acknowledgeMs)
        ? [absence(phase.status, about)]
        : [];
    case "running":
      return [...acknowledgement(phase.status, about, seen), ...overdue];
    case "ended":
      return [...acknowledgement(phase.status, about, seen), outcomeCommand(about, seen, "reconciled")];
    default:
      return unreachable(seen, "observation");
  }
}

function startedAt(phase: DispatchedPhase | RunningPhase): EpochMs {
  return phase.status === "running" ? phase.acknowledgedAtMs : phase.dispatchedAtMs;
}

type About = { readonly stepId: StepId; readonly attempt: number };

function absence(status: "dispatched" | "running", about: About): Command {
  const error =
    status === "dispatched"
      ? ({ code: "spawn_not_confirmed", message: "the host has no record of the spawn" } as const)
      : ({ code: "child_lost", message: "the host no longer knows the child session" } as const);
  return { type: "failStep", ...about, error, cancelled: false, via: "reconciled" };
}

function acknowledgement(status: "dispatched" | "running", about: About, child: ObservedChild): Command[] {
  if (status === "running") return [];
  const { childSessionKey, childRunId } = child;
  return [{ type: "acknowledgeStep", ...about, childSessionKey, childRunId, via: "reconciled" }];
}

/** The command that records how a child ended. */
export function outcomeCommand(
  about: About,
  { outcome, message }: ChildEnding,
  via: "hook" | "reconciled",
): Command {
  switch (outcome) {
    case "completed":
      return { type: "completeStep", ...about, via };
    case "timed_out":
      return { type: "timeOutStep", ...about, via };
    case "failed":
      return failure(about, stepError("child_failed", message ?? "the child run failed"), via);
    case "cancelled":
      return failure(about, stepError("child_cancelled", message ?? "the child run was cancelled"), via);
    default:
      return unreachable(outcome, "child outcome");
  }
}

function failure(about: About, error: StepError, via: "hook" | "reconciled"): Command {
  return { type: "failStep", ...about, error, cancelled: error.code === "child_cancelled", via };
}
