/**
 * Owns: what a policy puts in place of what held for a coordination and its steps then.
 *
 * Demands of an operator and of a plan lie in one record. A plan asks for more, never for less: what its text says, as far as
 * it is kept, stays.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import type { HeldDecision, StepAdmitted } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { gatesSchema, type GatesConfig } from "../contracts/config/gates-config.ts";
import { DELIVERY_STEP_ID } from "../contracts/ids.ts";
import type { CoordinationPlan, CoordinationStep, FailurePolicy } from "../contracts/plan.ts";
import type { ReplayPolicy } from "../contracts/config/replay-policy.ts";
import type { TreeBudget } from "../contracts/usage.ts";
import type { Gate, StepVerify } from "../contracts/verification.ts";
import { findAgentGate, type AgentGate } from "../gates/agent-gate.ts";
import { convertToBasisPointsUp, convertToBasisPointsDown } from "../gates/stated-confidence.ts";
import { isEnded, type Coordination, type OpenCoordination, type Step } from "../ledger/state.ts";

/** A policy, with the plan as it was submitted where its text is kept. */
export interface AppliedPolicy {
  readonly policy: ReplayPolicy;
  readonly plan?: CoordinationPlan;
}

/** The payload of the fact that opened the coordination. */
type CreatedPayload = FactPayloads["coordination.created"];

/**
 * Returns what a coordination was opened with, as it would be under the policy: its budget, failure policy, questions
 * and plan.
 */
export function applyPolicyToCreation(created: CreatedPayload, under: AppliedPolicy): CreatedPayload {
  const { policy } = under;
  const { questions, plan, budget: _, ...others } = created;
  const budget = chooseTreeBudget(created, policy);
  return {
    ...others,
    ...(budget && { budget }),
    failurePolicy: applyFailurePolicy(created.failurePolicy, policy),
    ...(questions && { questions: applyQuestionPolicy(questions, policy) }),
    ...(plan && { plan: applyPolicyToPlan(plan, under) }),
  };
}

function applyQuestionPolicy(
  { requireDifferentApprover: recorded, ...questions }: NonNullable<CreatedPayload["questions"]>,
  { escalateMs, requireDifferentApprover }: ReplayPolicy,
): NonNullable<CreatedPayload["questions"]> {
  const isDifferent = requireDifferentApprover ?? recorded;
  return {
    ...questions,
    ...(escalateMs !== undefined && { answerMs: escalateMs }),
    ...(isDifferent && { requireDifferentApprover: true as const }),
  };
}

/**
 * Returns the budget of a coordination under the policy. A plan keeps its own; an empty budget of the policy removes
 * it; else the policy's limits replace the recorded ones of the same name.
 */
function chooseTreeBudget(
  { plan, budget: recorded }: CreatedPayload,
  { budget }: ReplayPolicy,
): CreatedPayload["budget"] {
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

function applyPolicyToPlan(
  { decision: recorded, ...plan }: NonNullable<CreatedPayload["plan"]>,
  under: AppliedPolicy,
) {
  const { escalateMs } = under.policy;
  const decision = applyDecisionPolicy(recorded, under.plan?.confidence, under.policy);
  return {
    ...plan,
    ...(escalateMs !== undefined && { escalateMs }),
    ...(decision && { decision }),
  };
}

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
 * Returns what a step was admitted with, as it would be under the policy. A result that a fork carries from its source
 * is neither held nor doubted nor tried again.
 */
export function applyPolicyToStep(
  spec: StepAdmitted,
  created: CreatedPayload,
  under: AppliedPolicy,
): StepAdmitted {
  if (spec.carried) return spec;
  const { gate: _, decision: recordedDecision, ...specFields } = spec;
  const step = under.plan?.steps.find(({ stepId }) => stepId === spec.stepId);
  const gate = applyGatePolicyToStep(spec, under.policy, step?.verify);
  const decision = spec.planned
    ? applyDecisionPolicy(recordedDecision, step?.confidence, under.policy)
    : recordedDecision;
  return {
    ...specFields,
    ...applyRetryPolicyToStep(spec, created, { under, step }),
    ...(gate && { gate }),
    ...(decision && { decision }),
  };
}

interface OfStep {
  readonly under: AppliedPolicy;
  readonly step: CoordinationStep | undefined;
}

/** A step of a plan that says nothing of retries has those of the plan. One that is sent once has none. */
function applyRetryPolicyToStep(
  { stepId, planned, retryBudget, deliveryMode }: StepAdmitted,
  { failurePolicy }: CreatedPayload,
  { under, step }: OfStep,
): Partial<Pick<StepAdmitted, "retryBudget" | "planned">> {
  if (!planned || stepId === DELIVERY_STEP_ID || deliveryMode === "best_effort") return {};
  const { retry = {}, failurePolicy: other = {} } = under.policy;
  const isPlans = hasRetryBudgetOfPlan(retryBudget, failurePolicy.retryBudget, { under, step });
  const ofPlan = isPlans ? other.retryBudget : undefined;
  return {
    retryBudget: retry.budget ?? ofPlan ?? retryBudget,
    planned: { ...planned, backoffMs: retry.backoffMs ?? planned.backoffMs },
  };
}

/**
 * True when neither a step nor the plan's defaults say how often it is tried again; without the text of the plan, when
 * the step has as many retries as the plan.
 */
function hasRetryBudgetOfPlan(ofStep: number, ofPlan: number, { under, step }: OfStep): boolean {
  return under.plan ? readOwnRetryBudget(under.plan, step) === undefined : ofStep === ofPlan;
}

function readOwnRetryBudget(
  { defaults }: CoordinationPlan,
  step: CoordinationStep | undefined,
): number | undefined {
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
  return applyGatePolicy(createDefaultGate(verify), {
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
    threshold: chooseThreshold(otherwise, ofAgent.confidenceThreshold ?? gates.confidenceThreshold, verify),
    ...(otherwise.holdMismatch && { holdMismatch: true }),
    ...applyConfidenceDemand(otherwise, ofAgent.requireConfidence ?? gates.requireConfidence, verify),
    ...(checks.length > 0 && { checks, ...applyCheckPolicy(otherwise, gates, verify) }),
  };
}

function chooseThreshold({ threshold }: Gate, wished: number | undefined, verify: StepVerify): number {
  if (wished === undefined) return threshold;
  return convertToBasisPointsUp(Math.max(wished, verify.confidenceThreshold ?? 0));
}

function applyConfidenceDemand(
  { requireConfidence }: Gate,
  wished: boolean | undefined,
  verify: StepVerify,
): Pick<Gate, "requireConfidence"> {
  const isDemanded = wished === undefined ? requireConfidence : wished || verify.requireConfidence;
  return isDemanded ? { requireConfidence: true } : {};
}

const DEFAULTS = gatesSchema.parse({});

/** Creates the gate of a step under the defaults, with what a plan asks for it. */
function createDefaultGate({
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

/**
 * True when the coordination runs a plan whose text is not kept any more, so that what the plan itself asks for is
 * unknown.
 */
export function isTextOfPlanDeleted(state: Coordination, { plan }: AppliedPolicy): boolean {
  return state.kind !== "unopened" && state.created.plan !== undefined && plan === undefined;
}

/**
 * Returns the state of a coordination under way as it goes on under the policy. Steps that have ended stay as they
 * are, and so do doubts.
 */
export function applyPolicyToState(state: OpenCoordination, under: AppliedPolicy): OpenCoordination {
  const { plan, ...created } = applyPolicyToCreation(state.created, under);
  return {
    ...state,
    created: { ...created, ...(plan && { plan: keepRecordedDoubt(plan, state.created.plan?.decision) }) },
    steps: state.steps.map((step) =>
      isEnded(step.phase)
        ? step
        : applyPolicyToOpenStep(step, applyPolicyToStep(step.spec, state.created, under)),
    ),
  };
}

function keepRecordedDoubt(
  { decision: _, ...plan }: NonNullable<CreatedPayload["plan"]>,
  decision: HeldDecision | undefined,
): NonNullable<CreatedPayload["plan"]> {
  return { ...plan, ...pickDecision(decision) };
}

function pickDecision(decision: HeldDecision | undefined): { decision?: HeldDecision } {
  return decision ? { decision } : {};
}

/**
 * Returns an open step under the policy, with its recorded doubt. Attempts beyond the retry budget that have begun, or
 * are due, count as granted: they were within the budget of then (D4).
 */
function applyPolicyToOpenStep(step: Step, { decision: _, ...changed }: StepAdmitted): Step {
  const { phase, revisions = 0, granted = 0 } = step;
  const spec = { ...changed, ...pickDecision(step.spec.decision) };
  if (!spec.planned) return { ...step, spec };
  const isDue = phase.status === "backoff" && !phase.revision;
  const beyond = phase.attempt + (isDue ? 1 : 0) - revisions - 1 - spec.retryBudget;
  return beyond > granted ? { ...step, spec, granted: beyond } : { ...step, spec };
}
