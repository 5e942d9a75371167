/**
 * Owns: a policy pack as a person writes it: a named and versioned file with the settings of `coordination.phase1` that an operator
 * tunes. Does not own: finding the pack that it extends, and comparing packs (`policies/`).
 */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { CoordinationError, isCoordinationError } from "../errors.ts";
import { describeProblems, parseBounded, type ValueBounds } from "../validation.ts";
import { parsePluginConfig, type Phase1Config } from "./config.ts";
import { policyNameSchema, policyVersionSchema } from "../fact-fields.ts";
import { normalizeAgentInPath, normalizeAgentIds, readSection, TUNABLE } from "./written-settings.ts";

/** Addresses and secrets belong to a machine. A pack is handed on. */
const KEPT_OUT: Readonly<Record<string, readonly string[]>> = {
  escalations: ["webhooks", "answerBaseUrl", "approvers"],
};

const anyValue = z.unknown().optional();

const settingsSchema = z.strictObject(
  Object.fromEntries(TUNABLE.map((name) => [name, anyValue])) as Record<
    (typeof TUNABLE)[number],
    typeof anyValue
  >,
);

const packFileSchema = z.strictObject({
  name: policyNameSchema,
  version: policyVersionSchema,
  description: z.string().max(BOUNDS.errorMessageCharsMax).optional(),
  /** The name of a pack that ships, or a path from this file. */
  extends: z.string().min(1).max(BOUNDS.resourceCharsMax).optional(),
  /** Settings in which a pack that extends this one may be stricter, and never laxer: `gates`, `truth.onMismatch`. */
  locked: z.array(z.string().min(1).max(BOUNDS.resourceCharsMax)).max(BOUNDS.policyOverridesMax).default([]),
  settings: settingsSchema.default({}),
});
/** A policy pack as it is written, without what it extends. */
export type PolicyPackFile = z.output<typeof packFileSchema>;

/** Settings by section, as they are written below `coordination.phase1`. */
export type PolicySettings = Readonly<Record<string, unknown>>;

const PACK_BOUNDS: ValueBounds = { charsMax: BOUNDS.configCharsMax, depthMax: BOUNDS.configDepthMax };

/**
 * Returns the checked content of a policy pack's file, with agents under the ids that OpenClaw has for them. @throws
 * CoordinationError `INPUT_INVALID` with each problem and its place
 */
export function parsePolicyPack(value: unknown): PolicyPackFile {
  const parsed = parseBounded(packFileSchema, value, PACK_BOUNDS);
  const misplaced = listMisplacedSettings(readSection(value, "settings"));
  if (!parsed.ok) throw createPackError([describeProblems(parsed.problems), ...misplaced].join("; "));
  if (misplaced.length > 0) throw createPackError(misplaced.join("; "));
  const { settings, locked } = parsed.value;
  return { ...parsed.value, locked: locked.map(normalizeAgentInPath), settings: normalizeAgentIds(settings) };
}

/**
 * Returns the plugin's whole configuration as if a pack's settings were all that is written, defaults included.
 * @throws CoordinationError `INPUT_INVALID`
 */
export function readPolicySettings(settings: PolicySettings): Phase1Config {
  try {
    return parsePluginConfig({ coordination: { phase1: settings } });
  } catch (error) {
    if (!isCoordinationError(error)) throw error;
    throw createPackError(error.message.replaceAll("coordination.phase1.", "settings."));
  }
}

/** Lists the settings that a pack may not have, each with why. */
function listMisplacedSettings(settings: PolicySettings): string[] {
  return Object.entries(KEPT_OUT).flatMap(([section, names]) => {
    const present = names.filter((name) => Object.hasOwn(readSection(settings, section), name));
    return present.map(
      (name) => `settings.${section}.${name} belongs to one gateway; write it into its configuration instead`,
    );
  });
}

function createPackError(why: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", `the policy pack is not valid: ${why}`);
}
