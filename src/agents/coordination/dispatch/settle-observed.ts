/** Owns: how a coordination of observed spawns ends. */
import type { FactPayloads, TerminalStatus } from "../contracts/facts.ts";
import { openStepsOf, type OpenCoordination } from "../ledger/state.ts";
import { draftEndOfClaims } from "./release-claims.ts";
import { refuse, type Decision } from "./decision.ts";
import { draftOpenQuestionClosings } from "./decide-questions.ts";

/** Ends a coordination of observed spawns when nothing is open in it. */
export function settleObserved(state: OpenCoordination): Decision {
  const [open] = openStepsOf(state);
  if (open) return refuse("STEPS_OPEN", `step ${open.spec.stepId} is ${open.phase.status}`);
  if (state.tellings.size > 0)
    return refuse("STEPS_OPEN", "a session has not been told its result or answer yet");
  // A cancelled coordination does not wait for answers.
  if (state.openQuestions.size > 0 && !state.cancelledBy)
    return refuse("QUESTIONS_OPEN", "people were asked and have not answered yet");
  const { completed, failed, cancelled, timed_out: timedOut } = state.endedSteps;
  const steps = { total: state.steps.size, completed, failed, timedOut, cancelled };
  return {
    kind: "accepted",
    facts: [
      ...draftOpenQuestionClosings(state),
      ...draftEndOfClaims(state, "coordination_ended"),
      {
        type: "coordination.terminal",
        payload: { status: state.cancelledBy ? "cancelled" : statusOf(steps), steps },
      },
    ],
  };
}

export function statusOf(counts: FactPayloads["coordination.terminal"]["steps"]): TerminalStatus {
  if (counts.completed === counts.total) return "success";
  if (counts.completed > 0) return "partial";
  return counts.cancelled === counts.total ? "cancelled" : "failed";
}
