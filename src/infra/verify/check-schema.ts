/** Owns: holding outputs against the JSON Schema of a check. */
import { createNoVerdict } from "../../agents/coordination/contracts/verification.ts";
import { checkOutputSchema } from "../../agents/coordination/plan/output-schema.ts";
import { createProblemList } from "../../agents/coordination/plan/plan-problem.ts";
import type { OutputContract } from "../../agents/coordination/ports/output-contract.ts";
import type { CheckAnswer, CheckRequest } from "../../agents/coordination/ports/verifier.ts";
import { createPassOrFailVerdict, type CheckOf } from "./check-answer.ts";

/**
 * Returns the verdict whether a step's outputs fit the schema of a check; `fail` without outputs. No verdict for an
 * unusable schema, or where the outputs cannot be held against it or that takes too long.
 */
export async function checkOutputsBySchema(
  { schema }: CheckOf<"schema">,
  { key, result: { outputs } }: CheckRequest,
  contract: () => Promise<OutputContract>,
): Promise<CheckAnswer> {
  const schemaProblems = createProblemList();
  checkOutputSchema(schema, [], schemaProblems);
  if (schemaProblems.problems.length > 0)
    return createNoVerdict("failed", "the check's schema is not a usable JSON Schema");
  if (!outputs) return createPassOrFailVerdict(key, false);
  const problems = (await contract()).check(schema, outputs);
  return problems.some(({ isUnchecked }) => isUnchecked)
    ? createNoVerdict(
        "failed",
        "the result cannot be held against the check's schema, or that takes too long",
      )
    : createPassOrFailVerdict(key, problems.length === 0);
}
