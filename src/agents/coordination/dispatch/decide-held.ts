/**
 * Owns: deciding about a result that does not count yet: it is held, checked, revised, accepted or withheld.
 *
 * G1 no result passes without the evidence that its gate demands. G2 people are asked in the same append that finds the need. G3 a
 * held result is accepted at most once; a result that was refused, or whose question nobody answered, is never accepted.
 */
import type {
  CompleteStep,
  FailStep,
  RecordFinding,
  RecordNoVerdict,
  StatedConfidence,
} from "../contracts/commands.ts";
import { BOUNDS } from "../contracts/bounds.ts";
import { createStepError, type ContentRef, type StepError } from "../contracts/fact-fields.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { isQuestionAboutResult } from "../ledger/evolve-questions.ts";
import { formatWorktreeKey } from "../ledger/evolve-worktrees.ts";
import { addMs, type EpochMs, type StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import type { Finding, Gate } from "../contracts/verification.ts";
import { mustHold, mustHoldMismatch, ruleOnVerdicts, type ResultVerdict } from "../gates/verifier-gate.ts";
import { findChildOfPhase, type HeldPhase, type OpenCoordination, type Step } from "../ledger/state.ts";
import { listRunDifferences } from "../ledger/step-notes.ts";
import { draftQuestion, isTooLateToAsk, type QuestionTiming } from "./ask-people.ts";
import { draftEndOfClaims } from "./release-claims.ts";
import { accept, refuse, type Decision } from "./decision.ts";
import { refuseAndRecordLate } from "./late-outcome.ts";
import { chooseNextAttempt, findSpentLimit } from "./next-attempt.ts";
import { isPlanned } from "./plan-rules.ts";

/** A step whose result waits for a ruling. */
export type HeldStep = Step & { readonly phase: HeldPhase };

/** Lets everything pass: what is held without a gate of its own is only to be merged back first. */
export const OPEN_GATE: Gate = { threshold: 0 };

/** Returns the gate that holds a step's results; where it has none, one that lets every result pass. */
export function readStepGate({ spec }: Step): Gate {
  return spec.gate ?? OPEN_GATE;
}

/** True while the work in the step's worktree is being merged back: then the merge can only come to its end. */
export function isBeingMerged({ worktrees }: OpenCoordination, { spec, phase }: Step): boolean {
  return worktrees.get(formatWorktreeKey(spec.stepId, phase.attempt))?.merge?.status === "begun";
}

/** Returns the confidence that the agent stated. Its report counts before its last text. */
function chooseStatedConfidence(
  { report, withheld }: Step,
  { stated, attempt }: CompleteStep,
): StatedConfidence {
  if (report?.attempt === attempt && report.confidence !== undefined)
    return { confidence: report.confidence };
  const withheldText = withheld?.attempt === attempt ? withheld : undefined;
  const { confidence, confidenceUnreadable } = { ...withheldText, ...stated };
  return {
    ...(confidence !== undefined && { confidence }),
    ...(confidenceUnreadable && { confidenceUnreadable }),
  };
}

/**
 * Drafts the facts that hold a step's new result and what follows from its gate. `undefined` where the gate lets it
 * pass and no worktree is to be merged.
 */
export function draftHeldResult(
  state: OpenCoordination,
  step: Step,
  {
    command,
    output,
    now,
  }: { readonly command: CompleteStep; readonly output?: ContentRef; readonly now: EpochMs },
): FactDraft[] | undefined {
  const { gate, stepId, isolate } = step.spec;
  const stated = chooseStatedConfidence(step, command);
  const isHeldByGate =
    gate !== undefined && (mustHold(gate, stated) || mustHoldMismatch(gate, listRunDifferences(step)));
  if (!isHeldByGate && !isolate) return undefined;
  const { attempt, via, usage, asEarlier } = command;
  const { checks = [], verifyMs = BOUNDS.durationMsMax } = readStepGate(step);
  const heldFact: FactDraft = {
    type: "result.held",
    payload: {
      stepId,
      attempt,
      via,
      ...(output && { output }),
      ...(usage && { usage }),
      ...stated,
      ...(checks.length > 0 && { verifyByMs: addMs(now, verifyMs) }),
    },
  };
  return [
    heldFact,
    ...draftImmediateRuling(state, step, { gate, stated, asking: { now, asEarlier } }),
    ...draftEndOfClaims(state, "step_ended", stepId),
  ];
}

/** Drafts what follows before any check runs: a question to people, or the end of a step that was cancelled meanwhile. */
function draftImmediateRuling(
  state: OpenCoordination,
  step: Step,
  hold: {
    readonly gate: Gate | undefined;
    readonly stated: StatedConfidence;
    readonly asking: QuestionTiming;
  },
): FactDraft[] {
  if ((state.cancelledBy ?? step.cancelledBy) !== undefined) return [draftCancelledWhileHeld(step)];
  const { gate, stated, asking } = hold;
  if (!gate) return [];
  const verdict = ruleOnVerdicts(gate, {
    stated,
    findings: [],
    failures: new Map(),
    // They limit what a finding asks for, and there is none yet.
    revisions: 0,
    differences: listRunDifferences(step),
  });
  return verdict.outcome === "hold" ? [draftResultQuestion(state, step, { verdict, asking })] : [];
}

/**
 * Decides on the verdict of a check on a held result: accepted with what follows from all verdicts so far; a replay
 * where the check has answered; refused once the result waits no more.
 */
export function recordFinding(state: OpenCoordination, command: RecordFinding, now: EpochMs): Decision {
  const step = state.steps.get(command.stepId);
  const heldStep = findStepAwaitingVerdict(step, command);
  if (!heldStep) return refuseLateVerdict(step, command);
  const { finding, stepId, attempt, asEarlier } = command;
  const asking: QuestionTiming = { now, asEarlier };
  const { check } = finding;
  if (hasCheckAnswered(heldStep, check)) return { kind: "replay", stepId };
  if (finding.self && !readStepGate(heldStep).allowSelf)
    return acceptNoVerdict(state, heldStep, { check, because: "self_not_allowed", asking });
  const fact: FactDraft = { type: "result.verified", payload: { stepId, attempt, ...finding } };
  return accept([fact, ...draftVerdictConsequences(state, addFinding(heldStep, finding), asking)], stepId);
}

/**
 * Decides on a check that came to no verdict on a held result: accepted with what follows from all verdicts so far; a
 * replay where it has answered; refused once the result waits no more.
 */
export function recordNoVerdict(state: OpenCoordination, command: RecordNoVerdict, now: EpochMs): Decision {
  const step = state.steps.get(command.stepId);
  const heldStep = findStepAwaitingVerdict(step, command);
  if (!heldStep) return refuseLateVerdict(step, command);
  const { stepId, check, because, asEarlier } = command;
  if (hasCheckAnswered(heldStep, check)) return { kind: "replay", stepId };
  return acceptNoVerdict(state, heldStep, { check, because, asking: { now, asEarlier } });
}

function acceptNoVerdict(
  state: OpenCoordination,
  step: HeldStep,
  {
    check,
    because,
    asking,
  }: Pick<RecordNoVerdict, "check" | "because"> & { readonly asking: QuestionTiming },
): Decision {
  const { spec, phase } = step;
  const { stepId } = spec;
  const { attempt } = phase;
  const fact: FactDraft = { type: "verification.failed", payload: { stepId, attempt, check, because } };
  const failures = new Map([...phase.failures, [check, because] as const]);
  return accept(
    [fact, ...draftVerdictConsequences(state, { ...step, phase: { ...phase, failures } }, asking)],
    stepId,
  );
}

/** Returns the step if it is held, the verdict is about its result, and its checks still run; else `undefined`. */
function findStepAwaitingVerdict(
  step: Step | undefined,
  { attempt, target, ...rest }: RecordFinding | RecordNoVerdict,
): HeldStep | undefined {
  if (!step || !isHeldStep(step) || step.phase.escalationId) return undefined;
  const check = "finding" in rest ? rest.finding.check : rest.check;
  const isAsked = readStepGate(step).checks?.includes(check) ?? false;
  return isAsked && step.phase.attempt === attempt && step.phase.target === target ? step : undefined;
}

/** True while the result of the step waits for a ruling. */
export function isHeldStep(step: Step): step is HeldStep {
  return step.phase.status === "held";
}

/**
 * Returns the refusal of a verdict whose caller found that it came too late or is about another result, or that there
 * is no such step. It changes nothing but the record that it was refused, which is made once (D3).
 */
function refuseLateVerdict(
  step: Step | undefined,
  { stepId, attempt }: RecordFinding | RecordNoVerdict,
): Decision {
  return step
    ? refuseAndRecordLate(step, { attempt, outcome: "verified" })
    : refuse("UNKNOWN_STEP", `there is no step ${stepId}`);
}

function hasCheckAnswered({ phase }: HeldStep, check: string): boolean {
  return phase.failures.has(check) || phase.findings.some((finding) => finding.check === check);
}

/** Returns a copy of the step with one more finding. */
function addFinding(step: HeldStep, finding: Finding): HeldStep {
  return { ...step, phase: { ...step.phase, findings: [...step.phase.findings, finding] } };
}

/** Drafts what follows from the verdicts that have arrived so far. */
function draftVerdictConsequences(
  state: OpenCoordination,
  step: HeldStep,
  asking: QuestionTiming,
): FactDraft[] {
  const { phase, spec, revisions = 0 } = step;
  const differences = listRunDifferences(step);
  const { stated, findings, failures } = phase;
  const verdict = ruleOnVerdicts(readStepGate(step), { stated, findings, failures, revisions, differences });
  switch (verdict.outcome) {
    case "wait":
      return [];
    case "pass":
      // Changes in a worktree are merged back first.
      return spec.isolate ? [] : draftAcceptedResult(step, { released: "verified" });
    case "fail":
      return draftRejectedResult(state, step, {
        error: createStepError("verification_failed", `not met: ${verdict.criteria.join(", ")}`),
        now: asking.now,
      });
    case "revise":
      return draftRevision(state, step, { criteria: verdict.criteria, asking });
    case "hold":
      return [draftResultQuestion(state, step, { verdict, asking })];
  }
}

/**
 * Drafts that the agent revises its result in another turn. Where the step's own budget is used up, people rule on the
 * result as it is.
 */
function draftRevision(
  state: OpenCoordination,
  step: HeldStep,
  { criteria, asking }: { readonly criteria: readonly string[]; readonly asking: QuestionTiming },
): FactDraft[] {
  const { spec, phase, revisions = 0 } = step;
  if (findSpentLimit(step, undefined, asking.now)) {
    const verdict = { outcome: "hold", cause: "verifier", reason: "revisions_spent" } as const;
    return [draftResultQuestion(state, step, { verdict, asking })];
  }
  return [
    {
      type: "result.revised",
      payload: {
        stepId: spec.stepId,
        attempt: phase.attempt,
        revision: revisions + 1,
        criteria: criteria.slice(0, BOUNDS.criteriaMax),
      },
    },
  ];
}

/** Drafts the question to people about a result, or its end where they could not answer in time. */
function draftResultQuestion(
  state: OpenCoordination,
  step: Step,
  {
    verdict,
    asking,
  }: { readonly verdict: ResultVerdict & { readonly outcome: "hold" }; readonly asking: QuestionTiming },
): FactDraft {
  if (isTooLateToAsk(state, asking)) return draftResultFailedAtDeadline(step);
  const { spec, phase } = step;
  const child = findChildOfPhase(phase);
  const measured = "measured" in verdict ? { measured: verdict.measured } : {};
  return draftQuestion(
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
    asking,
  );
}

/** Why a held result counts, and the output that people put in its place. */
type ReleaseReason = Pick<FactPayloads["step.completed"], "released"> & { readonly output?: ContentRef };

/**
 * Drafts the one fact that completes a held step, with what released its result. From here on its result counts and
 * cannot be held again (G3).
 */
export function draftAcceptedResult(
  { spec: { stepId }, phase }: HeldStep,
  { released, output }: ReleaseReason,
): FactDraft[] {
  const countedOutput = output ?? phase.output;
  return [
    {
      type: "step.completed",
      payload: {
        stepId,
        attempt: phase.attempt,
        via: "gate",
        ...(countedOutput && { output: countedOutput }),
        ...(released && { released }),
      },
    },
  ];
}

/**
 * Returns why a held result may count: people replaced its text, people approved it, or its checks passed it. An empty
 * object where none of these was asked for.
 */
export function findReleaseReason({ escalations }: OpenCoordination, step: HeldStep): ReleaseReason {
  const { phase, spec } = step;
  const replaced = escalations.findLast(
    (question) =>
      question.stepId === spec.stepId &&
      isQuestionAboutResult(question) &&
      question.askedAtMs >= phase.endedAtMs &&
      question.closed?.resolution === "answered",
  );
  if (replaced?.answered?.text) return { released: "replaced", output: replaced.answered.text };
  if (phase.escalationId !== undefined) return { released: "approved" };
  return readStepGate(step).checks?.length ? { released: "verified" } : {};
}

/**
 * Drafts the failure of an attempt whose result was rejected, and the question to people where one follows. It is
 * retried, asked about or given up like any other failure, but never tried again once people withheld the result.
 */
export function draftRejectedResult(
  state: OpenCoordination,
  step: HeldStep,
  { error, now }: { readonly error: StepError; readonly now: EpochMs },
): FactDraft[] {
  const { stepId } = step.spec;
  const failed = { stepId, attempt: step.phase.attempt, via: "gate", error, cancelled: false } as const;
  // People withheld the result, so it is not tried again without them.
  if (!isPlanned(state) || error.code === "withheld") return [{ type: "step.failed", payload: failed }];
  const command: FailStep = { type: "failStep", ...failed };
  const { after, asked: question } = chooseNextAttempt(state, step, { command, now });
  const fact: FactDraft = { type: "step.failed", payload: { ...failed, ...after } };
  return question ? [fact, question] : [fact];
}

/**
 * Drafts the failure of a cancelled held step, and the end of the question about its result. Returns none while its
 * work is being merged.
 */
export function draftHeldStepCancellation(state: OpenCoordination, step: HeldStep): FactDraft[] {
  if (isBeingMerged(state, step)) return [];
  return [...draftQuestionClosing(state, step.phase.escalationId), draftCancelledWhileHeld(step)];
}

/**
 * Drafts the failure of a held step whose result people should rule on, because the plan's deadline passed before they
 * could be asked.
 */
export function draftResultFailedAtDeadline({ spec: { stepId }, phase: { attempt } }: Step): FactDraft {
  const error = createStepError("withheld", "the plan's deadline passed before people could be asked");
  return { type: "step.failed", payload: { stepId, attempt, via: "gate", error, cancelled: false } };
}

/** Drafts the failure of a step that is cancelled while its result is held. */
export function draftCancelledWhileHeld({ spec: { stepId }, phase: { attempt } }: Step): FactDraft {
  const error = createStepError("child_cancelled", "cancelled while its result was held");
  return { type: "step.failed", payload: { stepId, attempt, via: "gate", error, cancelled: true } };
}

/** Drafts that a question is closed as cancelled; nothing where it is not open. */
function draftQuestionClosing(state: OpenCoordination, escalationId: string | undefined): FactDraft[] {
  if (!escalationId || !state.openQuestions.has(escalationId)) return [];
  return [{ type: "escalation.closed", payload: { escalationId, resolution: "cancelled" } }];
}

/** Returns the step with this id while its result is held; `undefined` otherwise. */
export function findHeldStep(state: OpenCoordination, stepId: StepId | undefined): HeldStep | undefined {
  const step = stepId && state.steps.get(stepId);
  return step && isHeldStep(step) ? step : undefined;
}
