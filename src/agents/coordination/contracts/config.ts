import { z } from "zod";
import { BOUNDS } from "./bounds.ts";
import { agentIdSchema } from "./ids.ts";
import { describeProblems, parseBounded, type Parsed } from "./validation.ts";
import { CoordinationError } from "./errors.ts";

const ms = (min: number) => z.int().min(min).max(BOUNDS.durationMsMax);

/** `plugins.entries.coordination.config.coordination.phase1`. */
const phase1Schema = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe("Coordinate subagent spawns. Off: the plugin registers its CLI and nothing else."),
  strict: z
    .boolean()
    .default(false)
    .describe(
      "Refuse a spawn that cannot be recorded or comes with a malformed envelope, instead of letting it go on.",
    ),
  agents: z
    .array(agentIdSchema)
    .max(BOUNDS.policyOverridesMax)
    .optional()
    .describe("Only coordinate spawns of these agents. Absent: of all agents."),
  stepTimeoutMs: ms(1_000)
    .default(24 * 3_600_000)
    .describe("How long a step may run when the spawn names no runTimeoutSeconds, in milliseconds."),
  settleMs: ms(0)
    .default(3_000)
    .describe("Quiet time after which a coordination without open steps ends, in milliseconds."),
  acknowledgeMs: ms(1_000)
    .default(30_000)
    .describe("How long a spawn may stay unconfirmed by the host before it is looked up, in milliseconds."),
  sweepMs: ms(1_000)
    .default(15_000)
    .describe("How often open steps are compared with the host's own records, in milliseconds."),
  contentRetentionDays: z
    .int()
    .min(0)
    .max(3_650)
    .default(7)
    .describe("How long objectives and tasks are kept beside the ledger, in days. 0 keeps none."),
});

/** The plugin's configuration, `plugins.entries.coordination.config`. The manifest's JSON Schema is generated from it. */
export const pluginConfigSchema = z.strictObject({
  coordination: z.strictObject({ phase1: phase1Schema.prefault({}) }).prefault({}),
});

export type Phase1Config = z.output<typeof phase1Schema>;

/** @throws CoordinationError `CONFIG_INVALID` */
export function parsePluginConfig(value: unknown): Phase1Config {
  const parsed: Parsed<z.output<typeof pluginConfigSchema>> = parseBounded(pluginConfigSchema, value ?? {}, {
    charsMax: BOUNDS.envelopeCharsMax,
    depthMax: BOUNDS.envelopeDepthMax,
  });
  if (parsed.ok) return parsed.value.coordination.phase1;
  throw new CoordinationError("CONFIG_INVALID", describeProblems(parsed.problems));
}
