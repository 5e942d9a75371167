/** Owns: the policy that a history is looked at under, as a person writes it. Does not own: what follows from it (`replay/`). */
import { z } from "zod";
import { BOUNDS } from "../bounds.ts";
import { parsePluginConfig, type Phase1Config } from "./config.ts";
import { CoordinationError, isCoordinationError } from "../errors.ts";
import type { GatesConfig } from "./gates-config.ts";
import {
  failurePolicySchema,
  type ArbiterPolicy,
  type ConflictStrategy,
  type FailurePolicy,
} from "../plan.ts";
import { isRecord } from "../../std/is-record.ts";
import type { TreeBudget } from "../usage.ts";
import type { PolicySettings } from "./policy-pack.ts";
import { createTreeBudget } from "./tree-budget.ts";
import { describeProblems, parseBounded, type ValueBounds } from "../validation.ts";

/** Under `coordination.phase1` of the plugin's configuration they have the same names. */
const CONFIGURED = ["gates", "conflicts", "escalations", "escalateMs", "budget"] as const;
const RULED: Readonly<Record<string, readonly string[]>> = {
  conflicts: ["strategy", "overrides", "highRisk"],
  escalations: ["requireDifferentApprover"],
};

const anyValue = z.unknown().optional();

const policyFileSchema = z.strictObject({
  gates: anyValue,
  conflicts: anyValue,
  escalations: anyValue,
  escalateMs: anyValue,
  budget: anyValue,
  /** As in a plan, for all steps that do not say otherwise. */
  failurePolicy: failurePolicySchema.partial().optional(),
  /** Retries of every step of a plan. */
  retry: z
    .strictObject({
      budget: z.int().min(0).max(BOUNDS.retryBudgetMax),
      backoffMs: z.int().min(1).max(BOUNDS.durationMsMax),
    })
    .partial()
    .optional(),
});

/** How large and how deep a policy file may be. */
export const POLICY_BOUNDS: ValueBounds = {
  charsMax: BOUNDS.configCharsMax,
  depthMax: BOUNDS.configDepthMax,
};

/** Rules in place of those that held then. Where one is absent the recorded one stays. */
export interface ReplayPolicy {
  readonly gates?: Partial<GatesConfig>;
  readonly conflicts?: ArbiterPolicy;
  readonly failurePolicy?: { readonly [K in keyof FailurePolicy]?: FailurePolicy[K] | undefined };
  readonly retry?: { readonly budget?: number | undefined; readonly backoffMs?: number | undefined };
  /** How long questions to people stay open. */
  readonly escalateMs?: number;
  readonly requireDifferentApprover?: boolean;
  /** Bounds of coordinations that spawns open; empty: none. */
  readonly budget?: TreeBudget;
  /** Settings of a configuration. They count only where the policy puts nothing in place of a rule that the log does not hold. */
  readonly configured?: {
    readonly strategy: ConflictStrategy;
    readonly overrides: NonNullable<ArbiterPolicy["overrides"]>;
    readonly gates?: Partial<GatesConfig>;
  };
}

/**
 * Returns the checked policy under which a recorded history is to be decided again, from the file of a person. @throws
 * CoordinationError `INPUT_INVALID` with what is wrong and where, also for a policy that says nothing
 */
export function parseReplayPolicy(value: unknown): ReplayPolicy {
  const parsed = parseBounded(policyFileSchema, value, POLICY_BOUNDS);
  if (!parsed.ok) throw createPolicyError(describeProblems(parsed.problems));
  const { failurePolicy, retry, ...config } = parsed.value;
  if (Object.keys(parsed.value).length === 0)
    throw createPolicyError(
      "a policy says something of gates, conflicts, escalations, escalateMs, budget, failurePolicy or retry",
    );
  for (const [section, keys] of Object.entries(RULED))
    assertOnlyKeys(section, listKeys(config[section as keyof typeof config]), keys);
  return {
    ...readConfiguredRules(config),
    ...(failurePolicy && { failurePolicy }),
    ...(retry && { retry }),
  };
}

/** Reads the rules that stand in the plugin's configuration too. */
function readConfiguredRules(config: Readonly<Record<string, unknown>>): ReplayPolicy {
  const phase1 = readPhase1Config(config);
  const isApproverRuled = listKeys(config["escalations"]).includes("requireDifferentApprover");
  return {
    ...("gates" in config && { gates: pickGivenSettings(phase1.gates, config["gates"]) }),
    ...("conflicts" in config && { conflicts: readConflictRules(phase1, config["conflicts"]) }),
    ...("escalateMs" in config && { escalateMs: phase1.escalateMs }),
    ...(isApproverRuled && {
      requireDifferentApprover: phase1.escalations.requireDifferentApprover,
    }),
    ...("budget" in config && readBudget(phase1, config["budget"])),
  };
}

/** Only a budget in which nothing stands is none. One that limits nothing, as for an agent, says nothing. */
function readBudget({ budget }: Phase1Config, raw: unknown): Pick<ReplayPolicy, "budget"> {
  const limits = createTreeBudget(budget);
  if (!limits && listKeys(raw).length > 0) return {};
  return { budget: limits ?? {} };
}

/**
 * Returns the part of a pack's settings under which a recorded history can be decided again, and the paths of the
 * settings left out. The log does not hold what those would decide on. @throws CoordinationError `INPUT_INVALID`
 */
export function toReplayPolicy(settings: PolicySettings): {
  readonly policy: ReplayPolicy;
  readonly leftOut: readonly string[];
} {
  const leftOut: string[] = [];
  const policy: Record<string, unknown> = {};
  for (const [section, value] of Object.entries(settings)) {
    const isDecisive = (key: string): boolean => RULED[section]?.includes(key) ?? true;
    if (!CONFIGURED.some((name) => name === section)) leftOut.push(section);
    else if (isRecord(value)) {
      const keys = Object.keys(value);
      leftOut.push(...keys.filter((key) => !isDecisive(key)).map((key) => `${section}.${key}`));
      const decisive = keys.filter(isDecisive).map((key) => [key, value[key]] as const);
      if (decisive.length > 0) policy[section] = Object.fromEntries(decisive);
    } else policy[section] = value;
  }
  return { policy: Object.keys(policy).length > 0 ? parseReplayPolicy(policy) : {}, leftOut };
}

/** Reads the phase 1 configuration by its own schema. */
function readPhase1Config(config: Readonly<Record<string, unknown>>): Phase1Config {
  const phase1 = Object.fromEntries(CONFIGURED.flatMap((key) => (key in config ? [[key, config[key]]] : [])));
  try {
    return parsePluginConfig({ coordination: { phase1 } });
  } catch (error) {
    if (!isCoordinationError(error)) throw error;
    throw createPolicyError(error.message.replaceAll("coordination.phase1.", ""));
  }
}

/**
 * Throws where a section has a key that is not known. A policy that is left out in silence would mislead its author.
 */
function assertOnlyKeys(path: string, keysGiven: readonly string[], keysKnown: readonly string[]): void {
  const other = keysGiven.find((key) => !keysKnown.includes(key));
  if (other !== undefined)
    throw createPolicyError(`${path}.${other} decides nothing; of ${path} there are ${keysKnown.join(", ")}`);
}

function createPolicyError(why: string): CoordinationError {
  return new CoordinationError("INPUT_INVALID", `the policy is not one: ${why}`);
}

function listKeys(raw: unknown): string[] {
  return typeof raw === "object" && raw !== null ? Object.keys(raw) : [];
}

/** Returns only the values that the file names, without the defaults of the others. */
function pickGivenSettings<T extends object>(parsed: T, raw: unknown): Partial<T> {
  const named = new Set(listKeys(raw));
  return Object.fromEntries(Object.entries(parsed).filter(([key]) => named.has(key))) as Partial<T>;
}

function readConflictRules({ conflicts }: Phase1Config, raw: unknown): ArbiterPolicy {
  const { strategy, overrides, highRisk } = pickGivenSettings(conflicts, raw);
  return {
    ...(strategy && { strategy }),
    ...(overrides && { overrides }),
    ...(highRisk && { highRisk }),
  };
}
