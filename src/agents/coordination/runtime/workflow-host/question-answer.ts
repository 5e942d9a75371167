/** Owns: what a resume value of OpenWOP (interrupt.md) is as an answer to a question of a coordination. */
import type { AnswerKind } from "../../contracts/escalation.ts";
import { isRecord } from "../../workflow/state/values.ts";

export type QuestionAnswer =
  { readonly answer: AnswerKind; readonly text?: string } | { readonly refused: string };

interface Asked {
  readonly kind: "approval" | "clarification";
  /** The id of the one question that a clarification has. */
  readonly escalationId: string;
}

const ACTIONS: Readonly<Record<string, AnswerKind>> = {
  accept: "approve",
  reject: "deny",
  approved: "approve",
  rejected: "deny",
};

export function answerToQuestion({ kind, escalationId }: Asked, value: unknown): QuestionAnswer {
  if (!isRecord(value))
    return {
      refused: "it is answered with an object: {action: ...}, or {answers: {<question id>: <answer>}}",
    };
  const said = answerIn(value["answers"], escalationId);
  if (said !== undefined) return { answer: "answer", text: textOf(said) };
  const action = value["action"] ?? value["decision"];
  if (action === "edit-accept" && value["editedArtifactData"] !== undefined)
    return { answer: "answer", text: textOf(value["editedArtifactData"]) };
  const answer = typeof action === "string" && Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (answer) return { answer };
  return {
    refused:
      kind === "approval"
        ? "an approval is answered with {action: accept, reject, or edit-accept with editedArtifactData}"
        : `a clarification is answered with {answers: {${JSON.stringify(escalationId)}: <answer>}}`,
  };
}

/** Answers come as a list or by the questions' ids. */
function answerIn(answers: unknown, id: string): unknown {
  if (Array.isArray(answers)) {
    const found: unknown = answers.find((each) => isRecord(each) && each["id"] === id);
    return isRecord(found) ? found["answer"] : undefined;
  }
  return isRecord(answers) && Object.hasOwn(answers, id) ? answers[id] : undefined;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
