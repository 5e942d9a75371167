/** Owns: a recorded command as it would be given under a policy, and whether enough is known to decide it. */
import type {
  AdmitPlanSteps,
  AdmitSpawn,
  Command,
  CompleteStep,
  RecordFinding,
  RecordNoVerdict,
} from "../contracts/commands.ts";
import type { EventId, StepId } from "../contracts/ids.ts";
import type { FactDraft, FactEvent } from "../contracts/run-event.ts";
import type { Gate } from "../contracts/verification.ts";
import type { Coordination, OpenCoordination, Step } from "../ledger/state.ts";
import { describeDecisions } from "./decision-text.ts";
import {
  applyPolicyToCreation,
  applyPolicyToStep,
  isTextOfPlanDeleted,
  type AppliedPolicy,
} from "./under-policy.ts";

export type EvidenceCheck =
  | { readonly kind: "known" }
  /** Its stated confidence was enough then, and is enough now. */
  | { readonly kind: "enough" }
  | { readonly kind: "unknown"; readonly would: string; readonly why: string };

const ALL_KNOWN: EvidenceCheck = { kind: "known" };

interface ReplayedCommand {
  readonly before: Coordination;
  /** Under the policy. */
  readonly after: Coordination;
  readonly command: Command;
  readonly facts: readonly FactEvent[];
}

/**
 * Returns whether enough is recorded of a completed result's confidence to decide on it under the policy. For results
 * that were not held it is known only that it was enough.
 */
export function checkConfidenceEvidence({ before, after, command, facts }: ReplayedCommand): EvidenceCheck {
  if (command.type !== "completeStep" || facts[0]?.type === "result.held") return ALL_KNOWN;
  const recorded = findStepIfOpen(before, command.stepId);
  const gate = findStepIfOpen(after, command.stepId)?.spec.gate;
  if (!recorded || !gate || isConfidenceRecorded(recorded, command)) return ALL_KNOWN;
  return checkThresholdEvidence(gate, recorded.spec.gate ?? { threshold: 0 });
}

/** Returns a step of a coordination that is open; `undefined` of any other. */
function findStepIfOpen(state: Coordination, stepId: StepId): Step | undefined {
  return state.kind === "open" ? state.steps.get(stepId) : undefined;
}

/** Returns whether a result that met the gate of then is known to meet this gate. */
function checkThresholdEvidence(gate: Gate, then: Gate): EvidenceCheck {
  const would = gate.checks?.length ? "it may be held after its checks, too" : "it may be held";
  if (gate.requireConfidence && !then.requireConfidence)
    return {
      kind: "unknown",
      would,
      why: "whether it stated a confidence is not recorded, and one is demanded",
    };
  if (gate.threshold <= then.threshold) return { kind: "enough" };
  const why = `the confidence that it stated is not recorded: none, or at least ${then.threshold / 10_000}`;
  return { kind: "unknown", would, why };
}

/** True when the log has the confidence of a result that was not held. Where one had to be stated, the command assumes it. */
function isConfidenceRecorded({ report, withheld }: Step, { stated, attempt }: CompleteStep): boolean {
  const isOfAttempt = (statement: typeof report | typeof withheld): boolean =>
    statement?.attempt === attempt && statement.confidence !== undefined;
  return isOfAttempt(report) || (stated === undefined && isOfAttempt(withheld));
}

interface DecidedAgain {
  readonly before: Coordination;
  /** Under the policy. */
  readonly after: Coordination;
  readonly recorded: readonly FactDraft[];
  readonly drafts: readonly FactDraft[];
  readonly under: AppliedPolicy;
  /** Decides the same on another state. */
  readonly decideOn: (state: Coordination) => readonly FactDraft[];
}

/** Facts drafted under the policy, and how sure they are. */
export interface WeighedDrafts {
  /** Decided under the policy. */
  readonly drafts: readonly FactDraft[];
  /** The facts that the other history goes on with. */
  readonly applied: readonly FactDraft[];
  readonly certainty: "differs" | "unknown";
  /** Words that follow the reason of a difference. */
  readonly because: string;
  /** The gate that the step keeps, because what else would hold its results is not known. */
  readonly keptGate?: { readonly stepId: StepId; readonly gate: Gate };
}

/**
 * Returns which facts the other history goes on with, and how sure it is of them: where a result may have passed a
 * gate for reasons that are not recorded, it goes on with the step's own gate kept.
 */
export function weighDrafts(stepId: StepId | undefined, decided: DecidedAgain): WeighedDrafts {
  const { after, drafts, decideOn } = decided;
  const unsure = stepId === undefined ? undefined : findUnsurePass(stepId, decided);
  if (!unsure) return { drafts, applied: drafts, certainty: "differs", because: "" };
  const { because, keptGate } = unsure;
  const applied = decideOn(withKeptGate(after, { keptGate }));
  if (describeDecisions(applied) === describeDecisions(drafts))
    return { drafts, applied: drafts, certainty: "differs", because: "" };
  return { drafts, applied, certainty: "unknown", because: `; ${because}`, keptGate };
}

/**
 * Returns the state with the recorded gate of a step in place of the policy's, where one is to be kept; otherwise
 * unchanged.
 */
export function withKeptGate(
  state: Coordination,
  { keptGate }: Pick<WeighedDrafts, "keptGate">,
): Coordination {
  if (!keptGate || state.kind !== "open") return state;
  const { stepId, gate } = keptGate;
  const step = state.steps.get(stepId);
  if (!step) return state;
  return { ...state, steps: state.steps.set(stepId, { ...step, spec: { ...step.spec, gate } }) };
}

interface UnsurePass {
  readonly because: string;
  readonly keptGate: NonNullable<WeighedDrafts["keptGate"]>;
}

/**
 * Returns why it is not known whether a result would still pass, or still be kept back, under the policy, and the gate
 * to go on with, which demands what the gate of then did; `undefined` where it is known. Where the policy names no
 * agents, the gate of then may be a rule of its agent. A stricter part of it may be of a plan whose text is not kept.
 */
function findUnsurePass(stepId: StepId, decided: DecidedAgain): UnsurePass | undefined {
  const { before, under } = decided;
  const { gate, planned } = findStepIfOpen(before, stepId)?.spec ?? {};
  const change = gate && findChangeByGate(stepId, gate, decided);
  if (!change) return undefined;
  const mayAskMore = change === "laxer" && planned !== undefined && isTextOfPlanDeleted(before, under);
  const because = explainUnsure({ hasAgents: under.policy.gates?.agents !== undefined, mayAskMore });
  if (!because) return undefined;
  const keptGate = { stepId, gate: withDemandsOf(gate, findStepIfOpen(decided.after, stepId)?.spec.gate) };
  return { because, keptGate };
}

/** Why it is not known how the policy would decide. */
interface UncertaintyCauses {
  /** The policy names agents: an agent that is not among them has no rules of its own. */
  readonly hasAgents: boolean;
  readonly mayAskMore: boolean;
}

function explainUnsure({ hasAgents, mayAskMore }: UncertaintyCauses): string | undefined {
  if (!hasAgents) return "whether its agent has rules of its own is not recorded";
  return mayAskMore ? "its plan may have asked for more, and its text is not kept any more" : undefined;
}

/** Returns the gate of the policy with what the gate of then demands of a result. The rest is not an agent's own, nor a plan's. */
function withDemandsOf(then: Gate, gate: Gate | undefined): Gate {
  const { threshold, requireConfidence, checks } = then;
  const { requireConfidence: _, checks: __, ...others } = { ...then, ...gate };
  return {
    ...others,
    threshold,
    ...(requireConfidence && { requireConfidence }),
    ...(checks && { checks }),
  };
}

/**
 * Returns in which way the policy's gate differs where it lets a result pass, or keeps it back, unlike then;
 * `undefined` where it does neither.
 */
function findChangeByGate(
  stepId: StepId,
  gateThen: Gate,
  { after, recorded, drafts }: DecidedAgain,
): "laxer" | "stricter" | undefined {
  const gate = findStepIfOpen(after, stepId)?.spec.gate;
  const isKeptBackThen = isResultKeptBack(recorded, stepId);
  if (!gate || drafts.length === 0 || isKeptBackThen === isResultKeptBack(drafts, stepId)) return undefined;
  if (isKeptBackThen) return isLaxerGate(gate, gateThen) ? "laxer" : undefined;
  return isLaxerGate(gateThen, gate) ? "stricter" : undefined;
}

/** True when the gate demands less than the other one in at least one way. */
function isLaxerGate(gate: Gate, other: Gate): boolean {
  return (
    gate.threshold < other.threshold ||
    (other.requireConfidence === true && !gate.requireConfidence) ||
    (other.checks ?? []).some((check) => !gate.checks?.includes(check))
  );
}

/** True when a result waits for its checks, for people because of its confidence, or fails in place of a question to them. */
function isResultKeptBack(drafts: readonly FactDraft[], stepId: StepId): boolean {
  return drafts.some(({ type, payload }) => {
    if (type === "coordination.escalated")
      return payload.stepId === stepId && payload.confidence?.of === "result";
    if (type === "result.held") return payload.stepId === stepId && payload.verifyByMs !== undefined;
    return type === "step.failed" && payload.stepId === stepId;
  });
}

interface RecordedDecision {
  readonly state: Coordination;
  readonly command: Command;
  readonly facts: readonly FactEvent[];
  readonly under: AppliedPolicy;
  readonly evidence: EvidenceCheck;
}

/**
 * Returns the recorded command as it would be given under the policy: it opens and admits by its rules, and its
 * verdict is about the result held in this history. A confidence not recorded counts as full.
 */
export function applyPolicyToCommand({ state, command, facts, under, evidence }: RecordedDecision): Command {
  switch (command.type) {
    case "openCoordination": {
      const { type, ...created } = command;
      return { type, ...applyPolicyToCreation(created, under) };
    }
    case "admitPlanSteps":
      return state.kind === "open" ? applyPolicyToPlanSteps(command, state, under) : command;
    case "admitSpawn":
      return state.kind === "open" ? applyPolicyToSpawn(command, state, { fact: facts[0], under }) : command;
    case "completeStep":
      return evidence.kind === "known" ? command : { ...command, stated: { confidence: 10_000 } };
    case "recordFinding":
    case "recordNoVerdict":
      return retargetVerdict(command, findStepIfOpen(state, command.stepId));
    default:
      return command;
  }
}

/** Returns the recorded command with its steps as they would be under the policy. */
function applyPolicyToPlanSteps(
  command: AdmitPlanSteps,
  { created }: OpenCoordination,
  under: AppliedPolicy,
): Command {
  const steps = command.steps.map((step) => {
    const spec = applyPolicyToStep(step, created, under);
    return { ...spec, planned: spec.planned ?? step.planned };
  });
  return { ...command, steps };
}

function applyPolicyToSpawn(
  command: AdmitSpawn,
  { created }: OpenCoordination,
  { fact, under }: { readonly fact: FactEvent | undefined; readonly under: AppliedPolicy },
): Command {
  if (fact?.type !== "step.admitted") return command;
  const { gate: _, ...rest } = command;
  const { gate } = applyPolicyToStep(fact.payload, created, under);
  return { ...rest, ...(gate && { gate }) };
}

/** Returns a verdict about the held result of this history, where its event has another id. A late verdict as it is. */
function retargetVerdict(command: RecordFinding | RecordNoVerdict, step: Step | undefined): Command {
  const isLate = command.target === ("" as EventId);
  return step?.phase.status === "held" && !isLate ? { ...command, target: step.phase.target } : command;
}
