/**
 * Owns: what follows for a result that may not count yet: it is held, checked, revised, let through or withheld.
 *
 * G1 nothing passes without the evidence that its gate demands. G2 people are asked in the append that finds the need. G3 a held
 * result is let through once; one that was refused, or that nobody answered about, never is.
 */
import type {
  CompleteStep,
  FailStep,
  RecordFinding,
  RecordNoVerdict,
  StatedConfidence,
} from "../contracts/commands.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import { stepError, type ContentRef, type StepError } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { addMs, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import type { Finding, Gate } from "../contracts/verification.ts";
import { holds, verifierGate, type ResultVerdict } from "../gates/verifier-gate.ts";
import { childOf, type HeldPhase, type OpenCoordination, type Step } from "../ledger/state.ts";
import { asking } from "./ask-people.ts";
import { endOfClaims } from "./decide-claims.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import { late } from "./late-outcome.ts";
import { nextTry } from "./next-try.ts";
import { isPlanned } from "./plan-rules.ts";

/** Its result waits for a ruling. */
export type HeldStep = Step & { readonly phase: HeldPhase; readonly spec: { readonly gate: Gate } };

/** What the agent stated, with its report before its last words. */
function statedBy({ report, withheld }: Step, { stated, attempt }: CompleteStep): StatedConfidence {
  if (report?.attempt === attempt && report.confidence !== undefined)
    return { confidence: report.confidence };
  const said = withheld?.attempt === attempt ? withheld : undefined;
  const { confidence, confidenceUnreadable } = { ...said, ...stated };
  return {
    ...(confidence !== undefined && { confidence }),
    ...(confidenceUnreadable && { confidenceUnreadable }),
  };
}

/** The facts that hold a result which has just come; nothing where its gate lets it through as it is. */
export function holding(
  state: OpenCoordination,
  step: Step,
  {
    command,
    output,
    now,
  }: { readonly command: CompleteStep; readonly output?: ContentRef; readonly now: EpochMs },
): FactDraft[] | undefined {
  const { gate, stepId } = step.spec;
  const stated = statedBy(step, command);
  if (!gate || !holds(gate, stated)) return undefined;
  const { attempt, via, usage } = command;
  const { checks = [], verifyMs = BOUNDS.durationMsMax } = gate;
  const held: FactDraft = {
    type: "result.held",
    payload: {
      ...{ stepId, attempt, via },
      ...(output && { output }),
      ...(usage && { usage }),
      ...stated,
      ...(checks.length > 0 && { verifyByMs: addMs(now, verifyMs) }),
    },
  };
  return [held, ...atOnce(state, step, { gate, stated, now }), ...endOfClaims(state, "step_ended", stepId)];
}

/** What follows before any check is asked: where the step is to be stopped its end, because nobody needs a ruling any more. */
function atOnce(
  state: OpenCoordination,
  step: Step,
  given: { readonly gate: Gate; readonly stated: StatedConfidence; readonly now: EpochMs },
): FactDraft[] {
  if ((state.cancelledBy ?? step.cancelledBy) !== undefined) return [cancelledWhileHeld(step)];
  const { gate, stated, now } = given;
  const revisions = step.revisions ?? 0;
  const verdict = verifierGate(gate, { stated, findings: [], failures: new Map(), revisions });
  return verdict.outcome === "hold" ? [askAbout(state, step, { verdict, now })] : [];
}

export function recordFinding(state: OpenCoordination, command: RecordFinding, now: EpochMs): Decision {
  const step = state.steps.get(command.stepId);
  const held = heldBy(step, command);
  if (!step || !held) return notHeld(step, command);
  const { finding, stepId, attempt } = command;
  if (hasAnswered(held, finding.check)) return { kind: "replay", stepId };
  if (finding.self && !held.spec.gate.allowSelf)
    return recordNoVerdict(
      state,
      { ...about(command), check: finding.check, because: "self_not_allowed" },
      now,
    );
  const fact: FactDraft = { type: "result.verified", payload: { stepId, attempt, ...finding } };
  return accept([fact, ...following(state, withFinding(held, finding), now)], stepId);
}

function about({ stepId, attempt, target }: RecordFinding): Omit<RecordNoVerdict, "check" | "because"> {
  return { type: "recordNoVerdict", stepId, attempt, target };
}

export function recordNoVerdict(state: OpenCoordination, command: RecordNoVerdict, now: EpochMs): Decision {
  const step = state.steps.get(command.stepId);
  const held = heldBy(step, command);
  if (!step || !held) return notHeld(step, command);
  const { stepId, attempt, check, because } = command;
  if (hasAnswered(held, check)) return { kind: "replay", stepId };
  const fact: FactDraft = { type: "verification.failed", payload: { stepId, attempt, check, because } };
  const failures = new Map([...held.phase.failures, [check, because] as const]);
  return accept([fact, ...following(state, { ...held, phase: { ...held.phase, failures } }, now)], stepId);
}

/** The held result that a verdict is about, while checks are still asked. */
function heldBy(
  step: Step | undefined,
  { attempt, target, ...rest }: RecordFinding | RecordNoVerdict,
): HeldStep | undefined {
  if (!step || !isHeld(step) || step.phase.escalationId) return undefined;
  const check = "finding" in rest ? rest.finding.check : rest.check;
  const isAsked = step.spec.gate.checks?.includes(check) ?? false;
  return isAsked && step.phase.attempt === attempt && step.phase.target === target ? step : undefined;
}

export function isHeld(step: Step): step is HeldStep {
  return step.phase.status === "held" && step.spec.gate !== undefined;
}

/** D3: a verdict that came too late, or about something else, changes nothing and is recorded once. */
function notHeld(step: Step | undefined, { stepId, attempt }: RecordFinding | RecordNoVerdict): Decision {
  return step
    ? late(step, { attempt, outcome: "verified" })
    : refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
}

function hasAnswered({ phase }: HeldStep, check: string): boolean {
  return phase.failures.has(check) || phase.findings.some((finding) => finding.check === check);
}

function withFinding(step: HeldStep, finding: Finding): HeldStep {
  return { ...step, phase: { ...step.phase, findings: [...step.phase.findings, finding] } };
}

/** What the verdicts so far lead to. */
function following(state: OpenCoordination, step: HeldStep, now: EpochMs): FactDraft[] {
  const { phase, spec, revisions = 0 } = step;
  const { stated, findings, failures } = phase;
  const verdict = verifierGate(spec.gate, { stated, findings, failures, revisions });
  switch (verdict.outcome) {
    case "wait":
      return [];
    case "pass":
      return letThrough(step, { released: "verified" });
    case "fail":
      return rejected(state, step, {
        error: stepError("verification_failed", `not met: ${verdict.criteria.join(", ")}`),
        now,
      });
    case "revise": {
      const { stepId } = spec;
      const { attempt } = phase;
      const { criteria } = verdict;
      return [
        {
          type: "result.revised",
          payload: {
            ...{ stepId, attempt },
            revision: revisions + 1,
            criteria: criteria.slice(0, BOUNDS.criteriaMax),
          },
        },
      ];
    }
    case "hold":
      return [askAbout(state, step, { verdict, now })];
  }
}

function askAbout(
  state: OpenCoordination,
  { spec, phase }: Step,
  { verdict, now }: { readonly verdict: ResultVerdict & { readonly outcome: "hold" }; readonly now: EpochMs },
): FactDraft {
  const child = childOf(phase);
  const measured = "measured" in verdict ? { measured: verdict.measured } : {};
  return asking(
    state,
    {
      stepId: spec.stepId,
      cause: verdict.cause,
      kind: "approval",
      answers: ["approve", "deny", "answer"],
      ...(child && { askedBy: child.childSessionKey }),
      ...(verdict.cause === "confidence" && {
        confidence: { ...measured, floor: verdict.required, of: verdict.of },
      }),
    },
    { now },
  );
}

type Release = Pick<FactPayloads["step.completed"], "released"> & { readonly output?: ContentRef };

/** G3: from here on the result counts, and can be held no more. */
export function letThrough(
  { spec: { stepId }, phase }: HeldStep,
  { released, output }: Release,
): FactDraft[] {
  const counted = output ?? phase.output;
  return [
    {
      type: "step.completed",
      payload: {
        ...{ stepId, attempt: phase.attempt, via: "gate" },
        ...(counted && { output: counted }),
        ...(released && { released }),
      },
    },
  ];
}

/** The attempt failed after all: tried again, asked about or given up as any other. */
export function rejected(
  state: OpenCoordination,
  step: HeldStep,
  { error, now }: { readonly error: StepError; readonly now: EpochMs },
): FactDraft[] {
  const { stepId } = step.spec;
  const failed = { stepId, attempt: step.phase.attempt, via: "gate", error, cancelled: false } as const;
  if (!isPlanned(state) || !step.spec.planned) return [{ type: "step.failed", payload: failed }];
  const command: FailStep = { type: "failStep", ...failed };
  // What people withheld is theirs to say; it is not tried again behind their back.
  const next = error.code === "withheld" ? { after: {} } : nextTry(state, step, { command, now });
  const fact: FactDraft = { type: "step.failed", payload: { ...failed, ...next.after } };
  return [fact, ...(next.asked ? [next.asked] : [])];
}

/** The result of a step that is to be stopped will not be asked for any more. */
export function cancelHeld(state: OpenCoordination, step: HeldStep): FactDraft[] {
  return [...closingOf(state, step.phase.escalationId), cancelledWhileHeld(step)];
}

function cancelledWhileHeld({ spec: { stepId }, phase: { attempt } }: Step): FactDraft {
  const error = stepError("child_cancelled", "cancelled while its result was held");
  return { type: "step.failed", payload: { stepId, attempt, via: "gate", error, cancelled: true } };
}

function closingOf(state: OpenCoordination, escalationId: string | undefined): FactDraft[] {
  if (!escalationId || !state.openQuestions.has(escalationId)) return [];
  return [{ type: "escalation.closed", payload: { escalationId, resolution: "cancelled" } }];
}

export function heldStepOf(state: OpenCoordination, stepId: StepId | undefined): HeldStep | undefined {
  const step = stepId && state.steps.get(stepId);
  return step && isHeld(step) ? step : undefined;
}
