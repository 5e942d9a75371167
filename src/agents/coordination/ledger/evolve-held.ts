/** Owns: what each fact about a held result means for its step. D3 and D5 as in `evolve.ts`, G1 as in `gates/`. */
import { assertInvariant } from "../contracts/errors.ts";
import { epochMsOf, type EventId } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import { findChildOfPhase, type HeldPhase, type Step, type StepPhase } from "./state.ts";

export type HeldEvent = FactEvent & {
  type: "result.withheld" | "result.held" | "result.verified" | "verification.failed" | "result.revised";
};

/**
 * Returns a step after a fact about its withheld, held, checked or revised result; throws where a verdict is about a
 * step that is not held.
 */
export function evolveHeldStep(step: Step, event: HeldEvent): Step {
  switch (event.type) {
    case "result.withheld": {
      const { stepId: _, ...withheld } = event.payload;
      return { ...step, withheld, withheldCount: (step.withheldCount ?? 0) + 1 };
    }
    case "result.held":
      return { ...step, phase: createHeldPhase(step.phase, event) };
    case "result.verified": {
      const { stepId: _, attempt: _attempt, ...finding } = event.payload;
      const phase = requireHeldPhase(step.phase, event);
      return { ...step, phase: { ...phase, findings: [...phase.findings, finding] } };
    }
    case "verification.failed": {
      const phase = requireHeldPhase(step.phase, event);
      const { check, because } = event.payload;
      return { ...step, phase: { ...phase, failures: new Map([...phase.failures, [check, because]]) } };
    }
    case "result.revised":
      return { ...step, ...evolveResultRevised(step, event) };
  }
}

function createHeldPhase(phase: StepPhase, event: FactEvent & { type: "result.held" }): HeldPhase {
  const { attempt, output, usage, verifyByMs, confidence, confidenceUnreadable } = event.payload;
  assertInvariant(attempt === phase.attempt, `D3: result of attempt ${attempt}: ${event.eventId}`);
  assertInvariant(
    phase.status === "dispatched" || phase.status === "running",
    `D5: held while ${phase.status}: ${event.eventId}`,
  );
  const child = findChildOfPhase(phase);
  return {
    status: "held",
    attempt,
    dispatchedAtMs: phase.dispatchedAtMs,
    ...(phase.status === "running" && { acknowledgedAtMs: phase.acknowledgedAtMs }),
    deadlineAtMs: phase.deadlineAtMs,
    endedAtMs: epochMsOf(event.timestamp),
    ...(child && { child: { childSessionKey: child.childSessionKey, childRunId: child.childRunId } }),
    ...(phase.gateway !== undefined && { gateway: phase.gateway }),
    ...(output && { output }),
    ...(usage && { usage }),
    stated: {
      ...(confidence !== undefined && { confidence }),
      ...(confidenceUnreadable && { confidenceUnreadable }),
    },
    target: event.eventId,
    ...(verifyByMs !== undefined && { verifyByMs }),
    findings: [],
    failures: new Map(),
  };
}

/**
 * Returns a held step with the event that verdicts on its result are about, the `agent.decided` behind the fact; any
 * other step unchanged.
 */
export function setVerdictTarget(step: Step, target: EventId): Step {
  return step.phase.status === "held" ? { ...step, phase: { ...step.phase, target } } : step;
}

/** Returns the phase, which must be held in the attempt of the event (G1). */
function requireHeldPhase(
  phase: StepPhase,
  event: { readonly eventId: string; readonly payload: { readonly attempt: number } },
): HeldPhase {
  assertInvariant(
    phase.status === "held" && phase.attempt === event.payload.attempt,
    `G1: a verdict on what is ${phase.status}: ${event.eventId}`,
  );
  return phase;
}

function evolveResultRevised(
  step: Step,
  event: FactEvent & { type: "result.revised" },
): Pick<Step, "phase" | "revisions"> {
  const phase = requireHeldPhase(step.phase, event);
  const { attempt, dispatchedAtMs, acknowledgedAtMs, deadlineAtMs, endedAtMs, child, gateway, output } =
    phase;
  const { criteria, revision } = event.payload;
  return {
    revisions: revision,
    phase: {
      status: "backoff",
      cause: "failed",
      retryAtMs: epochMsOf(event.timestamp),
      revision: { criteria, ...(output && { output }) },
      error: { code: "verification_failed", message: "its result is to be revised" },
      attempt,
      dispatchedAtMs,
      deadlineAtMs,
      endedAtMs,
      ...(acknowledgedAtMs !== undefined && { acknowledgedAtMs }),
      ...(child && { child }),
      ...(gateway !== undefined && { gateway }),
    },
  };
}
