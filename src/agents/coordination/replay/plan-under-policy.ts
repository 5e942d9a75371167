/**
 * Owns: a plan as it reads under a policy, for a fork of it. The policy's rules are put into the plan, where a plan can say it: it
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
import { findAgentGate } from "../gates/agent-gate.ts";
import { isSentOnce } from "../plan/check-timing.ts";
import { isSameValue } from "./same-value.ts";

/** The gates of a policy. */
type PolicyGates = NonNullable<ReplayPolicy["gates"]>;
/** The checks of a step's results. */
type StepChecks = NonNullable<StepVerify["checks"]>;

/** The rules of the operator's configuration. */
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

/** Keys of `gates` that a step of a plan can ask for as well. */
const STEP_GATE_KEYS: ReadonlySet<string> = new Set([
  "confidenceThreshold",
  "requireConfidence",
  "revisionsMax",
  "agents",
  "verifiers",
] satisfies (keyof GatesConfig)[]);

const GATES = Object.keys(gatesSchema.shape) as (keyof GatesConfig)[];

/**
 * Returns the plan that a fork is to run, with the rules of a replay policy written into it. @throws CoordinationError
 * `INPUT_INVALID` for what only the operator's configuration can say, and for what would say nothing
 */
export function rewritePlanUnderPolicy(
  change: PlanToChange,
  policy: ReplayPolicy,
  operators: OperatorRules,
): CoordinationPlan {
  assertPlanCanSay(policy, operators);
  const { gates, conflicts, failurePolicy = {} } = policy;
  const { timeoutPolicy, escalationPolicy } = failurePolicy;
  const retried = applyRetryPolicy(change, policy);
  return {
    ...retried,
    failurePolicy: {
      ...retried.failurePolicy,
      ...(timeoutPolicy && { timeoutPolicy }),
      ...(escalationPolicy && { escalationPolicy }),
    },
    ...(conflicts && { conflictPolicy: applyConflictPolicy(retried.conflictPolicy, conflicts) }),
    ...(gates && { steps: applyGatePolicy({ ...change, plan: retried }, gates, operators.gates) }),
  };
}

/**
 * Throws where the policy has a rule that no plan can state, or asks for gates while the configuration has them
 * switched off.
 */
function assertPlanCanSay(
  { gates = {}, escalateMs, requireDifferentApprover, budget }: ReplayPolicy,
  operators: OperatorRules,
): void {
  if (budget)
    throw new CoordinationError(
      "INPUT_INVALID",
      "policy: budget: it bounds coordinations that spawns open, and a plan states its own; fork without it",
    );
  // A rule that holds anyway needs nobody to say it.
  const hasOtherWish = (wished: unknown, recordedValue: unknown): boolean =>
    wished !== undefined && !isSameValue(wished, recordedValue);
  const unsayable = [
    ...GATES.filter((key) => !STEP_GATE_KEYS.has(key) && hasOtherWish(gates[key], operators.gates[key])).map(
      (key) => `gates.${key}`,
    ),
    ...(hasOtherWish(escalateMs, operators.escalateMs) ? ["escalateMs"] : []),
    ...(hasOtherWish(requireDifferentApprover, operators.requireDifferentApprover)
      ? ["escalations.requireDifferentApprover"]
      : []),
  ];
  if (unsayable.length > 0) throw createUnsayableError(unsayable.join(", "), "no plan can say that");
  const asksForSome = Object.keys(gates).some((key) => key !== "enabled");
  if (!operators.gates.enabled && asksForSome)
    throw createUnsayableError(
      "gates",
      "the configuration has them switched off, and a plan cannot switch them on",
    );
}

function createUnsayableError(path: string, why: string): CoordinationError {
  return new CoordinationError(
    "INPUT_INVALID",
    `policy: ${path}: ${why}; change the configuration and fork without it, or see what would have been decided with \`replay --policy\``,
  );
}

/**
 * Returns the plan with the retries of the policy. A step's own retries stay, unless `retry` speaks of every step;
 * with such rules, steps that do not run anew or are sent once get none.
 */
function applyRetryPolicy(
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

/**
 * Merges the conflict rules of the plan and of the policy. The policy's rules come where an operator's would: what is
 * high-risk for either is, and no plan loosens `manual_review`.
 */
function applyConflictPolicy(plans: ArbiterPolicy, policys: ArbiterPolicy): ArbiterPolicy {
  const isManual = policys.strategy === "manual_review";
  const rules = isManual ? {} : plans;
  const strategy = rules.strategy ?? policys.strategy;
  return {
    ...(strategy && { strategy }),
    overrides: concatLists(policys.overrides, rules.overrides),
    highRisk: [...new Set(concatLists(plans.highRisk, policys.highRisk))],
  };
}

function concatLists<T>(some: readonly T[] = [], others: readonly T[] = []): T[] {
  return [...some, ...others];
}

/** The demands on every step of one agent. */
interface AgentDemands extends GateWishes {
  readonly stated: StepChecks;
  /** Characters. */
  readonly size: number;
}

/**
 * Returns the plan's steps; those that run anew have the checks and the confidence that the policy demands of their
 * agents. Throws where the plan cannot say that, or would be too large.
 */
function applyGatePolicy(
  { plan, anew }: PlanToChange,
  gates: PolicyGates,
  operators: GatesConfig,
): CoordinationPlan["steps"] {
  const checks = listPolicyChecks(gates, operators);
  const byAgent = new Map<string, AgentDemands>();
  let size = 0;
  return plan.steps.map((step) => {
    if (!anew.has(step.stepId)) return step;
    const demand = byAgent.get(step.agent) ?? buildAgentDemands(step.agent, { gates, operators, checks });
    byAgent.set(step.agent, demand);
    size += demand.size;
    if (size > PLAN_BOUNDS.charsMax)
      throw createUnsayableError(
        "gates.verifiers",
        "with these checks at every step the plan is larger than a plan may be",
      );
    return addAgentDemands(step, demand, gates);
  });
}

/** The gates of the policy and of the operator, and the checks that steps may be asked for. */
interface GateDemands {
  readonly gates: PolicyGates;
  readonly operators: GatesConfig;
  readonly checks: StepChecks;
}

function buildAgentDemands(
  agent: CoordinationStep["agent"],
  { gates, operators, checks }: GateDemands,
): AgentDemands {
  const wished = readAgentGateWishes(gates, agent);
  assertDemandsNoLess(agent, wished, readAgentGateWishes(operators, agent));
  const stated = Object.fromEntries(
    (wished.checks ?? []).flatMap((key) => (Object.hasOwn(checks, key) ? [[key, checks[key]]] : [])),
  ) as StepChecks;
  return { ...wished, stated, size: JSON.stringify(stated).length };
}

/** Returns the step with the policy's demands on its agent added to its own. */
function addAgentDemands(step: CoordinationStep, demand: AgentDemands, gates: PolicyGates): CoordinationStep {
  const { verify = {} } = step;
  const checks = { ...verify.checks, ...listStatedChecks(step, demand) };
  const revisionsMax = verify.revisionsMax ?? gates.revisionsMax;
  const verifyUnderPolicy: StepVerify = {
    ...verify,
    ...applyConfidencePolicy(verify, demand),
    ...(Object.keys(checks).length > 0 && { checks }),
    ...(revisionsMax !== undefined && { revisionsMax }),
  };
  return Object.keys(verifyUnderPolicy).length > 0 ? { ...step, verify: verifyUnderPolicy } : step;
}

/**
 * Returns the checks that the policy states for the step's agent. Throws where the step states another under one key.
 */
function listStatedChecks({ stepId, verify = {} }: CoordinationStep, { stated }: AgentDemands): StepChecks {
  const ownChecks = Object.entries(verify.checks ?? {});
  const other = ownChecks.find(
    ([key, check]) => Object.hasOwn(stated, key) && !isSameValue(check, stated[key]),
  );
  if (other)
    throw createUnsayableError(
      `gates.verifiers.${other[0]}`,
      `step ${stepId} states another check under this key`,
    );
  return stated;
}

function applyConfidencePolicy(
  verify: StepVerify,
  { threshold, isDemanded }: GateWishes,
): Pick<StepVerify, "confidenceThreshold" | "requireConfidence"> {
  return {
    ...(threshold !== undefined && {
      confidenceThreshold: Math.max(threshold, verify.confidenceThreshold ?? 0),
    }),
    ...(isDemanded && { requireConfidence: true }),
  };
}

interface GateWishes {
  readonly threshold: number | undefined;
  readonly isDemanded: boolean | undefined;
  readonly checks: readonly string[] | undefined;
}

/** Returns what the policy says of the results of an agent, or of all agents. */
function readAgentGateWishes(gates: PolicyGates, agent: CoordinationStep["agent"]): GateWishes {
  const { confidenceThreshold, requireConfidence, checks } = findAgentGate(gates, agent);
  return {
    threshold: confidenceThreshold ?? gates.confidenceThreshold,
    isDemanded: requireConfidence ?? gates.requireConfidence,
    checks,
  };
}

/**
 * Throws where the policy demands less of an agent than the configuration. A fork that is held to more than its policy
 * says would tell another story than the policy's.
 */
function assertDemandsNoLess(
  agent: CoordinationStep["agent"],
  { threshold, isDemanded, checks }: GateWishes,
  operators: GateWishes,
): void {
  const demanded = operators.threshold ?? 0;
  if (threshold !== undefined && threshold < demanded)
    throw createUnsayableError(
      "gates.confidenceThreshold",
      `the configuration demands ${demanded} of agent ${agent}, and a fork asks for no less`,
    );
  if (isDemanded === false && operators.isDemanded)
    throw createUnsayableError(
      "gates.requireConfidence",
      `the configuration demands a confidence of agent ${agent}, and a fork asks for no less`,
    );
  const missingCheck = checks && operators.checks?.find((key) => !checks.includes(key));
  if (missingCheck !== undefined)
    throw createUnsayableError(
      "gates.agents",
      `the configuration has ${missingCheck} check what agent ${agent} comes to, and a fork asks for no less`,
    );
}

/**
 * Returns the policy's checks by key: `true` for one of the operator's, and its definition for any other. Throws where
 * a plan cannot state one, or no agent is to use it.
 */
function listPolicyChecks({ verifiers = {}, agents = {} }: PolicyGates, operators: GatesConfig): StepChecks {
  const named = new Set(Object.values(agents).flatMap(({ checks = [] }) => checks));
  return Object.fromEntries(
    Object.entries(verifiers).map(([key, check]): [string, StepChecks[string]] => {
      const path = `gates.verifiers.${key}`;
      const operatorCheck = Object.hasOwn(operators.verifiers, key) ? operators.verifiers[key] : undefined;
      if (operatorCheck && !isSameValue(operatorCheck, check))
        throw createUnsayableError(path, "the configuration defines another check under this key");
      if (operatorCheck) return [key, true];
      if (!named.has(key)) throw createUnsayableError(path, "gates.agents names it for no agent");
      const stated = statedCheckSchema.safeParse(check);
      if (stated.success) return [key, stated.data];
      throw createUnsayableError(path, "only the configuration can have a program check results");
    }),
  );
}
