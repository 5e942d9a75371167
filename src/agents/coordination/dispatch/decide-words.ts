/** Owns: deciding which words of a child are recorded, withheld, shortened or suppressed, and which of its refused calls. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { Command } from "../contracts/commands.ts";
import { hasRoomForText } from "../ledger/readable-results.ts";
import type { OpenCoordination, Step } from "../ledger/state.ts";
import { accept, refuse, type Decision } from "./decision.ts";

/**
 * Records what became of words of a child on their way: its parent is shown a part of them, or they did not go to a chat. The
 * attempt may be any, also one that is over: its session may go on.
 */
export function recordWords(
  state: OpenCoordination,
  command: Command & { type: "recordShortened" | "recordSuppressed" },
): Decision {
  const { stepId, attempt } = command;
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  if (attempt < 1 || attempt > step.phase.attempt)
    return refuse("STALE_ATTEMPT", `step ${stepId} has no attempt ${attempt}`);
  return command.type === "recordShortened"
    ? recordShortened(step, command)
    : recordSuppressed(step, command);
}

function recordShortened(
  { shortened = [] }: Step,
  { type: _, ...payload }: Command & { type: "recordShortened" },
): Decision {
  const { stepId, attempt, text } = payload;
  if (shortened.some((each) => each.attempt === attempt && each.text.sha256 === text.sha256))
    return { kind: "replay", stepId };
  if (!hasRoomForText({ shortened }))
    return refuse(
      "TOO_MANY_TEXTS",
      `step ${stepId} has ${shortened.length} long texts, the most that are kept`,
    );
  return accept([{ type: "result.shortened", payload }], stepId);
}

function recordSuppressed(
  { suppressed = 0 }: Step,
  { type: _, ...payload }: Command & { type: "recordSuppressed" },
): Decision {
  const { stepId } = payload;
  if (suppressed >= BOUNDS.suppressedMessagesMax)
    return refuse(
      "TOO_MANY_TEXTS",
      `step ${stepId} has ${suppressed} suppressed messages, the most that are kept`,
    );
  return accept([{ type: "message.suppressed", payload }], stepId);
}

/** Records the text of a child that is kept from its parent until its step is over. The newest text counts. */
export function withholdText(
  state: OpenCoordination,
  { type: _, ...payload }: Command & { type: "withholdText" },
): Decision {
  const { stepId, attempt } = payload;
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  if (attempt !== step.phase.attempt)
    return refuse(
      "STALE_ATTEMPT",
      `attempt ${attempt} of step ${stepId} is not the current attempt, which is ${step.phase.attempt}`,
    );
  if (step.phase.status !== "running" && step.phase.status !== "dispatched")
    return refuse("STEP_ENDED", `step ${stepId} is ${step.phase.status}`);
  const isSame = step.withheld?.attempt === attempt && step.withheld.text.sha256 === payload.text.sha256;
  if (isSame) return { kind: "replay", stepId };
  // An older text must not be ruled on in place of the newest.
  if ((step.withheldCount ?? 0) >= BOUNDS.withheldTextsMax)
    return refuse(
      "TOO_MANY_TEXTS",
      `attempt ${attempt} of step ${stepId} has ${BOUNDS.withheldTextsMax} withheld texts, the most that are kept`,
    );
  return accept([{ type: "result.withheld", payload }], stepId);
}

/**
 * Records that a call was refused by the privileges of its session. Only the first ones of each step are recorded, because a model
 * may try for ever; calls beyond the bound are refused all the same.
 */
export function recordRefusedCall(
  { steps }: OpenCoordination,
  { type: _, ...payload }: Command & { type: "recordRefusedCall" },
): Decision {
  const { stepId } = payload;
  const step = steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  const count = step.refusedCalls?.length ?? 0;
  if (count >= BOUNDS.privilegeRefusalsMax) return { kind: "replay", stepId };
  return accept([{ type: "privilege.refused", payload }], stepId);
}
