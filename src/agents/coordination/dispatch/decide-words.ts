/** Owns: deciding which words of a child are recorded, withheld, shortened or suppressed, and which of its refused calls. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { Command } from "../contracts/commands.ts";
import { hasRoomForText } from "../ledger/readable-results.ts";
import type { OpenCoordination, Step } from "../ledger/state.ts";
import { accept, refuse, type Decision } from "./decision.ts";

/**
 * Decides on a child's text that its parent saw only a part of, or a message that did not go to a chat: accepted, a
 * replay, or refused for an unknown attempt or too many. The attempt may be over.
 */
export function recordCurtailedText(
  state: OpenCoordination,
  command: Command & { type: "recordShortened" | "recordSuppressed" },
): Decision {
  const { stepId, attempt } = command;
  const step = state.steps.get(stepId);
  if (!step) return refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
  if (attempt < 1 || attempt > step.phase.attempt)
    return refuse("STALE_ATTEMPT", `step ${stepId} has no attempt ${attempt}`);
  return command.type === "recordShortened"
    ? recordShortenedText(step, command)
    : recordSuppressedMessage(step, command);
}

function recordShortenedText(
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

function recordSuppressedMessage(
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

/**
 * Decides on a text of a child that is kept from its parent until its step is over: accepted as a fact, a replay of
 * the same text, or refused where the attempt is over or has too many. The newest text counts.
 */
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
 * Decides on a tool call that the privileges of a session refused: accepted as a fact, refused for an unknown step.
 * Beyond a bound for each step it is a replay, because a model may try for ever; such calls are refused all the same.
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
