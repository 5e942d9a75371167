/** Owns: the policy that a history is looked at under, as a person writes it. Does not own: what follows from it (`replay/`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { parsePluginConfig, type Phase1Config } from "./config.ts";
import { CoordinationError, isCoordinationError } from "../errors.ts";
import type { GatesConfig } from "./gates-config.ts";
import { failurePolicySchema, type ArbiterPolicy, type FailurePolicy } from "../plan.ts";
import { describeProblems, parseBounded, type ValueBounds } from "../validation.ts";

/** Under `coordination.phase1` of the plugin's configuration they have the same names. */
const CONFIGURED = ["gates", "conflicts", "escalations", "escalateMs"] as const;

const given = z.unknown().optional();

const policyFileSchema = z.strictObject({
  gates: given,
  conflicts: given,
  escalations: given,
  escalateMs: given,
  /** As in a plan, for all steps that do not say otherwise. */
  failurePolicy: failurePolicySchema.partial().optional(),
  /** Of every step of a plan. */
  retry: z
    .strictObject({
      budget: z.int().min(0).max(BOUNDS.retryBudgetMax),
      backoffMs: z.int().min(1).max(BOUNDS.durationMsMax),
    })
    .partial()
    .optional(),
});

export const POLICY_BOUNDS: ValueBounds = {
  charsMax: BOUNDS.configCharsMax,
  depthMax: BOUNDS.configDepthMax,
};

/** What holds in place of what held then. What is absent stays as it was. */
export interface ReplayPolicy {
  readonly gates?: Partial<GatesConfig>;
  readonly conflicts?: ArbiterPolicy;
  readonly failurePolicy?: { readonly [K in keyof FailurePolicy]?: FailurePolicy[K] | undefined };
  readonly retry?: { readonly budget?: number | undefined; readonly backoffMs?: number | undefined };
  /** How long questions to people stay open. */
  readonly escalateMs?: number;
  readonly requireDifferentApprover?: boolean;
}

/**
 * @throws CoordinationError `INPUT_INVALID` with what is wrong and where
 */
export function parseReplayPolicy(value: unknown): ReplayPolicy {
  const parsed = parseBounded(policyFileSchema, value, POLICY_BOUNDS);
  if (!parsed.ok) throw refused(describeProblems(parsed.problems));
  const { failurePolicy, retry, ...config } = parsed.value;
  if (Object.keys(parsed.value).length === 0)
    throw refused(
      "a policy says something of gates, conflicts, escalations, escalateMs, failurePolicy or retry",
    );
  const phase1 = configured(config);
  const escalations = keysOf(config.escalations);
  assertRuledOn("escalations", escalations, ["requireDifferentApprover"]);
  assertRuledOn("conflicts", keysOf(config.conflicts), ["strategy", "overrides", "highRisk"]);
  return {
    ...("gates" in config && { gates: onlyGiven(phase1.gates, config.gates) }),
    ...("conflicts" in config && { conflicts: rulesIn(phase1, config.conflicts) }),
    ...("escalateMs" in config && { escalateMs: phase1.escalateMs }),
    ...(escalations.includes("requireDifferentApprover") && {
      requireDifferentApprover: phase1.escalations.requireDifferentApprover,
    }),
    ...(failurePolicy && { failurePolicy }),
    ...(retry && { retry }),
  };
}

/** By the schema of the configuration itself. */
function configured(config: Readonly<Record<string, unknown>>): Phase1Config {
  const phase1 = Object.fromEntries(CONFIGURED.flatMap((key) => (key in config ? [[key, config[key]]] : [])));
  try {
    return parsePluginConfig({ coordination: { phase1 } });
  } catch (error) {
    if (!isCoordinationError(error)) throw error;
    throw refused(error.message.replaceAll("coordination.phase1.", ""));
  }
}

/** What is no part of a decision would be left out in silence. */
function assertRuledOn(path: string, given: readonly string[], known: readonly string[]): void {
  const other = given.find((key) => !known.includes(key));
  if (other !== undefined)
    throw refused(`${path}.${other} decides nothing; of ${path} there are ${known.join(", ")}`);
}

function refused(why: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", `the policy is not one: ${why}`);
}

function keysOf(raw: unknown): string[] {
  return typeof raw === "object" && raw !== null ? Object.keys(raw) : [];
}

/** Without the defaults of what the file does not name. */
function onlyGiven<T extends object>(parsed: T, raw: unknown): Partial<T> {
  const named = new Set(keysOf(raw));
  return Object.fromEntries(Object.entries(parsed).filter(([key]) => named.has(key))) as Partial<T>;
}

function rulesIn({ conflicts }: Phase1Config, raw: unknown): ArbiterPolicy {
  const { strategy, overrides, highRisk } = onlyGiven(conflicts, raw);
  return {
    ...(strategy && { strategy }),
    ...(overrides && { overrides }),
    ...(highRisk && { highRisk }),
  };
}
