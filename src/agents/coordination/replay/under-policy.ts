/**
 * Owns: what a policy puts in place of what held for a coordination and its steps then.
 *
 * Demands of an operator and of a plan lie in one record. A plan asks for more, never for less: what its text says, as far as
 * it is kept, stays.
 */
import { chooseStrategy } from "../arbitration/strategy-for.ts";
import type { AppliedStrategy } from "../contracts/arbitration.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import type { HeldDecision, StepAdmitted } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { gatesSchema, type GatesConfig } from "../contracts/config/gates-config.ts";
import { DELIVERY_STEP_ID } from "../contracts/ids.ts";
import { isBelowHome, isFile, kindOf } from "../contracts/resource-names.ts";
import type {
  ArbiterPolicy,
  ConflictStrategy,
  CoordinationPlan,
  CoordinationStep,
  FailurePolicy,
} from "../contracts/plan.ts";
import type { ReplayPolicy } from "../contracts/config/replay-policy.ts";
import type { TreeBudget } from "../contracts/usage.ts";
import type { Gate, StepVerify } from "../contracts/verification.ts";
import { findAgentGate, type AgentGate } from "../gates/agent-gate.ts";
import { convertToBasisPointsUp, convertToBasisPointsDown } from "../gates/stated-confidence.ts";
import { isEnded, type Coordination, type OpenCoordination, type Step } from "../ledger/state.ts";

/** A policy, with the plan as it was submitted where its text is kept. */
export interface Under {
  readonly policy: ReplayPolicy;
  readonly plan?: CoordinationPlan;
}

type Created = FactPayloads["coordination.created"];

export function applyPolicyToCreation(created: Created, under: Under): Created {
  const { policy } = under;
  const { questions, plan, budget: _, ...others } = created;
  const budget = chooseBudget(created, policy);
  return {
    ...others,
    ...(budget && { budget }),
    failurePolicy: applyFailurePolicy(created.failurePolicy, policy),
    ...(questions && { questions: applyQuestionPolicy(questions, policy) }),
    ...(plan && { plan: planUnder(plan, under) }),
  };
}

function applyQuestionPolicy(
  { requireDifferentApprover: recorded, ...questions }: NonNullable<Created["questions"]>,
  { escalateMs, requireDifferentApprover }: ReplayPolicy,
): NonNullable<Created["questions"]> {
  const isDifferent = requireDifferentApprover ?? recorded;
  return {
    ...questions,
    ...(escalateMs !== undefined && { answerMs: escalateMs }),
    ...(isDifferent && { requireDifferentApprover: true as const }),
  };
}

/** A plan states its own budget. An empty one of the policy is none; else the recorded limits stay that it does not name. */
function chooseBudget({ plan, budget: recorded }: Created, { budget }: ReplayPolicy): Created["budget"] {
  if (plan || !budget) return recorded;
  if (Object.keys(budget).length === 0) return undefined;
  const { agents: named } = budget;
  return { ...recorded, ...budget, ...(named && { agents: mergeAgentLimits(named, recorded?.agents) }) };
}

type AgentLimits = NonNullable<TreeBudget["agents"]>;

function mergeAgentLimits(named: AgentLimits, recorded: AgentLimits = {}): AgentLimits {
  const merged = Object.entries(named).map(
    ([id, limits]) => [id, { ...recorded[id as keyof AgentLimits], ...limits }] as const,
  );
  return { ...recorded, ...Object.fromEntries(merged) };
}

function applyFailurePolicy(recorded: FailurePolicy, { failurePolicy = {} }: ReplayPolicy): FailurePolicy {
  const { retryBudget, timeoutPolicy, escalationPolicy } = failurePolicy;
  return {
    retryBudget: retryBudget ?? recorded.retryBudget,
    timeoutPolicy: timeoutPolicy ?? recorded.timeoutPolicy,
    escalationPolicy: escalationPolicy ?? recorded.escalationPolicy,
  };
}

function planUnder({ decision: recorded, ...plan }: NonNullable<Created["plan"]>, under: Under) {
  const { escalateMs } = under.policy;
  const decision = applyDecisionPolicy(recorded, under.plan?.confidence, under.policy);
  return {
    ...plan,
    ...(escalateMs !== undefined && { escalateMs }),
    ...(decision && { decision }),
  };
}

/** G2: what its planner doubts, by the floor of the policy. */
function applyDecisionPolicy(
  recorded: HeldDecision | undefined,
  stated: number | undefined,
  { gates = {} }: ReplayPolicy,
): HeldDecision | undefined {
  if (gates.enabled === false) return undefined;
  if (gates.decisionFloor === undefined) return recorded;
  const floor = convertToBasisPointsUp(gates.decisionFloor);
  // A doubt of plugins is recorded, and is less than the planner's confidence.
  const confidence =
    recorded?.confidence ?? (stated === undefined ? undefined : convertToBasisPointsDown(stated));
  return confidence !== undefined && confidence < floor ? { confidence, floor } : undefined;
}

/**
 * Applies the policy to a step. A result that a fork carries from its source is neither held nor doubted nor tried
 * again.
 */
export function applyPolicyToStep(spec: StepAdmitted, created: Created, under: Under): StepAdmitted {
  if (spec.carried) return spec;
  const { gate: _, decision: recordedDecision, ...rest } = spec;
  const step = under.plan?.steps.find(({ stepId }) => stepId === spec.stepId);
  const gate = applyGatePolicyToStep(spec, under.policy, step?.verify);
  const decision = spec.planned
    ? applyDecisionPolicy(recordedDecision, step?.confidence, under.policy)
    : recordedDecision;
  return {
    ...rest,
    ...applyRetryPolicyToStep(spec, created, { under, step }),
    ...(gate && { gate }),
    ...(decision && { decision }),
  };
}

interface OfStep {
  readonly under: Under;
  readonly step: CoordinationStep | undefined;
}

/** A step of a plan that says nothing of retries has those of the plan. One that is sent once has none. */
function applyRetryPolicyToStep(
  { stepId, planned, retryBudget, deliveryMode }: StepAdmitted,
  { failurePolicy }: Created,
  { under, step }: OfStep,
): Partial<Pick<StepAdmitted, "retryBudget" | "planned">> {
  if (!planned || stepId === DELIVERY_STEP_ID || deliveryMode === "best_effort") return {};
  const { retry = {}, failurePolicy: other = {} } = under.policy;
  const isPlans = hasBudgetOfPlan(retryBudget, failurePolicy.retryBudget, { under, step });
  const ofPlan = isPlans ? other.retryBudget : undefined;
  return {
    retryBudget: retry.budget ?? ofPlan ?? retryBudget,
    planned: { ...planned, backoffMs: retry.backoffMs ?? planned.backoffMs },
  };
}

/** Without the plan, a step with as many retries as the plan counts as one that says nothing of them. */
function hasBudgetOfPlan(ofStep: number, ofPlan: number, { under, step }: OfStep): boolean {
  return under.plan ? ownBudget(under.plan, step) === undefined : ofStep === ofPlan;
}

function ownBudget({ defaults }: CoordinationPlan, step: CoordinationStep | undefined): number | undefined {
  return step?.retry?.budget ?? defaults?.retry?.budget;
}

function applyGatePolicyToStep(
  { gate, agentId, runner }: StepAdmitted,
  { gates: named, configured }: ReplayPolicy,
  verify: StepVerify = {},
): Gate | undefined {
  if (!named || runner === "owner") return gate;
  if (named.enabled === false) return undefined;
  // Where nothing held its results, settings that the policy does not name are as in the configuration, or as in any.
  if (gate) return applyGatePolicy(gate, { gates: named, agentId, verify });
  return applyGatePolicy(createOpenGate(verify), {
    gates: { ...configured?.gates, ...named },
    agentId,
    verify,
  });
}

interface GateSettings {
  readonly gates: Partial<GatesConfig>;
  readonly agentId: StepAdmitted["agentId"];
  readonly verify: StepVerify;
}

/** Returns the gate with the settings that are named in place of its own, and with what the plan demands. */
function applyGatePolicy(otherwise: Gate, { gates, agentId, verify }: GateSettings): Gate {
  const ofAgent = findAgentGate(gates, agentId);
  const checks = listChecksUnderPolicy(otherwise, gates, { ofAgent, verify });
  return {
    threshold: raiseThreshold(otherwise, ofAgent.confidenceThreshold ?? gates.confidenceThreshold, verify),
    ...(otherwise.holdMismatch && { holdMismatch: true }),
    ...demandUnder(otherwise, ofAgent.requireConfidence ?? gates.requireConfidence, verify),
    ...(checks.length > 0 && { checks, ...applyCheckPolicy(otherwise, gates, verify) }),
  };
}

function raiseThreshold({ threshold }: Gate, wished: number | undefined, verify: StepVerify): number {
  if (wished === undefined) return threshold;
  return convertToBasisPointsUp(Math.max(wished, verify.confidenceThreshold ?? 0));
}

function demandUnder(
  { requireConfidence }: Gate,
  wished: boolean | undefined,
  verify: StepVerify,
): Pick<Gate, "requireConfidence"> {
  const isDemanded = wished === undefined ? requireConfidence : wished || verify.requireConfidence;
  return isDemanded ? { requireConfidence: true } : {};
}

const DEFAULTS = gatesSchema.parse({});

/** Creates the gate of a step under the defaults, with what a plan asks for it. */
function createOpenGate({
  confidenceThreshold = 0,
  requireConfidence,
  checks,
  revisionsMax,
}: StepVerify): Gate {
  return {
    threshold: convertToBasisPointsUp(Math.max(DEFAULTS.confidenceThreshold, confidenceThreshold)),
    ...(requireConfidence && { requireConfidence: true }),
    ...(checks && { checks: Object.keys(checks) }),
    ...(revisionsMax !== undefined && { revisionsMax }),
  };
}

/** Where the policy names agents, the checks of this one take the place of all others but those of the plan and of plugins. */
function listChecksUnderPolicy(
  { checks = [] }: Gate,
  { agents }: Partial<GatesConfig>,
  { ofAgent: { checks: named = [] }, verify }: { readonly ofAgent: AgentGate; readonly verify: StepVerify },
): string[] {
  if (!agents) return checks;
  const planned = new Set(Object.keys(verify.checks ?? {}));
  const kept = checks.filter((key) => planned.has(key) || key.startsWith("plugin:"));
  return [...new Set([...named, ...kept])].slice(0, BOUNDS.checksPerResultMax);
}

function applyCheckPolicy(gate: Gate, gates: Partial<GatesConfig>, verify: StepVerify): Partial<Gate> {
  const { criticThreshold, revisionsMax, verifyMs, allowSelfVerification } = gates;
  const allowSelf = allowSelfVerification ?? gate.allowSelf;
  const wished = verify.revisionsMax ?? revisionsMax ?? gate.revisionsMax;
  return {
    criticThreshold:
      criticThreshold === undefined
        ? (gate.criticThreshold ?? convertToBasisPointsUp(DEFAULTS.criticThreshold))
        : convertToBasisPointsUp(criticThreshold),
    revisionsMax: Math.min(wished ?? DEFAULTS.revisionsMax, BOUNDS.revisionsMax),
    verifyMs: verifyMs ?? gate.verifyMs ?? DEFAULTS.verifyMs,
    ...(allowSelf && { allowSelf: true }),
  };
}

/** Returns the strategy for a contested resource. Where the policy says nothing of it, it stays. */
export function chooseStrategyUnderPolicy(
  resource: string,
  applied: AppliedStrategy,
  { policy: { conflicts, configured }, plan }: Under,
): AppliedStrategy {
  if (!conflicts || isOfUnrecordedName(resource, applied)) return applied;
  const strategy = conflicts.strategy ?? configured?.strategy ?? "owner_wins";
  const ruled = chooseStrategy(resource, {
    operator: { ...conflicts, strategy },
    ...(plan && { plan: plan.conflictPolicy }),
  });
  return isDecidedByNewRule(applied, ruled, { conflicts, plan, strategy }) ? ruled : applied;
}

interface NewRules {
  readonly conflicts: ArbiterPolicy;
  readonly plan: Under["plan"];
  readonly strategy: ConflictStrategy;
}

/** True where the policy's rules decide about a resource in place of the rule that was applied then. */
function isDecidedByNewRule(
  applied: AppliedStrategy,
  ruled: AppliedStrategy,
  { conflicts, plan, strategy }: NewRules,
): boolean {
  if (isOfKeptList(applied, ruled, conflicts)) return false;
  if (isNamedByPattern(ruled) || isNamedByPattern(applied)) return true;
  // Where a plan's text is not kept, the applied strategy tells its rule.
  const isPlans = !plan && isRuleOfPlan(applied, strategy);
  return conflicts.strategy !== undefined && !isPlans;
}

function isRuleOfPlan({ from }: AppliedStrategy, strategy: ConflictStrategy): boolean {
  return from === "plan" && strategy !== "manual_review";
}

/**
 * True where a pattern decided about a file then, and none does under the policy, although one begins with `~`: the log does not
 * say which folder that is.
 */
export function isOfUnknownHome(
  resource: string,
  { recorded, ruled }: { readonly recorded: AppliedStrategy; readonly ruled: AppliedStrategy },
  { policy: { conflicts = {} }, plan }: Under,
): boolean {
  if (!isFile(resource) || ruled.from === "high_risk") return false;
  const ofPlan = plan?.conflictPolicy ?? {};
  if (recorded.from === "high_risk")
    return [...(conflicts.highRisk ?? []), ...(ofPlan.highRisk ?? [])].some(isBelowHome);
  return listOverridesOf(recorded, conflicts, ofPlan).some(({ resource: pattern }) => isBelowHome(pattern));
}

/** Lists the exceptions of those whose exception, or strategy, decided then. */
function listOverridesOf({ from }: AppliedStrategy, operator: ArbiterPolicy, plan: ArbiterPolicy) {
  if (from === "operator") return operator.overrides ?? [];
  return from === "plan" ? (plan.overrides ?? []) : [];
}

/** True where a list decided then that the policy has none in place of. */
function isOfKeptList(
  { from }: AppliedStrategy,
  ruled: AppliedStrategy,
  { highRisk, overrides }: ArbiterPolicy,
): boolean {
  if (from === "high_risk") return highRisk === undefined;
  return from === "operator" && overrides === undefined && ruled.from !== "high_risk";
}

/** For what hard links share it was chosen by a name that the call gave the file, which the conflict does not have. */
function isOfUnrecordedName(resource: string, applied: AppliedStrategy): boolean {
  return kindOf(resource) === "hardlink" && isNamedByPattern(applied);
}

function isNamedByPattern({ from }: AppliedStrategy): boolean {
  return from === "high_risk" || from === "operator";
}

/**
 * True where a list decided then that the policy takes away, and what decides now depends on the operator's strategy of then for all
 * other resources. Only a conflict that this strategy ruled on records it.
 */
export function isOfUnrecordedDefault(
  recorded: AppliedStrategy,
  ruled: AppliedStrategy,
  { policy: { conflicts, configured } }: Under,
): boolean {
  const isTakenAway = isNamedByPattern(recorded) && !isNamedByPattern(ruled);
  return isTakenAway && (conflicts?.strategy ?? configured?.strategy) === undefined;
}

/** True where a list decided then that the policy takes away, and a plan whose text is not kept may have a rule that counts now. */
export function isOfDeletedPlan(
  recorded: AppliedStrategy,
  ruled: AppliedStrategy,
  { state, under }: { readonly state: OpenCoordination; readonly under: Under },
): boolean {
  if (ruled.from === "high_risk" || !isTextOfPlanDeleted(state, under)) return false;
  // Patterns of the plan for what is high-risk count before the operator's exceptions.
  return recorded.from === "high_risk" || (recorded.from === "operator" && ruled.from !== "operator");
}

/** True where the coordination is a plan whose text, with what it asks for itself, is not kept any more. */
export function isTextOfPlanDeleted(state: Coordination, { plan }: Under): boolean {
  return state.kind !== "unopened" && state.created.plan !== undefined && plan === undefined;
}

/** A coordination under way, as it goes on under the policy. Steps that have ended stay as they are, and so do doubts. */
export function stateUnder(state: OpenCoordination, under: Under): OpenCoordination {
  const { plan, ...created } = applyPolicyToCreation(state.created, under);
  return {
    ...state,
    created: { ...created, ...(plan && { plan: keepRecordedDoubt(plan, state.created.plan?.decision) }) },
    steps: state.steps.map((step) =>
      isEnded(step.phase) ? step : stepUnder(step, applyPolicyToStep(step.spec, state.created, under)),
    ),
  };
}

function keepRecordedDoubt(
  { decision: _, ...plan }: NonNullable<Created["plan"]>,
  decision: HeldDecision | undefined,
): NonNullable<Created["plan"]> {
  return { ...plan, ...withDecision(decision) };
}

function withDecision(decision: HeldDecision | undefined): { decision?: HeldDecision } {
  return decision ? { decision } : {};
}

/** D4: an attempt that has begun, or is due, was within the budget that held then. */
function stepUnder(step: Step, { decision: _, ...changed }: StepAdmitted): Step {
  const { phase, revisions = 0, granted = 0 } = step;
  const spec = { ...changed, ...withDecision(step.spec.decision) };
  if (!spec.planned) return { ...step, spec };
  const isDue = phase.status === "backoff" && !phase.revision;
  const beyond = phase.attempt + (isDue ? 1 : 0) - revisions - 1 - spec.retryBudget;
  return beyond > granted ? { ...step, spec, granted: beyond } : { ...step, spec };
}
