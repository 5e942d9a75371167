/** Owns: the policy packs that an operator has taken into use. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { agentIdSchema } from "../ids.ts";
import { policyNameSchema, policyVersionSchema } from "../fact-fields.ts";
import { TUNABLE } from "./written-settings.ts";

/** A pack as `policy use` writes it: its own settings and those of all packs that it extends. */
const usedPackSchema = z.strictObject({
  version: policyVersionSchema.describe("The version of the pack when it was taken into use."),
  settings: z
    .partialRecord(z.enum(TUNABLE), z.unknown())
    .describe("Settings of `coordination.phase1`, as `policy show` prints them."),
});

/** Sessions for whose work another pack holds. */
const ruleSchema = z
  .strictObject({
    agent: agentIdSchema.optional().describe("Sessions of this agent."),
    channel: z
      .string()
      .min(1)
      .max(BOUNDS.nameCharsMax)
      .optional()
      .describe("Sessions whose key names this channel: agent:main:telegram:direct:42."),
    session: z
      .string()
      .min(1)
      .max(BOUNDS.sessionKeyCharsMax)
      .optional()
      .describe(
        "Sessions whose key is this; * stands for any characters, so that a workstream is a pattern.",
      ),
    pack: policyNameSchema.describe("The pack of `packs` that holds for their work."),
  })
  .refine(({ agent, channel, session }) => [agent, channel, session].some((each) => each !== undefined), {
    message: "an agent, a channel or a session",
  });
/** Sessions, and the policy pack that holds for their work. */
export type PolicyRule = z.output<typeof ruleSchema>;

/** The schema of the settings below `policies`. */
export const policiesSchema = z
  .strictObject({
    default: policyNameSchema
      .optional()
      .describe("The pack of `packs` that holds where this configuration says nothing else."),
    packs: z
      .record(policyNameSchema, usedPackSchema)
      .refine((packs) => Object.keys(packs).length <= BOUNDS.policyPacksMax)
      .default({})
      .describe("Policy packs by name. `openclaw coordination policy use` writes them."),
    rules: z
      .array(ruleSchema)
      .max(BOUNDS.policyOverridesMax)
      .default([])
      .describe("Packs for the work of single agents, channels or sessions; the first rule that fits holds."),
  })
  .superRefine(({ default: name, packs, rules }, context) => {
    const message = "a name of policies.packs";
    if (name !== undefined && !Object.hasOwn(packs, name))
      context.addIssue({ code: "custom", path: ["default"], message });
    for (const [index, { pack }] of rules.entries())
      if (!Object.hasOwn(packs, pack))
        context.addIssue({ code: "custom", path: ["rules", index, "pack"], message });
  });
/** The schema of the plugin's whole configuration, of which it reads these settings and leaves those beside them alone. */
export const policiesOnlySchema = z.strictObject({
  coordination: z
    .strictObject({ phase1: z.object({ policies: policiesSchema.prefault({}) }).prefault({}) })
    .prefault({}),
});
/** Settings of policy packs. */
export type PoliciesConfig = z.output<typeof policiesSchema>;
