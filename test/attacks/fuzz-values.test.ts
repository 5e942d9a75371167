/**
 * Values made from the schemas of what the project reads from others, with hostile parts: each is read or refused in words, and
 * nothing else happens. `FUZZ_VALUES` sets how many of each kind, `FUZZ_SEED` the first seed.
 */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  parsePluginConfig,
  pluginConfigSchema,
} from "../../src/agents/coordination/contracts/config/config.ts";
import { parsePolicyPack } from "../../src/agents/coordination/contracts/config/policy-pack.ts";
import { parseReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import { coordinationEnvelopeSchema } from "../../src/agents/coordination/contracts/envelope.ts";
import { isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { coordinationPlanSchema } from "../../src/agents/coordination/contracts/plan.ts";
import { decodeEvent, EVENT_PAYLOADS } from "../../src/agents/coordination/contracts/run-event.ts";
import { ENVELOPE_BOUNDS, parseBounded } from "../../src/agents/coordination/contracts/validation.ts";
import {
  agentManifestSchema,
  readAgentManifest,
} from "../../src/agents/coordination/contracts/workflows/agent-manifest.ts";
import {
  readWorkflowDefinition,
  workflowDefinitionSchema,
} from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { checkPlan } from "../../src/agents/coordination/plan/check-plan.ts";
import { compileWorkflow } from "../../src/agents/coordination/workflow/state/graph.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { createFromSchema, createHostileValue, pickOne } from "../support/hostile-values.ts";
import { createRandom } from "../support/random.ts";

const VALUES = chooseCampaignSize("FUZZ_VALUES", { short: 2_000, long: 100_000 });
const SEED = Number(process.env["FUZZ_SEED"] ?? 1);
/** Far above what any of them takes. */
const READ_MS_MAX = 500;
const WORDS = ["a", "b", "step-1", "agent:main:telegram:direct:1", "main", "co-1", "core.noop", "file:/a"];

interface Kind {
  readonly name: string;
  readonly schema: z.ZodType;
  readonly read: (value: unknown) => unknown;
}

const POLICY = pluginConfigSchema.shape.coordination;

const KINDS: readonly Kind[] = [
  { name: "plan", schema: coordinationPlanSchema, read: checkPlan },
  {
    name: "envelope",
    schema: coordinationEnvelopeSchema,
    read: (value) => parseBounded(coordinationEnvelopeSchema, value, ENVELOPE_BOUNDS),
  },
  { name: "configuration", schema: pluginConfigSchema, read: parsePluginConfig },
  { name: "policy pack", schema: z.object({ settings: POLICY }), read: parsePolicyPack },
  { name: "policy to replay under", schema: POLICY, read: parseReplayPolicy },
  { name: "agent manifest", schema: agentManifestSchema, read: readAgentManifest },
  {
    name: "workflow",
    schema: workflowDefinitionSchema,
    read: (value) => {
      const parsed = readWorkflowDefinition(value);
      return parsed.ok ? compileWorkflow(parsed.value, "0".repeat(64)) : parsed.problems;
    },
  },
  ...Object.entries(EVENT_PAYLOADS).map(([type, payload]) => ({
    name: `event ${type}`,
    schema: z.object({
      eventId: z.string(),
      runId: z.literal("co-1"),
      sequence: z.int(),
      timestamp: z.string(),
      type: z.literal(type),
      payload,
    }),
    read: decodeEvent,
  })),
];

/** Describes what else happened than reading the value or refusing it in words. */
function findFault({ read }: Kind, value: unknown): string | undefined {
  const start = performance.now();
  try {
    read(value);
  } catch (error) {
    if (!isCoordinationError(error) || error.message.length < 10) return String(error);
  }
  const ms = performance.now() - start;
  return ms > READ_MS_MAX ? `it took ${Math.round(ms)} ms` : undefined;
}

describe.each(KINDS)("a hostile $name", (kind) => {
  const schema = z.toJSONSchema(kind.schema, { io: "input", unrepresentable: "any" });

  it(`is read or refused in words (${VALUES})`, { timeout: 3_600_000 }, () => {
    const count = kind.name.startsWith("event ") ? VALUES / 20 : VALUES;
    for (let seed = SEED; seed < SEED + count; seed += 1) {
      const random = createRandom(seed);
      random();
      const chance = pickOne(random, [0, 0.01, 0.05, 0.2, 1]);
      const value =
        chance === 1
          ? createHostileValue(random)
          : createFromSchema({ random, chance, words: WORDS }, schema);
      expect(
        findFault(kind, value),
        `seed ${seed}: ${JSON.stringify(value).slice(0, 2_000)}`,
      ).toBeUndefined();
    }
  });
});
