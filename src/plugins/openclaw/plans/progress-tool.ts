/** Owns: what the tool `coordination_progress` does: a child says how far it is. */
import { z } from "zod";
import { formatTimestamp } from "../../../agents/coordination/contracts/ids.ts";
import {
  describeProblems,
  ENVELOPE_BOUNDS,
  parseBounded,
} from "../../../agents/coordination/contracts/validation.ts";
import { createToolError, type ToolAnswer, type ToolCallRunner } from "../runtime-access/tool-call.ts";

const progressParams = z.strictObject({
  percent: z.int().min(0).max(100).optional(),
  line: z.string().min(1),
});

/**
 * Records the progress that the calling child tells of its step; the answer says when it may tell more, that this was
 * too soon and not recorded, or why it was refused.
 */
export async function recordChildProgress(use: ToolCallRunner, params: unknown): Promise<ToolAnswer> {
  const parsed = parseBounded(progressParams, params, ENVELOPE_BOUNDS);
  if (!parsed.ok) return createToolError(describeProblems(parsed.problems));
  const { line, percent } = parsed.value;
  const answer = await use(({ plans, session }) =>
    plans.progress(session, { line, ...(percent !== undefined && { percent }) }),
  );
  if (answer.kind === "refused") return { status: "refused", message: answer.reason };
  const nextAt = formatTimestamp(answer.nextAtMs);
  if (answer.kind === "recorded") return { status: "recorded", nextAt };
  return {
    status: "too_soon",
    nextAt,
    message: `This was not recorded: the next progress may be told at ${nextAt}. Go on with your work.`,
  };
}
