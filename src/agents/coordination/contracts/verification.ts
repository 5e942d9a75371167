/**
 * Owns: what is checked of a result before it counts, and what a check finds (OpenWOP RFC 0090).
 *
 * A check is named by a key. Verdicts carry keys of criteria and never what was checked.
 */
import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { programFields } from "./program-fields.ts";

/** Names a check, and a criterion that one looks at. */
export const criterionKeySchema = z
  .string()
  .min(1)
  .max(BOUNDS.nameCharsMax)
  .regex(/^[A-Za-z0-9@][A-Za-z0-9._:@/-]*$/);

const criteriaSchema = z
  .array(criterionKeySchema)
  .max(BOUNDS.criteriaMax)
  .describe("What is looked at, each by a key that its verdict names.");
const jsonSchemaSchema = z.record(z.string().max(BOUNDS.idCharsMax), z.json());

const KIND = "Which sort of check it is.";

/** The outputs meet a JSON Schema. */
const schemaCheck = z.strictObject({
  kind: z.literal("schema").describe(KIND),
  schema: jsonSchemaSchema.describe("The JSON Schema that the outputs have to meet."),
});

/** The result as text matches a regular expression, or does not. */
const patternCheck = z.strictObject({
  kind: z.literal("pattern").describe(KIND),
  pattern: z
    .string()
    .min(1)
    .max(BOUNDS.patternCharsMax)
    .describe("The regular expression that the result as text has to match."),
  absent: z.boolean().optional().describe("True: it must not match."),
});

/** A file below the agent's working folder is there, or is not, or has a content. */
const fileCheck = z.strictObject({
  kind: z.literal("file").describe(KIND),
  path: z
    .string()
    .min(1)
    .max(BOUNDS.resourceCharsMax)
    .describe("The file that has to be there, relative to the agent's working folder and not outside of it."),
  absent: z.boolean().optional().describe("True: it must not be there."),
  sha256: z
    .string()
    .length(BOUNDS.sha256Chars)
    .regex(/^[0-9a-f]*$/)
    .optional()
    .describe("The SHA-256 of its content, in lower-case hexadecimal."),
});

/** A critic model that is not the actor reads the result and rules by a rubric. */
const modelCheck = z.strictObject({
  kind: z.literal("model").describe(KIND),
  rubric: z
    .string()
    .min(1)
    .max(BOUNDS.rubricCharsMax)
    .describe("What the critic's model is told to judge by."),
  criteria: criteriaSchema.min(1),
  agent: z
    .string()
    .min(1)
    .max(BOUNDS.agentIdCharsMax)
    .optional()
    .describe("The agent whose model criticises. Absent: the operator's `gates.critic`."),
});

/** A program that is given the result and answers by its exit code. Only an operator can name one. */
const commandCheck = z.strictObject({
  kind: z.literal("command").describe(KIND),
  ...programFields,
  reviseOn: z
    .array(z.int().min(1).max(255))
    .max(BOUNDS.criteriaMax)
    .default([])
    .describe("Exit codes that ask for another turn; any other but 0 is a failure."),
});

/** A check that a plan may state, which a model may have written: it runs nothing and reads no file outside of a workspace. */
export const statedCheckSchema = z.discriminatedUnion("kind", [
  schemaCheck,
  patternCheck,
  fileCheck,
  modelCheck,
]);

/** A check that whoever reaches this host over a network may state: it runs nothing and reads no file. */
export const remoteCheckSchema = z.discriminatedUnion("kind", [schemaCheck, patternCheck, modelCheck]);

/** A check that only an operator can define. */
export const operatorCheckSchema = z.discriminatedUnion("kind", [
  schemaCheck,
  patternCheck,
  fileCheck,
  modelCheck,
  commandCheck,
]);
/** A check that the operator configured. */
export type Check = z.output<typeof operatorCheckSchema>;

/** The verification that a step of a plan asks for. */
export const stepVerifySchema = z.strictObject({
  /** Checks by key: stated here, or `true` for one that the operator defined under that key. */
  checks: z
    .record(criterionKeySchema, z.union([z.literal(true), statedCheckSchema]))
    .refine((checks) => {
      const { length } = Object.keys(checks);
      return length > 0 && length <= BOUNDS.checksPerStepMax;
    }, `1 to ${BOUNDS.checksPerStepMax} checks`)
    .optional(),
  /** How often the result may go back to its agent. */
  revisionsMax: z.int().min(0).max(BOUNDS.revisionsMax).optional(),
  /** A result that states no confidence is held as one of low confidence. */
  requireConfidence: z.boolean().optional(),
  /** From 0 to 1. */
  confidenceThreshold: z.number().min(0).max(1).optional(),
});
/** A plan's rules for the verification of a step's result. */
export type StepVerify = z.output<typeof stepVerifySchema>;

const basisPoints = z.int().min(0).max(10_000);

/** The gate of a step's result, as the ledger has it. Confidences in basis points. */
export const gateSchema = z.object({
  /** Below it a stated confidence holds the result; equal passes. */
  threshold: basisPoints,
  /** No stated confidence counts as a low one. */
  requireConfidence: z.boolean().optional(),
  /** The checks by key, in the order in which they are asked. */
  checks: z.array(criterionKeySchema).max(BOUNDS.checksPerResultMax).optional(),
  /** Below it a verdict's own confidence holds the result. */
  criticThreshold: basisPoints.optional(),
  revisionsMax: z.int().min(0).max(BOUNDS.revisionsMax).optional(),
  /** How long the checks may take together. */
  verifyMs: z.int().min(1).max(BOUNDS.durationMsMax).optional(),
  /** An agent may rule on its own results. */
  allowSelf: z.boolean().optional(),
  /** People rule where the child did not run as it was asked. */
  holdMismatch: z.literal(true).optional(),
});
/** Everything that holds a result: checks, a confidence floor, and how strictly its text is withheld. */
export type Gate = z.infer<typeof gateSchema>;

/** The schema of a verdict. */
export const verdictSchema = z.enum(["pass", "fail", "revise"]);
/** The ruling of a check: `pass`, `fail`, or `revise` with what to do better. */
export type Verdict = z.infer<typeof verdictSchema>;

/** The finding of one check, free of content. */
export const findingSchema = z.object({
  /** The key of the check. */
  check: criterionKeySchema,
  /** Who ruled, as OpenWOP names agents. */
  agentId: z
    .string()
    .min(3)
    .max(BOUNDS.agentIdCharsMax + "agent:".length),
  verdict: verdictSchema,
  /** The keys of what was looked at; of a verdict that is no pass, of what was not met. */
  criteria: criteriaSchema.optional(),
  confidence: basisPoints.optional(),
  /** Whoever ruled is whoever did the work. */
  self: z.literal(true).optional(),
});
/** A verdict with its check, its agent and the criteria. */
export type Finding = z.infer<typeof findingSchema>;

/** Why a check has no verdict. Nothing passes without one (G1). */
export const verificationFailureSchema = z.enum([
  "timed_out",
  "failed",
  "unavailable",
  /** The verdict was about something else. */
  "other_target",
  "malformed",
  "self_not_allowed",
]);
/** Why a check gave no verdict. */
export type VerificationFailure = z.infer<typeof verificationFailureSchema>;

/** Returns the result of a check that came to no verdict, with the reason. Its message must be free of content. */
export function createNoVerdict(
  because: VerificationFailure,
  message: string,
): { readonly kind: "none"; readonly because: VerificationFailure; readonly message: string } {
  return { kind: "none", because, message };
}

/** One thing that a plan is to reach. */
export const successCriterionSchema = z.strictObject({
  key: criterionKeySchema,
  /** As `{{steps.ID.outputs.PATH}}`: met where that is `true`. Absent: met where all steps completed. */
  when: z.string().min(1).max(BOUNDS.resourceCharsMax).optional(),
});
/** A criterion that a plan is to meet, and the output that shows it. */
export type SuccessCriterion = z.infer<typeof successCriterionSchema>;

/** How far a plan reached it (RFC 0090, section C). */
export const criterionMetSchema = z.object({ key: criterionKeySchema, met: z.boolean() });
/** Whether a criterion was met. */
export type CriterionMet = z.infer<typeof criterionMetSchema>;

/** The form of what a verifier answers (`ports/verifier.ts`), which another plugin may have made. */
export const checkAnswerSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("verdict"),
    verdict: verdictSchema,
    agentId: z.string().max(BOUNDS.agentIdCharsMax + "agent:".length),
    criteria: criteriaSchema,
    confidence: z.number().min(0).max(1).optional(),
  }),
  z.object({
    kind: z.literal("none"),
    because: verificationFailureSchema,
    message: z.string().max(BOUNDS.errorMessageCharsMax),
  }),
]);
