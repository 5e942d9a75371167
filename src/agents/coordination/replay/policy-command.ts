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
import type { FactEvent } from "../contracts/run-event.ts";
import type { Gate } from "../contracts/verification.ts";
import type { Coordination, OpenCoordination, Step } from "../ledger/state.ts";
import { applyPolicyToCreation, applyPolicyToStep, type Under } from "./under-policy.ts";

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

/** Checks evidence that was recorded only for held results. For other results it is known only that it was enough. */
export function checkEvidence({ before, after, command, facts }: ReplayedCommand): EvidenceCheck {
  if (command.type !== "completeStep" || facts[0]?.type === "result.held") return ALL_KNOWN;
  const recorded = stepOf(before, command.stepId);
  const gate = stepOf(after, command.stepId)?.spec.gate;
  if (!recorded || !gate || isStated(recorded, command)) return ALL_KNOWN;
  return checkThresholdEvidence(gate, recorded.spec.gate ?? { threshold: 0 });
}

function stepOf(state: Coordination, stepId: StepId): Step | undefined {
  return state.kind === "open" ? state.steps.get(stepId) : undefined;
}

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
function isStated({ report, withheld }: Step, { stated, attempt }: CompleteStep): boolean {
  const isOfAttempt = (statement: typeof report | typeof withheld): boolean =>
    statement?.attempt === attempt && statement.confidence !== undefined;
  return isOfAttempt(report) || (stated === undefined && isOfAttempt(withheld));
}

interface RecordedDecision {
  readonly state: Coordination;
  readonly command: Command;
  readonly facts: readonly FactEvent[];
  readonly under: Under;
  readonly evidence: EvidenceCheck;
}

export function withPolicy({ state, command, facts, under, evidence }: RecordedDecision): Command {
  switch (command.type) {
    case "openCoordination": {
      const { type, ...created } = command;
      return { type, ...applyPolicyToCreation(created, under) };
    }
    case "admitPlanSteps":
      return state.kind === "open" ? admitStepsUnderPolicy(command, state, under) : command;
    case "admitSpawn":
      return state.kind === "open" ? spawnUnder(command, state, { fact: facts[0], under }) : command;
    case "completeStep":
      return evidence.kind === "known" ? command : { ...command, stated: { confidence: 10_000 } };
    case "recordFinding":
    case "recordNoVerdict":
      return retargetVerdict(command, stepOf(state, command.stepId));
    default:
      return command;
  }
}

function admitStepsUnderPolicy(
  command: AdmitPlanSteps,
  { created }: OpenCoordination,
  under: Under,
): Command {
  const steps = command.steps.map((step) => {
    const spec = applyPolicyToStep(step, created, under);
    return { ...spec, planned: spec.planned ?? step.planned };
  });
  return { ...command, steps };
}

function spawnUnder(
  command: AdmitSpawn,
  { created }: OpenCoordination,
  { fact, under }: { readonly fact: FactEvent | undefined; readonly under: Under },
): Command {
  if (fact?.type !== "step.admitted") return command;
  const { gate: _, ...rest } = command;
  const { gate } = applyPolicyToStep(fact.payload, created, under);
  return { ...rest, ...(gate && { gate }) };
}

/** The event that a verdict is about is another one in another log; of a late verdict it is nobody's. */
function retargetVerdict(command: RecordFinding | RecordNoVerdict, step: Step | undefined): Command {
  const isLate = command.target === ("" as EventId);
  return step?.phase.status === "held" && !isLate ? { ...command, target: step.phase.target } : command;
}
