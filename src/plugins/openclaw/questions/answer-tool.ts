/**
 * Owns: what the tool `coordination_answer` does: a session answers what its child asked it. Questions to people are not its to
 * answer, whatever they are about.
 */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import {
  describeProblems,
  ENVELOPE_BOUNDS,
  parseBounded,
} from "../../../agents/coordination/contracts/validation.ts";
import { createToolError, type ToolAnswer, type ToolCallRunner } from "../runtime-access/tool-call.ts";

const answerParams = z
  .strictObject({
    questionId: z
      .string()
      .min(1)
      .max(BOUNDS.coordinationIdCharsMax + BOUNDS.idCharsMax + 1),
    answer: z.string().min(1).max(BOUNDS.questionCharsMax).optional(),
    deny: z.boolean().optional(),
  })
  .refine(({ answer, deny }) => (answer === undefined) === (deny === true), {
    message: "either answer or deny: true",
  });

/**
 * Records the calling session's answer to a question of its child, or its refusal where there is no text, and returns
 * what that resolved the question to, or why it was refused.
 */
export async function answerChild(use: ToolCallRunner, params: unknown): Promise<ToolAnswer> {
  const parsed = parseBounded(answerParams, params, ENVELOPE_BOUNDS);
  if (!parsed.ok) return createToolError(describeProblems(parsed.problems));
  const { questionId, answer } = parsed.value;
  const answered = await use(({ plans, session }) =>
    plans.answerChild({ questionId, session, ...(answer !== undefined && { text: answer }) }),
  );
  return answered.kind === "refused"
    ? { status: "refused", message: answered.reason }
    : { status: answered.resolution, questionId, note: "The subagent is told." };
}
