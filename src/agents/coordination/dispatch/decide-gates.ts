/** Owns: routing the commands about held results and questions to the functions that decide on them. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { Command } from "../contracts/commands.ts";
import { assertNever } from "../contracts/errors.ts";
import type { EpochMs } from "../contracts/ids.ts";
import type { OpenCoordination } from "../ledger/state.ts";
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
