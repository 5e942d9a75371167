/** Owns: planning the next effects for held results, questions to people and sessions that wait to be told something. */
import type { Channel } from "../../contracts/escalation.ts";
import { createIdempotencyKey, type EpochMs, type SessionKey, type StepId } from "../../contracts/ids.ts";
import { listUnsentNotices } from "../../escalation/notices.ts";
import { ruleOnVerdicts } from "../../gates/verifier-gate.ts";
import { isQuestionAbandoned, listOpenQuestions } from "../../ledger/open-questions.ts";
import type { OpenCoordination } from "../../ledger/state.ts";
import { findHeldStep, readStepGate } from "../decide-held.ts";
import type { StepEffect } from "../worktree-effects.ts";
import type { Capacity } from "./capacity.ts";
import { isAtWorkForHost } from "./followed-steps.ts";

/** The turn of a notice passes to the next one on its channel after this long, delivered or not. */
export const NOTICE_TURN_MS = 30_000;

export type GateEffect = VerifyResult | ExpireQuestion | NotifyPeople | TellSession;

/** Asks the checks of a held result that have not answered. */
export interface VerifyResult extends StepEffect<"verifyResult"> {
  readonly checks: readonly string[];
}

/** Closes a question that nobody answered in time, or whose answer nobody waits for any more. */
export interface ExpireQuestion {
  readonly kind: "expireQuestion";
  readonly effectId: string;
  readonly escalationId: string;
}

/** Notifies people of an open question on one channel. */
export interface NotifyPeople {
  readonly kind: "notifyPeople";
  readonly effectId: string;
  readonly escalationId: string;
  readonly notice: number;
  readonly channel: Channel;
}

/** Tells a session the fate of a held result, or an answer. */
export interface TellSession {
  readonly kind: "tellSession";
  readonly effectId: string;
  readonly tellingId: string;
}

/** Returns the checks, expiries of questions, notices and tellings that are due now; nothing is carried out here. */
export function planGateEffects(state: OpenCoordination, now: EpochMs, capacity: Capacity): GateEffect[] {
  return [
    ...planChecks(state),
    ...planQuestionExpiries(state, now),
    ...planNotices(state, now, capacity),
    ...planTellings(state),
  ];
}

/**
 * Lists the times at which `planGateEffects` has something to do. For what is due now, that is the time of the newest
 * change.
 */
export function listGateDeadlines(state: OpenCoordination): EpochMs[] {
  const questions = state.openQuestions.valueSeq().toArray();
  const unsentTimes = listOpenQuestions(state).flatMap((question) =>
    listUnsentNotices(question).map(({ atMs }) => atMs),
  );
  const isBusy =
    listDeliverableTellings(state).length > 0 ||
    listOpenQuestions(state).some((question) => isQuestionAbandoned(state, question)) ||
    state.held.some((stepId) => isWaitingForChecks(state, stepId));
  return [...questions, ...unsentTimes, ...(isBusy ? [state.changedAtMs] : [])];
}

function isWaitingForChecks(state: OpenCoordination, stepId: StepId): boolean {
  return listMissingChecks(state, stepId).length > 0;
}

/** Lists the checks of a held result that have not answered; none where people are asked about it. */
function listMissingChecks(state: OpenCoordination, stepId: StepId): readonly string[] {
  const step = findHeldStep(state, stepId);
  if (!step || step.phase.escalationId) return [];
  const verdict = ruleOnVerdicts(readStepGate(step), { ...step.phase, revisions: step.revisions ?? 0 });
  return verdict.outcome === "wait" ? verdict.checks : [];
}

function planChecks(state: OpenCoordination): VerifyResult[] {
  return state.held.toArray().flatMap((stepId): VerifyResult[] => {
    const missing = listMissingChecks(state, stepId);
    if (missing.length === 0) return [];
    const attempt = state.steps.get(stepId)?.phase.attempt ?? 0;
    const key = createIdempotencyKey(state.coordinationId, stepId, attempt);
    return [{ kind: "verifyResult", effectId: `${key}:verify`, stepId, attempt, checks: missing }];
  });
}

function planQuestionExpiries(state: OpenCoordination, now: EpochMs): ExpireQuestion[] {
  return listOpenQuestions(state)
    .filter((question) => now >= question.deadlineAtMs || isQuestionAbandoned(state, question))
    .map(({ escalationId }) => ({
      kind: "expireQuestion",
      effectId: `${state.coordinationId}:expire:${escalationId}`,
      escalationId,
    }));
}

/**
 * Plans at most one notice for each channel, so that people hear of the questions of one coordination in their order. A notice that
 * has been under way for its turn holds up no other one: a channel may never answer.
 */
function planNotices(state: OpenCoordination, now: EpochMs, { hasHadTurn }: Capacity): NotifyPeople[] {
  const next = new Map<Channel, NotifyPeople>();
  for (const question of listOpenQuestions(state)) {
    const { escalationId } = question;
    for (const { channel, atMs, notice } of listUnsentNotices(question)) {
      if (atMs > now || next.has(channel)) continue;
      const effectId = `${state.coordinationId}:notify:${channel}:${escalationId}:${notice}`;
      if (hasHadTurn?.(effectId) === true) continue;
      next.set(channel, { kind: "notifyPeople", effectId, escalationId, notice, channel });
    }
  }
  return [...next.values()];
}

/**
 * Returns the ids of the tellings that can be delivered now. A child in a run that the host follows is told only when
 * its work is over, every other session at once.
 */
function listDeliverableTellings({ tellings: open, children, steps }: OpenCoordination): string[] {
  const isAtWork = (session: SessionKey): boolean => {
    const stepId = children.get(session);
    const step = stepId === undefined ? undefined : steps.get(stepId);
    return step !== undefined && isAtWorkForHost(step);
  };
  return open
    .filter(({ session }) => !isAtWork(session))
    .keySeq()
    .toArray();
}

function planTellings(state: OpenCoordination): TellSession[] {
  const { coordinationId } = state;
  return listDeliverableTellings(state).map((tellingId) => ({
    kind: "tellSession",
    effectId: `${coordinationId}:tell:${tellingId}`,
    tellingId,
  }));
}
