/**
 * Owns: a plan as it reads under a policy, for a fork of it. What the policy says is put into the plan, where a plan can say it: it
 * then may ask for more than the operator's configuration, never for less, and what it cannot say is the operator's to change.
 */
import { CoordinationError } from "../contracts/errors.ts";
import { gatesSchema, type GatesConfig } from "../contracts/gates-config.ts";
import { hostAgentId } from "../contracts/host-agent-id.ts";
import type { CoordinationPlan, CoordinationStep } from "../contracts/plan.ts";
import type { ReplayPolicy } from "../contracts/replay-policy.ts";
import { statedCheckSchema, type StepVerify } from "../contracts/verification.ts";
import { isSentOnce } from "../plan/check-timing.ts";
import { sameValue } from "../replay/same-value.ts";

type Gates = NonNullable<ReplayPolicy["gates"]>;

/** Of `gates`: what a step of a plan can ask for as well. */
const OF_STEPS: ReadonlySet<string> = new Set([
  "confidenceThreshold",
  "requireConfidence",
  "revisionsMax",
  "agents",
  "verifiers",
] satisfies (keyof GatesConfig)[]);

const GATES = Object.keys(gatesSchema.shape) as (keyof GatesConfig)[];

/** @throws CoordinationError `INPUT_INVALID` for what only the operator's configuration can say */
export function planUnder(
  plan: CoordinationPlan,
  policy: ReplayPolicy,
  operators: GatesConfig,
): CoordinationPlan {
  assertSayable(policy, operators);
  const { gates, conflicts, failurePolicy = {} } = policy;
  const { timeoutPolicy, escalationPolicy } = failurePolicy;
  const retried = retriedUnder(plan, policy);
  return {
    ...retried,
    failurePolicy: {
      ...retried.failurePolicy,
      ...(timeoutPolicy && { timeoutPolicy }),
      ...(escalationPolicy && { escalationPolicy }),
    },
    ...(conflicts && { conflictPolicy: { ...plan.conflictPolicy, ...conflicts } }),
    ...(gates && { steps: retried.steps.map((step) => gatedUnder(step, gates, operators)) }),
  };
}

function assertSayable(
  { gates = {}, escalateMs, requireDifferentApprover }: ReplayPolicy,
  operators: GatesConfig,
): void {
  const unsayable = [
    // What holds anyway needs nobody to say it.
    ...GATES.filter(
      (key) => !OF_STEPS.has(key) && key in gates && !sameValue(gates[key], operators[key]),
    ).map((key) => `gates.${key}`),
    ...(escalateMs === undefined ? [] : ["escalateMs"]),
    ...(requireDifferentApprover === undefined ? [] : ["escalations.requireDifferentApprover"]),
  ];
  if (unsayable.length > 0) throw notSayable(unsayable.join(", "), "no plan can say that");
  if (!operators.enabled && Object.keys(gates).length > 0)
    throw notSayable("gates", "the configuration has them switched off, and a plan cannot switch them on");
}

function notSayable(path: string, why: string): CoordinationError {
  return new CoordinationError(
    "INPUT_INVALID",
    `policy: ${path}: ${why}; change the configuration and fork without it, or see what would have been decided with \`replay --policy\``,
  );
}

/** As a replay under the policy has it: what a step states itself stays, where `retry` does not speak of every step. */
function retriedUnder(
  plan: CoordinationPlan,
  { retry = {}, failurePolicy = {} }: ReplayPolicy,
): CoordinationPlan {
  if (Object.keys(retry).length === 0 && failurePolicy.retryBudget === undefined) return plan;
  const { retry: ofPlan, ...defaults } = plan.defaults ?? {};
  const otherwise = failurePolicy.retryBudget ?? plan.failurePolicy.retryBudget;
  const steps = plan.steps.map((step): CoordinationStep => {
    const stated = { ...ofPlan, ...step.retry };
    const budget = isSentOnce(step, defaults) ? 0 : (retry.budget ?? stated.budget ?? otherwise);
    const backoffMs = retry.backoffMs ?? stated.backoffMs;
    return { ...step, retry: { budget, ...(backoffMs !== undefined && { backoffMs }) } };
  });
  // A plan allows no step more than it says of all.
  const retryBudget = steps.reduce((most, step) => Math.max(most, step.retry?.budget ?? 0), otherwise);
  return { ...plan, defaults, steps, failurePolicy: { ...plan.failurePolicy, retryBudget } };
}

function gatedUnder(step: CoordinationStep, gates: Gates, operators: GatesConfig): CoordinationStep {
  const wished = wishedOf(gates, step);
  assertNoLess(step, wished, wishedOf(operators, step));
  const { verify = {} } = step;
  const { threshold, isDemanded } = wished;
  const checks = { ...verify.checks, ...checksUnder(wished.checks ?? [], gates, operators) };
  const revisionsMax = verify.revisionsMax ?? gates.revisionsMax;
  const other: StepVerify = {
    ...verify,
    ...(threshold !== undefined && {
      confidenceThreshold: Math.max(threshold, verify.confidenceThreshold ?? 0),
    }),
    ...(isDemanded && { requireConfidence: true }),
    ...(Object.keys(checks).length > 0 && { checks }),
    ...(revisionsMax !== undefined && { revisionsMax }),
  };
  return Object.keys(other).length > 0 ? { ...step, verify: other } : step;
}

interface Wished {
  readonly threshold: number | undefined;
  readonly isDemanded: boolean | undefined;
  readonly checks: readonly string[] | undefined;
}

/** What is said of the results of its agent, or of all. The host takes several spellings for one agent. */
function wishedOf({ agents = {}, ...gates }: Gates, { agent }: CoordinationStep): Wished {
  const known = Object.entries(agents).find(([id]) => hostAgentId(id) === hostAgentId(agent));
  const { confidenceThreshold, requireConfidence, checks } = known?.[1] ?? {};
  return {
    threshold: confidenceThreshold ?? gates.confidenceThreshold,
    isDemanded: requireConfidence ?? gates.requireConfidence,
    checks,
  };
}

/** A fork that is held to more than its policy says would tell another story than the policy's. */
function assertNoLess(
  { agent }: CoordinationStep,
  { threshold, isDemanded, checks }: Wished,
  operators: Wished,
): void {
  const demanded = operators.threshold ?? 0;
  if (threshold !== undefined && threshold < demanded)
    throw notSayable(
      "gates.confidenceThreshold",
      `the configuration demands ${demanded} of agent ${agent}, and a fork asks for no less`,
    );
  if (isDemanded === false && operators.isDemanded)
    throw notSayable(
      "gates.requireConfidence",
      `the configuration demands a confidence of agent ${agent}, and a fork asks for no less`,
    );
  const left = checks && operators.checks?.find((key) => !checks.includes(key));
  if (left !== undefined)
    throw notSayable(
      "gates.agents",
      `the configuration has ${left} check what agent ${agent} comes to, and a fork asks for no less`,
    );
}

type Checks = NonNullable<StepVerify["checks"]>;

/** A check of the operator's by its key alone; another one as the policy defines it. */
function checksUnder(keys: readonly string[], { verifiers = {} }: Gates, operators: GatesConfig): Checks {
  return Object.fromEntries(
    keys.map((key): [string, Checks[string]] => {
      const own = Object.hasOwn(operators.verifiers, key) ? operators.verifiers[key] : undefined;
      if (own && sameValue(own, verifiers[key])) return [key, true];
      const path = `gates.verifiers.${key}`;
      if (own) throw notSayable(path, "the configuration defines another check under this key");
      const stated = statedCheckSchema.safeParse(verifiers[key]);
      if (stated.success) return [key, stated.data];
      throw notSayable(path, "only the configuration can have a program check results");
    }),
  );
}
