/** Owns: what operators say about gates and questions to people. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { channelSchema } from "../escalation.ts";
import { agentIdSchema } from "../ids.ts";
import { criterionKeySchema, operatorCheckSchema } from "../verification.ts";

const declareDurationMs = (min: number) => z.int().min(min).max(BOUNDS.durationMsMax);
const share = z.number().min(0).max(1);

const agentGateSchema = z.strictObject({
  checks: z
    .array(criterionKeySchema)
    .max(BOUNDS.checksPerStepMax)
    .optional()
    .describe("Keys of `verifiers` that every result of this agent must pass."),
  confidenceThreshold: share.optional().describe("In place of `confidenceThreshold`, for this agent."),
  requireConfidence: z.boolean().optional().describe("In place of `requireConfidence`, for this agent."),
});

/** The schema of the settings below `gates`. */
export const gatesSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe("Hold results that state a low confidence or are to be checked, until they are ruled on."),
    decisionFloor: z
      .number()
      .min(0.5)
      .max(1)
      .default(0.5)
      .describe("Below this confidence a planned step, or a plan, waits for people before it begins."),
    confidenceThreshold: share
      .default(0.7)
      .describe("Below this confidence a result is held until people rule on it; equal passes."),
    requireConfidence: z
      .boolean()
      .default(false)
      .describe("A result that states no confidence counts as one of low confidence."),
    criticThreshold: share
      .default(0.7)
      .describe("Below this confidence of a check in its own verdict, people rule."),
    allowSelfVerification: z
      .boolean()
      .default(false)
      .describe("An agent may be the critic of its own results; the ledger shows it."),
    revisionsMax: z
      .int()
      .min(0)
      .max(BOUNDS.revisionsMax)
      .default(2)
      .describe("How often a result goes back to its agent for another turn."),
    verifyMs: declareDurationMs(1_000)
      .default(120_000)
      .describe("How long all checks of one result may take, in milliseconds; then people rule."),
    critic: agentIdSchema.optional().describe("The agent whose model criticises, where a check names none."),
    verifiers: z
      .record(criterionKeySchema, operatorCheckSchema)
      .refine((checks) => Object.keys(checks).length <= BOUNDS.verifiersMax)
      .default({})
      .describe("Checks by key, for `agents` here and for the steps of plans."),
    agents: z
      .record(agentIdSchema, agentGateSchema)
      .refine((agents) => Object.keys(agents).length <= BOUNDS.policyOverridesMax)
      .default({})
      .describe("What holds for the results of an agent, spawned or planned."),
  })
  .superRefine(({ agents, verifiers }, context) => {
    for (const [agent, { checks = [] }] of Object.entries(agents))
      for (const [index, key] of checks.entries())
        if (!Object.hasOwn(verifiers, key))
          context.addIssue({
            code: "custom",
            path: ["agents", agent, "checks", index],
            message: "a key of gates.verifiers",
          });
  });
/** Settings of gates. */
export type GatesConfig = z.output<typeof gatesSchema>;

/** A signed request to an address of the operator's. */
const webhookSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .max(BOUNDS.resourceCharsMax)
    .describe("Where a signed request is sent to."),
  secret: z
    .string()
    .min(16)
    .max(BOUNDS.resourceCharsMax)
    .describe(
      "Signs what is sent, and what comes back. At least 16 characters; may be given as `${VARIABLE}`.",
    ),
  allowPrivate: z
    .boolean()
    .default(false)
    .describe("Also send to addresses of this machine and of private networks, and over plain HTTP."),
  timeoutMs: z.int().min(100).max(60_000).default(10_000).describe("How long one request may take."),
  triesMax: z.int().min(1).max(20).default(6).describe("How often it is tried before it is given up."),
  answers: z.boolean().default(true).describe("Whether answers signed with this secret count."),
});
/** A webhook that people are notified through. */
export type WebhookConfig = z.output<typeof webhookSchema>;

/** The schema of the settings below `escalations`. */
export const escalationsSchema = z
  .strictObject({
    notify: z
      .array(
        z.strictObject({
          channel: channelSchema
            .regex(/^(?:chat$|host$|webhook:|plugin:)/)
            .describe("Who is told: `chat`, `host`, `webhook:NAME` or `plugin:NAME`."),
          afterMs: z
            .int()
            .min(0)
            .max(BOUNDS.durationMsMax)
            .default(0)
            .describe("How long after the question was asked, in milliseconds."),
        }),
      )
      .max(BOUNDS.noticesMax)
      .default([])
      .describe(
        "Who is told of a question, and when after it was asked: a channel again is a reminder, another one a re-escalation.",
      ),
    webhooks: z
      .record(
        z
          .string()
          .max(BOUNDS.nameCharsMax)
          .regex(/^[a-z0-9][a-z0-9_-]*$/),
        webhookSchema,
      )
      .refine((webhooks) => Object.keys(webhooks).length <= BOUNDS.webhooksMax)
      .default({})
      .describe("Addresses by name, for the channel `webhook:NAME`."),
    answerBaseUrl: z
      .url({ protocol: /^https?$/ })
      .max(BOUNDS.resourceCharsMax)
      .optional()
      .describe("The gateway's address from outside; webhooks are told to answer below it."),
    requireDifferentApprover: z
      .boolean()
      .default(false)
      .describe(
        "The session that a question is about, or whose plan it is, is not where it may be answered.",
      ),
    approvers: z
      .array(z.string().min(1).max(BOUNDS.idCharsMax))
      .max(BOUNDS.policyOverridesMax)
      .optional()
      .describe(
        "Only these senders may answer by chat, as `CHANNEL:SENDER`. Absent: whoever may command the agent.",
      ),
    openMax: z
      .int()
      .min(1)
      .max(BOUNDS.openQuestionsMax)
      .default(256)
      .describe("How many questions of agents one coordination keeps open."),
    parentAnswerMs: declareDurationMs(1_000)
      .default(600_000)
      .describe(
        "How long the parent of an agent may take to answer it, where the agent does not say, in milliseconds; then its default counts, or people are asked.",
      ),
  })
  .superRefine(({ notify, webhooks }, context) => {
    for (const [index, { channel }] of notify.entries())
      if (channel.startsWith("webhook:") && !Object.hasOwn(webhooks, channel.slice("webhook:".length)))
        context.addIssue({
          code: "custom",
          path: ["notify", index, "channel"],
          message: "a name of escalations.webhooks",
        });
  });
/** Settings of questions to people. */
export type EscalationsConfig = z.output<typeof escalationsSchema>;
