/** Owns: what the tool `coordination_report` does: a child reports the outcome of its step. */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { parseBounded, type ValueBounds } from "../../../agents/coordination/contracts/validation.ts";
import type { ChildReport, ReportAnswer } from "../../../agents/coordination/runtime/plans/plan-requests.ts";
import { noteReportedConfidence } from "../runtime-access/gate-memory.ts";
import type { ToolAnswer, ToolCallRunner } from "../runtime-access/tool-call.ts";

/** A model corrects so many at a time. */
const PROBLEMS_MAX = 20;

const OUTPUT_BOUNDS: ValueBounds = {
  charsMax: BOUNDS.outputCharsMax,
  depthMax: BOUNDS.outputDepthMax + 1,
};

const reportParams = z.strictObject({
  outcome: z.enum(["completed", "failed"]),
  outputs: z.record(z.string(), z.json()),
  confidence: z.number().min(0).max(1).optional(),
  evidence: z.array(z.string().max(BOUNDS.resourceCharsMax)).max(BOUNDS.resourcesPerStepMax).optional(),
});

/**
 * Records the outcome that the calling child reports for its step, and returns whether it was taken or what is wrong
 * with it. Its evidence is left out where the step's contract has no place for it.
 */
export async function reportOutcome(use: ToolCallRunner, params: unknown): Promise<ToolAnswer> {
  const parsed = parseBounded(reportParams, params, OUTPUT_BOUNDS);
  if (!parsed.ok) {
    const problems = parsed.problems.map(({ path, expected, received }) => ({
      path,
      message: `expected ${expected}, got ${received}`,
    }));
    return createInvalidAnswer(problems);
  }
  const { outcome, outputs, confidence, evidence } = parsed.value;
  const plain: ChildReport = { outcome, outputs, ...(confidence !== undefined && { confidence }) };
  const withEvidence =
    evidence && !("evidence" in outputs) ? { ...plain, outputs: { ...outputs, evidence } } : plain;
  return use(async ({ plans, session }) => {
    const answer = await plans.report(session, withEvidence);
    // The step's contract has no place for the evidence; the outputs count.
    const isRefusedForIt = answer.kind === "invalid" && withEvidence !== plain;
    const final = isRefusedForIt ? await plans.report(session, plain) : answer;
    // Before the model goes on: what it says next may have to be held back.
    if (final.kind === "recorded") noteReportedConfidence(session, confidence);
    return formatReportAnswer(final);
  });
}

function formatReportAnswer(answer: ReportAnswer): ToolAnswer {
  switch (answer.kind) {
    case "recorded":
      return {
        status: "recorded",
        coordinationId: answer.coordinationId,
        stepId: answer.stepId,
        note: "Recorded. End your turn with a short closing sentence.",
      };
    case "invalid":
      return createInvalidAnswer(answer.problems);
    case "refused":
      return { status: "refused", message: answer.reason };
  }
}

function createInvalidAnswer(
  problems: readonly { readonly path: string; readonly message: string }[],
): ToolAnswer {
  return {
    status: "invalid",
    note: "Not recorded. Correct what stands at these paths and report again.",
    problems: problems.slice(0, PROBLEMS_MAX),
  };
}
