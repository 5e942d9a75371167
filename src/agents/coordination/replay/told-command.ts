/**
 * Owns: which commands may have led to recorded facts. The log holds facts only; what was asked follows from the first of them and
 * the state before it. Where several commands come into question, the one that accounts for most comes first.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import type { AdmitSpawn, Command, CompleteStep, FailStep } from "../contracts/commands.ts";
import type { FactPayloads } from "../contracts/facts.ts";
import { DELIVERY_STEP_ID, epochMsOf, type EpochMs, type EventId, type StepId } from "../contracts/ids.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import { formatHoldingKey, type Coordination, type OpenCoordination } from "../ledger/state.ts";
import { NOTHING, readFields, withEarlierDecision, type Fact } from "./told-fact.ts";
import { commandsFromAnswer, commandsFromForwarding, commandsFromQuestion } from "./told-question.ts";
import { commandsFromResultFact } from "./told-result.ts";
import { commandsFromWorktreeFact } from "./told-worktree.ts";

/**
 * Returns the commands that may have led to the first of the recorded facts, the one that accounts for most first;
 * none where no command leads to it. `facts`: from the first one on, all of one time.
 */
export function commandsFromFacts(state: Coordination, facts: readonly FactEvent[]): Command[] {
  const [lead] = facts;
  if (!lead) return [];
  if (lead.type === "coordination.created") return [{ type: "openCoordination", ...lead.payload }];
  // It may follow the end.
  if (lead.type === "usage.recorded") return [{ type: "recordUsage", ...lead.payload }];
  if (state.kind !== "open") return [];
  const read = READERS[lead.type] as CommandReader<FactEvent["type"]> | undefined;
  return read?.(state, lead, facts) ?? [];
}

/** Reads the commands that a fact of one type, and those recorded with it, may come from. */
type CommandReader<T extends FactEvent["type"]> = (
  state: OpenCoordination,
  lead: Fact<T>,
  facts: readonly FactEvent[],
) => Command[];

const READERS: { readonly [T in FactEvent["type"]]?: CommandReader<T> } = {
  "step.admitted": (_, lead, facts) => commandsFromAdmission(lead, facts),
  "step.dispatched": (_, lead) => commandsFromDispatch(lead.payload),
  "step.acknowledged": (_, lead) => [{ type: "acknowledgeStep", ...lead.payload }],
  "step.reported": (_, lead) => [{ type: "reportStep", ...readFields(lead.payload) }],
  "step.progressed": (_, lead) => [{ type: "recordProgress", ...readFields(lead.payload) }],
  "child.observed": (_, lead) => [{ type: "observeChild", ...readFields(lead.payload) }],
  "step.child_stopped": (_, lead) => [{ type: "stopChild", ...readFields(lead.payload) }],
  "step.completed": (state, lead) => commandsFromCompletion(state, lead.payload),
  "step.failed": commandsFromFailure,
  "step.timed_out": (_, lead) => commandsFromTimeOut(lead.payload),
  "step.outcome_refused": (_, lead) => [commandFromLateOutcome(lead.payload)],
  "step.skipped": (state, _, facts) => commandsFromSkips(state, facts),
  "step.retry_granted": (_, lead) => commandsFromRetry(lead.payload.by, lead.payload.stepId),
  "result.withheld": commandsFromResultFact,
  "result.shortened": commandsFromResultFact,
  "message.suppressed": commandsFromResultFact,
  "result.held": commandsFromResultFact,
  "result.verified": commandsFromResultFact,
  "verification.failed": commandsFromResultFact,
  "coordination.escalated": commandsFromQuestion,
  "escalation.answered": (state, lead) => commandsFromAnswer(state, lead.payload),
  "escalation.notified": (_, lead) => [{ type: "recordNotice", ...lead.payload }],
  "escalation.forwarded": commandsFromForwarding,
  "escalation.closed": (state, lead, facts) => commandsFromClosing(state, lead.payload, facts),
  "session.told": (_, lead) => [{ type: "recordTelling", ...lead.payload }],
  "resource.changed": (_, lead) => [{ type: "recordChange", ...lead.payload }],
  "write.undetermined": (_, lead) => [{ type: "recordUndetermined", ...lead.payload }],
  "privilege.refused": (_, lead) => [{ type: "recordRefusedCall", ...readFields(lead.payload) }],
  "budget.reached": (_, { payload: { stepId, stopped } }) => [{ type: "stopAtBudget", stepId, stopped }],
  "budget.lent": (_, lead) => commandsFromLoan(lead.payload),
  "claim.released": (_, lead) => commandsFromRelease(lead.payload),
  "conflict.resolved": (state, lead, facts) => commandsFromResolution(state, lead.payload, facts),
  "coordination.cancel_requested": (_, lead) => [{ type: "cancelCoordination", ...readFields(lead.payload) }],
  "worktree.opened": commandsFromWorktreeFact,
  "worktree.merge_begun": commandsFromWorktreeFact,
  "worktree.merged": commandsFromWorktreeFact,
  "worktree.conflicted": commandsFromWorktreeFact,
  "worktree.removed": commandsFromWorktreeFact,
  "plan.judged": (_, lead) => [{ type: "judgePlan", ...lead.payload }],
  "coordination.terminal": () => [SETTLE],
};

const SETTLE: Command = { type: "settleCoordination" };

/** Returns the commands behind a loan: it may be a new one, or what is left of one. */
function commandsFromLoan(payload: FactPayloads["budget.lent"]): Command[] {
  const loan = readFields(payload);
  return [
    { type: "lendBudget", ...loan },
    { type: "returnBudget", ...loan },
  ];
}

/** Returns the commands that may have led to admitted steps: of a plan, a spawn or the delivery. */
function commandsFromAdmission(lead: Fact<"step.admitted">, facts: readonly FactEvent[]): Command[] {
  if (lead.payload.stepId === DELIVERY_STEP_ID) return [SETTLE];
  if (!lead.payload.planned) return commandsFromSpawn(lead.payload, facts);
  const steps: (FactPayloads["step.admitted"] & Required<Pick<AdmitSpawn, "planned">>)[] = [];
  for (const fact of facts) {
    const { planned } = fact.type === "step.admitted" ? fact.payload : {};
    if (fact.type !== "step.admitted" || !planned || fact.payload.stepId === DELIVERY_STEP_ID) break;
    steps.push({ ...fact.payload, planned });
  }
  return [{ type: "admitPlanSteps", steps }];
}

/**
 * Returns the commands behind the admission of a spawn. A child that the host had made already was acknowledged with
 * it.
 */
function commandsFromSpawn(
  spec: FactPayloads["step.admitted"],
  [, second, third]: readonly FactEvent[],
): Command[] {
  const {
    stepId,
    lane: _lane,
    deliveryMode: _mode,
    priority: _priority,
    retryBudget: _budget,
    ...admittedFields
  } = spec;
  const gateway = second?.type === "step.dispatched" ? second.payload.gateway : undefined;
  const spawn: AdmitSpawn = {
    type: "admitSpawn",
    ...admittedFields,
    ...(gateway !== undefined && { gateway }),
  };
  if (third?.type !== "step.acknowledged" || third.payload.stepId !== stepId) return [spawn];
  const { childSessionKey, childRunId } = third.payload;
  return [{ ...spawn, child: { childSessionKey, childRunId } }, spawn];
}

/** Returns the command that began an attempt; none where the host began it. */
function commandsFromDispatch({
  stepId,
  attempt,
  targetSession,
  message,
  gateway,
}: FactPayloads["step.dispatched"]): Command[] {
  if (targetSession === undefined) return [];
  const sent = { ...(message && { message }), ...(gateway !== undefined && { gateway }) };
  return [{ type: "dispatchStep", stepId, attempt, targetSession, ...sent }];
}

function commandsFromTimeOut({ stepId, attempt, via, usage }: FactPayloads["step.timed_out"]): Command[] {
  return [{ type: "timeOutStep", stepId, attempt, via, ...(usage && { usage }) }];
}

/** Returns the commands behind a completed step. The confidence in its last words is recorded only when it was held. */
function commandsFromCompletion(
  { steps }: OpenCoordination,
  { released: _, ...payload }: FactPayloads["step.completed"],
): Command[] {
  const command: CompleteStep = { type: "completeStep", ...readFields(payload) };
  const { spec, withheld } = steps.get(payload.stepId) ?? {};
  return spec?.gate && (spec.gate.requireConfidence || withheld)
    ? [command, { ...command, stated: { confidence: spec.gate.threshold } }]
    : [command];
}

/** Returns the commands behind a failed attempt, which its runner, its gate or its merge ended. */
function commandsFromFailure(
  state: OpenCoordination,
  lead: Fact<"step.failed">,
  facts: readonly FactEvent[],
): Command[] {
  const { stepId, attempt, via, error, cancelled, usage, unspawned } = lead.payload;
  if (error.code === "worktree_failed" && via === "gate")
    return [{ type: "failMerge", stepId, attempt, message: error.message }];
  if (via === "gate") return commandsFromSkips(state, facts);
  const counted = { ...(usage && { usage }), ...(unspawned && { unspawned }) };
  const failure: FailStep = { type: "failStep", stepId, attempt, via, error, cancelled, ...counted };
  if (error.code !== "provider_refused") return withEarlierDecision(failure);
  return [failure, ...listPossibleWaits(state, lead).map((retryAfterMs) => ({ ...failure, retryAfterMs }))];
}

/**
 * Returns the waits in milliseconds that the provider may have asked for, which are not recorded. Where no retry is
 * recorded the wait was too long for the plan's deadline, or only for the time of the step.
 */
function listPossibleWaits(
  { created }: OpenCoordination,
  { payload: { retryAtMs }, timestamp }: Fact<"step.failed">,
): number[] {
  const failedAtMs = epochMsOf(timestamp);
  if (retryAtMs !== undefined) return [retryAtMs - failedAtMs];
  const deadlineAtMs = created.plan?.deadlineAtMs;
  const longestWaitMs = BOUNDS.retryAfterMsMax;
  return deadlineAtMs === undefined ? [longestWaitMs] : [longestWaitMs, deadlineAtMs - 1 - failedAtMs];
}

/** Returns the command of an outcome that came too late; its content does not matter then. */
function commandFromLateOutcome({ stepId, attempt, outcome }: FactPayloads["step.outcome_refused"]): Command {
  const about = { stepId, attempt, via: "runner" } as const;
  switch (outcome) {
    case "completed":
      return { type: "completeStep", ...about };
    case "failed": {
      const error = { code: "child_failed", message: "" } as const;
      return { type: "failStep", ...about, error, cancelled: false };
    }
    case "timed_out":
      return { type: "timeOutStep", ...about };
    case "reported":
      return { type: "reportStep", stepId, attempt, outcome: "completed", output: NOTHING };
    case "verified": {
      const target = "" as EventId;
      return { type: "recordNoVerdict", stepId, attempt, target, check: "late", because: "failed" };
    }
  }
}

/** Returns the commands that may have ended these steps: all in a row by one command, or the first step alone. */
function commandsFromSkips(state: OpenCoordination, facts: readonly FactEvent[]): Command[] {
  const stepIds: StepId[] = [];
  for (const fact of facts) {
    const stepId = findStepEndedBySkip(state, fact);
    if (stepId === undefined) break;
    if (stepId !== stepIds.at(-1)) stepIds.push(stepId);
  }
  const all = stepIds.length > 1 ? [{ type: "skipSteps" as const, stepIds }] : [];
  return [...all, { type: "skipSteps", stepIds: stepIds.slice(0, 1) }];
}

/**
 * Returns the step that the command `skipSteps` may have ended by this fact: skipped, failed at its gate, or its
 * question cancelled; else `undefined`.
 */
function findStepEndedBySkip({ escalations }: OpenCoordination, fact: FactEvent): StepId | undefined {
  if (fact.type === "step.skipped") return fact.payload.stepId;
  if (fact.type === "step.failed") return fact.payload.via === "gate" ? fact.payload.stepId : undefined;
  if (fact.type !== "escalation.closed" || fact.payload.resolution !== "cancelled") return undefined;
  return escalations.get(fact.payload.escalationId)?.stepId;
}

/** Returns the commands that may have granted a retry: to all steps, or to this one. */
function commandsFromRetry(
  by: FactPayloads["step.retry_granted"]["by"],
  stepId: StepId | undefined,
): Command[] {
  const all: Command = { type: "retryStep", by };
  return stepId === undefined ? [all] : [all, { ...all, stepId }];
}

/** Returns the commands that may have closed a question without an answer. */
function commandsFromClosing(
  state: OpenCoordination,
  { escalationId, resolution, by }: FactPayloads["escalation.closed"],
  facts: readonly FactEvent[],
): Command[] {
  const stepId = state.escalations.get(escalationId)?.stepId;
  switch (resolution) {
    case "expired":
      return [{ type: "expireEscalation", escalationId }];
    case "retried":
    case "continued":
      return by ? commandsFromRetry(by, stepId) : [];
    case "cancelled":
      return [
        SETTLE,
        ...(stepId ? commandsFromSkips(state, facts) : []),
        ...commandsFromWithdrawal(state, facts),
        { type: "expireEscalation", escalationId },
      ];
    default:
      return [];
  }
}

/** Returns the commands that may have withdrawn a conflict. Claims that end take the questions about them with them. */
function commandsFromWithdrawal({ conflicts }: OpenCoordination, facts: readonly FactEvent[]): Command[] {
  const resolved = facts.find(({ type }) => type === "conflict.resolved") as
    Fact<"conflict.resolved"> | undefined;
  const released = facts.find(({ type }) => type === "claim.released") as Fact<"claim.released"> | undefined;
  if (!resolved) return [];
  const requester = conflicts.findLast(({ conflictId }) => conflictId === resolved.payload.conflictId)
    ?.contest?.requester;
  const reasons = [...new Set([released?.payload.because ?? "operator", "turn_ended", "operator"] as const)];
  return reasons.flatMap((because): Command[] => [
    { type: "releaseClaims", because },
    ...(requester ? [{ type: "releaseClaims" as const, because, stepId: requester }] : []),
  ]);
}

/** Returns the commands that may have released a claim: the end of the coordination, or a release of this claim. */
function commandsFromRelease({ because, token }: FactPayloads["claim.released"]): Command[] {
  const alone: Command = { type: "releaseClaims", because, tokens: [token] };
  return because === "coordination_ended" ? [SETTLE, alone] : [alone];
}

/** Returns the commands that may have led to the ruling of people on a conflict; none where the rules ruled. */
function commandsFromResolution(
  state: OpenCoordination,
  { conflictId, because }: FactPayloads["conflict.resolved"],
  facts: readonly FactEvent[],
): Command[] {
  const operatorAnswer = ANSWERS.find((answer) => answer.replaceAll("_", "-") === because);
  if (!operatorAnswer) return [];
  const claims = [findApprovedClaim(state, facts), createUnrecordedClaim(state, conflictId)];
  const reviews = claims.flatMap((claim): Command[] =>
    claim ? [{ type: "settleReview", conflictId, answer: operatorAnswer, claim }] : [],
  );
  return operatorAnswer === "withdrawn"
    ? [SETTLE, ...reviews, ...commandsFromWithdrawal(state, facts)]
    : reviews;
}

const ANSWERS = ["approved", "denied", "unanswered", "nobody_to_ask", "withdrawn"] as const;

/** A claim that a requester is to get with an approval. */
interface ApprovedClaim {
  readonly token: number;
  readonly expiresAtMs: EpochMs;
}

/** Returns a claim that leaves no fact: for no longer than the requester already has what it wants. */
function createUnrecordedClaim(
  { conflicts, holdings, claims, newestToken }: OpenCoordination,
  conflictId: string,
): ApprovedClaim {
  const conflict = conflicts.findLast((each) => each.conflictId === conflictId);
  const requester = conflict?.contest?.requester;
  const heldToken = requester && holdings.get(formatHoldingKey(requester, conflict.resource));
  const heldClaim = heldToken === undefined ? undefined : claims.get(heldToken);
  return { token: newestToken + 1, expiresAtMs: heldClaim?.expiresAtMs ?? (0 as EpochMs) };
}

/** Returns the claim that the requester got with the approval. */
function findApprovedClaim(
  { newestToken }: OpenCoordination,
  facts: readonly FactEvent[],
): ApprovedClaim | undefined {
  for (const fact of facts) {
    if (fact.type === "claim.acquired") return fact.payload;
    if (fact.type === "claim.renewed")
      return { token: newestToken + 1, expiresAtMs: fact.payload.expiresAtMs };
  }
  return undefined;
}
