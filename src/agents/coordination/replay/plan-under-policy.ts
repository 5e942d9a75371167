/**
 * Owns: a plan as it reads under a policy, for a fork of it. What the policy says is put into the plan, where a plan can say it: it
 * then may ask for more than the operator's configuration, never for less, and what it cannot say is the operator's to change.
 *
 * Retries and conflicts come out as a replay under the policy has them (`under-policy.ts`).
 */
import { CoordinationError } from "../contracts/errors.ts";
import { gatesSchema, type GatesConfig } from "../contracts/config/gates-config.ts";
import type { StepId } from "../contracts/ids.ts";
import type { ArbiterPolicy, CoordinationPlan, CoordinationStep } from "../contracts/plan.ts";
import type { ReplayPolicy } from "../contracts/config/replay-policy.ts";
import { PLAN_BOUNDS } from "../contracts/validation.ts";
import { statedCheckSchema, type StepVerify } from "../contracts/verification.ts";
import { agentGate } from "../gates/agent-gate.ts";
import { isSentOnce } from "../plan/check-timing.ts";
import { sameValue } from "./same-value.ts";

type Gates = NonNullable<ReplayPolicy["gates"]>;
type Checks = NonNullable<StepVerify["checks"]>;

/** What the operator's configuration says of the same. */
export interface OperatorRules {
  readonly gates: GatesConfig;
  readonly escalateMs: number;
  readonly requireDifferentApprover: boolean;
}

export interface PlanToChange {
  readonly plan: CoordinationPlan;
  /** The others have their results already: nothing is asked of them. */
  readonly anew: ReadonlySet<StepId>;
}

/** Of `gates`: what a step of a plan can ask for as well. */
const OF_STEPS: ReadonlySet<string> = new Set([
  "confidenceThreshold",
  "requireConfidence",
  "revisionsMax",
  "agents",
  "verifiers",
] satisfies (keyof GatesConfig)[]);

const GATES = Object.keys(gatesSchema.shape) as (keyof GatesConfig)[];

/** @throws CoordinationError `INPUT_INVALID` for what only the operator's configuration can say, and for what would say nothing */
export function planUnderPolicy(
  given: PlanToChange,
  policy: ReplayPolicy,
  operators: OperatorRules,
): CoordinationPlan {
  assertSayable(policy, operators);
  const { gates, conflicts, failurePolicy = {} } = policy;
  const { timeoutPolicy, escalationPolicy } = failurePolicy;
  const retried = retriedUnder(given, policy);
  return {
    ...retried,
    failurePolicy: {
      ...retried.failurePolicy,
      ...(timeoutPolicy && { timeoutPolicy }),
      ...(escalationPolicy && { escalationPolicy }),
    },
    ...(conflicts && { conflictPolicy: conflictsUnder(retried.conflictPolicy, conflicts) }),
    ...(gates && { steps: gatedUnder({ ...given, plan: retried }, gates, operators.gates) }),
  };
}

function assertSayable(
  { gates = {}, escalateMs, requireDifferentApprover }: ReplayPolicy,
  operators: OperatorRules,
): void {
  // What holds anyway needs nobody to say it.
  const differs = (wished: unknown, held: unknown): boolean =>
    wished !== undefined && !sameValue(wished, held);
  const unsayable = [
    ...GATES.filter((key) => !OF_STEPS.has(key) && differs(gates[key], operators.gates[key])).map(
      (key) => `gates.${key}`,
    ),
    ...(differs(escalateMs, operators.escalateMs) ? ["escalateMs"] : []),
    ...(differs(requireDifferentApprover, operators.requireDifferentApprover)
      ? ["escalations.requireDifferentApprover"]
      : []),
  ];
  if (unsayable.length > 0) throw notSayable(unsayable.join(", "), "no plan can say that");
  const asksForSome = Object.keys(gates).some((key) => key !== "enabled");
  if (!operators.gates.enabled && asksForSome)
    throw notSayable("gates", "the configuration has them switched off, and a plan cannot switch them on");
}

function notSayable(path: string, why: string): CoordinationError {
  return new CoordinationError(
    "INPUT_INVALID",
    `policy: ${path}: ${why}; change the configuration and fork without it, or see what would have been decided with \`replay --policy\``,
  );
}

/** What a step states itself stays, where `retry` does not speak of every step. */
function retriedUnder(
  { plan, anew }: PlanToChange,
  { retry = {}, failurePolicy = {} }: ReplayPolicy,
): CoordinationPlan {
  if (Object.keys(retry).length === 0 && failurePolicy.retryBudget === undefined) return plan;
  const { retry: ofPlan, ...defaults } = plan.defaults ?? {};
  const otherwise = failurePolicy.retryBudget ?? plan.failurePolicy.retryBudget;
  const steps = plan.steps.map((step): CoordinationStep => {
    if (!anew.has(step.stepId)) return { ...step, retry: { budget: 0 } };
    const stated = { ...ofPlan, ...step.retry };
    const budget = isSentOnce(step, defaults) ? 0 : (retry.budget ?? stated.budget ?? otherwise);
    const backoffMs = retry.backoffMs ?? stated.backoffMs;
    return { ...step, retry: { budget, ...(backoffMs !== undefined && { backoffMs }) } };
  });
  // A plan allows no step more than it says of all.
  const retryBudget = steps.reduce((most, step) => Math.max(most, step.retry?.budget ?? 0), otherwise);
  return { ...plan, defaults, steps, failurePolicy: { ...plan.failurePolicy, retryBudget } };
}

/** The policy's rules come where an operator's would: what is high-risk for either is, and no plan loosens `manual_review`. */
function conflictsUnder(plans: ArbiterPolicy, policys: ArbiterPolicy): ArbiterPolicy {
  const isManual = policys.strategy === "manual_review";
  const rules = isManual ? {} : plans;
  const strategy = rules.strategy ?? policys.strategy;
  return {
    ...(strategy && { strategy }),
    overrides: all(policys.overrides, rules.overrides),
    highRisk: [...new Set(all(plans.highRisk, policys.highRisk))],
  };
}

function all<T>(some: readonly T[] = [], others: readonly T[] = []): T[] {
  return [...some, ...others];
}

/** What is asked of every step of one agent. */
interface Asked extends Wished {
  readonly stated: Checks;
  /** Characters. */
  readonly size: number;
}

function gatedUnder(
  { plan, anew }: PlanToChange,
  gates: Gates,
  operators: GatesConfig,
): CoordinationPlan["steps"] {
  const checks = checksUnder(gates, operators);
  const byAgent = new Map<string, Asked>();
  let size = 0;
  return plan.steps.map((step) => {
    if (!anew.has(step.stepId)) return step;
    const known = byAgent.get(step.agent) ?? askedOf(step.agent, { gates, operators, checks });
    byAgent.set(step.agent, known);
    size += known.size;
    if (size > PLAN_BOUNDS.charsMax)
      throw notSayable(
        "gates.verifiers",
        "with these checks at every step the plan is larger than a plan may be",
      );
    return heldUnder(step, known, gates);
  });
}

interface Asking {
  readonly gates: Gates;
  readonly operators: GatesConfig;
  readonly checks: Checks;
}

function askedOf(agent: CoordinationStep["agent"], { gates, operators, checks }: Asking): Asked {
  const wished = wishedOf(gates, agent);
  assertNoLess(agent, wished, wishedOf(operators, agent));
  const stated = Object.fromEntries(
    (wished.checks ?? []).flatMap((key) => (Object.hasOwn(checks, key) ? [[key, checks[key]]] : [])),
  ) as Checks;
  return { ...wished, stated, size: JSON.stringify(stated).length };
}

function heldUnder(step: CoordinationStep, asked: Asked, gates: Gates): CoordinationStep {
  const { verify = {} } = step;
  const checks = { ...verify.checks, ...statedFor(step, asked) };
  const revisionsMax = verify.revisionsMax ?? gates.revisionsMax;
  const other: StepVerify = {
    ...verify,
    ...confidenceUnder(verify, asked),
    ...(Object.keys(checks).length > 0 && { checks }),
    ...(revisionsMax !== undefined && { revisionsMax }),
  };
  return Object.keys(other).length > 0 ? { ...step, verify: other } : step;
}

function statedFor({ stepId, verify = {} }: CoordinationStep, { stated }: Asked): Checks {
  const own = Object.entries(verify.checks ?? {});
  const other = own.find(([key, check]) => Object.hasOwn(stated, key) && !sameValue(check, stated[key]));
  if (other)
    throw notSayable(`gates.verifiers.${other[0]}`, `step ${stepId} states another check under this key`);
  return stated;
}

function confidenceUnder(
  verify: StepVerify,
  { threshold, isDemanded }: Wished,
): Pick<StepVerify, "confidenceThreshold" | "requireConfidence"> {
  return {
    ...(threshold !== undefined && {
      confidenceThreshold: Math.max(threshold, verify.confidenceThreshold ?? 0),
    }),
    ...(isDemanded && { requireConfidence: true }),
  };
}

interface Wished {
  readonly threshold: number | undefined;
  readonly isDemanded: boolean | undefined;
  readonly checks: readonly string[] | undefined;
}

/** What is said of the results of an agent, or of all. */
function wishedOf(gates: Gates, agent: CoordinationStep["agent"]): Wished {
  const { confidenceThreshold, requireConfidence, checks } = agentGate(gates, agent);
  return {
    threshold: confidenceThreshold ?? gates.confidenceThreshold,
    isDemanded: requireConfidence ?? gates.requireConfidence,
    checks,
  };
}

/** A fork that is held to more than its policy says would tell another story than the policy's. */
function assertNoLess(
  agent: CoordinationStep["agent"],
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

/** A check of the operator's by its key alone; another one as the policy defines it. */
function checksUnder({ verifiers = {}, agents = {} }: Gates, operators: GatesConfig): Checks {
  const named = new Set(Object.values(agents).flatMap(({ checks = [] }) => checks));
  return Object.fromEntries(
    Object.entries(verifiers).map(([key, check]): [string, Checks[string]] => {
      const path = `gates.verifiers.${key}`;
      const own = Object.hasOwn(operators.verifiers, key) ? operators.verifiers[key] : undefined;
      if (own && !sameValue(own, check))
        throw notSayable(path, "the configuration defines another check under this key");
      if (own) return [key, true];
      if (!named.has(key)) throw notSayable(path, "gates.agents names it for no agent");
      const stated = statedCheckSchema.safeParse(check);
      if (stated.success) return [key, stated.data];
      throw notSayable(path, "only the configuration can have a program check results");
    }),
  );
}
