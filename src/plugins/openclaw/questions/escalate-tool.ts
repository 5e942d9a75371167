/** Owns: what the tool `coordination_escalate` does: an agent asks people, or its parent, and waits for a while. */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { formatTimestamp } from "../../../agents/coordination/contracts/ids.ts";
import {
  describeProblems,
  ENVELOPE_BOUNDS,
  parseBounded,
} from "../../../agents/coordination/contracts/validation.ts";
import type { QuestionOutcome } from "../../../agents/coordination/runtime/questions/question-requests.ts";
import { createToolError, type ToolAnswer, type ToolCallRunner } from "../runtime-access/tool-call.ts";
import { ESCALATE_WAIT_MS, ESCALATE_WAIT_MS_MAX } from "../declarations/asking-declarations.ts";

const text = z.string().min(1).max(BOUNDS.questionCharsMax);

const escalateParams = z
  .strictObject({
    question: text,
    to: z.enum(["people", "parent"]).default("people"),
    kind: z.enum(["approval", "clarification"]).default("clarification"),
    options: z.array(text).max(BOUNDS.optionsMax).optional(),
    otherwise: text.optional(),
    answerMs: z.int().min(1_000).max(BOUNDS.durationMsMax).optional(),
    waitMs: z.int().min(0).max(ESCALATE_WAIT_MS_MAX).default(ESCALATE_WAIT_MS),
  })
  .refine(({ to, kind }) => to === "people" || kind === "clarification", {
    message: "a clarification: only people approve, so leave `to` out to ask for an approval",
    path: ["kind"],
  })
  .refine(({ kind, options }) => kind === "clarification" || options === undefined, {
    message: "no options: an approval is a yes or a no; ask for a clarification to have one of them chosen",
    path: ["options"],
  });

const ESCALATE_BOUNDS = { ...ENVELOPE_BOUNDS, charsMax: BOUNDS.questionCharsMax * (BOUNDS.optionsMax + 3) };

const LATER =
  "Nobody has answered yet. End your turn now; you will be told the answer once, in this session. Do not take this for an approval.";

/**
 * Records an agent's question to people or to its parent and waits for a while; returns how it was resolved, that it
 * is still open and the session is told later, or why it was refused.
 */
export async function askAndWait(use: ToolCallRunner, params: unknown): Promise<ToolAnswer> {
  const parsed = parseBounded(escalateParams, params, ESCALATE_BOUNDS);
  if (!parsed.ok) return createToolError(describeProblems(parsed.problems));
  const { waitMs, to, options, otherwise, answerMs, ...question } = parsed.value;
  const answer = await use(async ({ plans, session, agent }) =>
    plans.ask({
      ...question,
      askedBy: session,
      agentId: agent,
      ...(to === "parent" && { to }),
      ...(options && { options }),
      ...(otherwise !== undefined && { otherwise }),
      ...(answerMs !== undefined && { answerMs }),
    }),
  );
  if (answer.kind === "refused") return { status: "refused", message: answer.reason };
  const { questionId, deadlineAtMs } = answer;
  const outcome = await waitForOutcome(use, questionId, waitMs);
  if (outcome.kind === "open")
    return { status: "open", questionId, answerBy: formatTimestamp(deadlineAtMs), note: LATER };
  return {
    status: outcome.resolution,
    questionId,
    ...(outcome.text !== undefined && { note: outcome.text }),
  };
}

/** One look may take as long as any request; people take longer. */
const LOOK_MS = 20_000;

/**
 * Waits for an answer, at most `waitMs`. Looks at least once: an agent that asks again may be told an answer without a
 * wait.
 */
async function waitForOutcome(
  use: ToolCallRunner,
  questionId: string,
  waitMs: number,
): Promise<QuestionOutcome> {
  let outcome: QuestionOutcome;
  let leftMs = waitMs;
  do {
    const lookMs = Math.min(LOOK_MS, leftMs);
    outcome = await lookForOutcome(use, questionId, lookMs);
    leftMs -= lookMs;
  } while (leftMs > 0 && outcome.kind === "open");
  return outcome;
}

/**
 * Looks for an answer for that long. A look that takes more time than any request may have ends with that, because
 * what it found later would count as told.
 */
async function lookForOutcome(
  use: ToolCallRunner,
  questionId: string,
  lookMs: number,
): Promise<QuestionOutcome> {
  const over = new AbortController();
  try {
    return await use(({ plans, signal }) =>
      plans.outcome(questionId, lookMs, AbortSignal.any([over.signal, ...(signal ? [signal] : [])])),
    );
  } finally {
    over.abort();
  }
}
