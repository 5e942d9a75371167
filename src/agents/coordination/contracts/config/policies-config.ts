/** Owns: the policy packs that an operator has taken into use. Part of the plugin's configuration (`config.ts`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { TUNABLE } from "./written-settings.ts";

/** The name of a policy pack: small letters, digits and `-`. */
export const policyNameSchema = z
  .string()
  .max(BOUNDS.nameCharsMax)
  .regex(/^[a-z][a-z0-9-]*$/u);

/** `1.0.0`, or with what semver allows behind it. */
export const policyVersionSchema = z
  .string()
  .max(BOUNDS.versionCharsMax)
  .regex(/^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/u);

/** A pack as `policy use` writes it: its own settings and those of all packs that it extends. */
const usedPackSchema = z.strictObject({
  version: policyVersionSchema.describe("The version of the pack when it was taken into use."),
  settings: z
    .partialRecord(z.enum(TUNABLE), z.unknown())
    .describe("Settings of `coordination.phase1`, as `policy show` prints them."),
});

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
  })
  .superRefine(({ default: name, packs }, context) => {
    if (name !== undefined && !Object.hasOwn(packs, name))
      context.addIssue({ code: "custom", path: ["default"], message: "a name of policies.packs" });
  });
/** Settings of policy packs. */
export type PoliciesConfig = z.output<typeof policiesSchema>;
