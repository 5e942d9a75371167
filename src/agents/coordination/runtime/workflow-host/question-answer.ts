/** Owns: what a resume value of OpenWOP (interrupt.md) is as an answer to a question of a coordination. */
import type { AnswerKind } from "../../contracts/escalation.ts";
import { isGiven, readAction } from "../../workflow/state/answer-words.ts";
import { readClarificationAnswers } from "../../workflow/state/clarification-answers.ts";
import type { Values } from "../../workflow/state/values.ts";
import { isRecord } from "../../std/is-record.ts";

export type QuestionAnswer =
  { readonly answer: AnswerKind; readonly text?: string } | { readonly refused: string };

interface AnsweredQuestion {
  readonly kind: "approval" | "clarification";
  /** The id of the one question that a clarification has. */
  readonly escalationId: string;
}

/**
 * Returns the answer to a coordination's question that a resume value stands for, or the problem. An approval is ruled
 * on with an action, a clarification answered in words or rejected; words may replace what is approved.
 */
export function readQuestionAnswer({ kind, escalationId }: AnsweredQuestion, value: unknown): QuestionAnswer {
  if (isRecord(value) && isGiven(value, "answers")) return readClarificationText(value, escalationId);
  return kind === "approval" ? readApprovalRuling(value) : readRejection(value, escalationId);
}

function readClarificationText(value: Values, escalationId: string): QuestionAnswer {
  if (isGiven(value, "action") || isGiven(value, "decision"))
    return { refused: "an answer has either answers or an action, and not both" };
  const read = readClarificationAnswers([{ id: escalationId, question: escalationId }], value);
  if (!read.ok) return { refused: read.message };
  return { answer: "answer", text: convertToText(read.answers[escalationId]) };
}

function readApprovalRuling(value: unknown): QuestionAnswer {
  const read = readAction(value, ["accept", "reject", "edit-accept"]);
  if (!read.ok) return { refused: read.message };
  const { editedArtifactData }: Values = isRecord(value) ? value : {};
  switch (read.action) {
    case "accept":
      return { answer: "approve" };
    case "edit-accept":
      return editedArtifactData === undefined || editedArtifactData === null
        ? { refused: "edit-accept needs editedArtifactData" }
        : { answer: "answer", text: convertToText(editedArtifactData) };
    default:
      return { answer: "deny" };
  }
}

/** Reads the rejection of a clarification; refuses anything else, and says how an answer looks. */
function readRejection(value: unknown, escalationId: string): QuestionAnswer {
  const read = readAction(value, ["reject"]);
  if (read.ok) return { answer: "deny" };
  const usage = `{answers: {${JSON.stringify(escalationId)}: <answer>}}`;
  return { refused: `a clarification is answered with ${usage}, or with {action: reject}: ${read.message}` };
}

function convertToText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
