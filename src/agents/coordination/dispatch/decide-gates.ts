/** Owns: routing the commands about held results and questions to the functions that decide on them. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { Command } from "../contracts/commands.ts";
import { assertNever } from "../contracts/errors.ts";
import type { EpochMs } from "../contracts/ids.ts";
import type { OpenCoordination, Step } from "../ledger/state.ts";
import { recordFinding, recordNoVerdict } from "./decide-held.ts";
import {
  answerEscalation,
  askPeople,
  expireQuestion,
  recordNotice,
  recordTelling,
} from "./decide-questions.ts";
import { accept, refuse, type Decision } from "./decision.ts";

export type GateCommand = Command & {
  type:
    | "withholdText"
    | "recordShortened"
    | "recordSuppressed"
    | "recordFinding"
    | "recordNoVerdict"
    | "answerEscalation"
    | "askPeople"
    | "expireEscalation"
    | "recordNotice"
    | "recordTelling";
};

export function decideOnGates(state: OpenCoordination, command: GateCommand, now: EpochMs): Decision {
  switch (command.type) {
    case "withholdText":
      return withholdText(state, command);
    case "recordShortened":
    case "recordSuppressed":
      return recordWords(state, command);
    case "recordFinding":
      return recordFinding(state, command, now);
    case "recordNoVerdict":
      return recordNoVerdict(state, command, now);
    case "answerEscalation":
      return answerEscalation(state, command, now);
    case "askPeople":
      return askPeople(state, command, now);
    case "expireEscalation":
      return expireQuestion(state, command, now);
    case "recordNotice": {
      const { type: _, ...payload } = command;
      return recordNotice(state, payload);
    }
    case "recordTelling": {
      const { type: _, ...payload } = command;
      return recordTelling(state, payload);
    }
    default:
      return assertNever(command, "command");
  }
}

/**
 * Records what became of words of a child on their way: its parent is shown a part of them, or they did not go to a chat. The
 * attempt may be any, also one that is over: its session may go on.
 */
function recordWords(
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
  if (shortened.length >= BOUNDS.shortenedTextsMax)
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
function withholdText(
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
