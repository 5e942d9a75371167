/** Owns: what the runtime should do next about held results, questions to people and sessions that are to be told something. */
import type { Channel } from "../contracts/escalation.ts";
import { idempotencyKey, type EpochMs, type SessionKey, type StepId } from "../contracts/ids.ts";
import { unsentNotices } from "../escalation/notices.ts";
import { verifierGate } from "../gates/verifier-gate.ts";
import type { OpenCoordination } from "../ledger/state.ts";
import { heldStepOf } from "./decide-held.ts";

export type GateEffect = VerifyResult | ExpireQuestion | NotifyPeople | TellSession;

/** Ask the checks of a held result that have not answered. */
export interface VerifyResult {
  readonly kind: "verifyResult";
  readonly effectId: string;
  readonly stepId: StepId;
  readonly attempt: number;
  readonly checks: readonly string[];
}

/** Nobody answered in time. */
export interface ExpireQuestion {
  readonly kind: "expireQuestion";
  readonly effectId: string;
  readonly escalationId: string;
}

export interface NotifyPeople {
  readonly kind: "notifyPeople";
  readonly effectId: string;
  readonly escalationId: string;
  readonly notice: number;
  readonly channel: Channel;
}

export interface TellSession {
  readonly kind: "tellSession";
  readonly effectId: string;
  readonly tellingId: string;
}

export function gateEffects(state: OpenCoordination, now: EpochMs): GateEffect[] {
  return [...checks(state), ...expiries(state, now), ...notices(state, now), ...tellings(state)];
}

/** What is due now is due since the newest change. */
export function gateDeadlines(state: OpenCoordination): EpochMs[] {
  const questions = state.openQuestions.valueSeq().toArray();
  const unsent = openQuestionsOf(state).flatMap((question) =>
    unsentNotices(question).map(({ atMs }) => atMs),
  );
  const isBusy = tellable(state).length > 0 || state.held.some((stepId) => waitsForChecks(state, stepId));
  return [...questions, ...unsent, ...(isBusy ? [state.changedAtMs] : [])];
}

function waitsForChecks(state: OpenCoordination, stepId: StepId): boolean {
  return missingChecks(state, stepId).length > 0;
}

function missingChecks(state: OpenCoordination, stepId: StepId): readonly string[] {
  const step = heldStepOf(state, stepId);
  if (!step || step.phase.escalationId) return [];
  const verdict = verifierGate(step.spec.gate, { ...step.phase, revisions: step.revisions ?? 0 });
  return verdict.outcome === "wait" ? verdict.checks : [];
}

function checks(state: OpenCoordination): VerifyResult[] {
  return state.held.toArray().flatMap((stepId): VerifyResult[] => {
    const missing = missingChecks(state, stepId);
    if (missing.length === 0) return [];
    const attempt = state.steps.get(stepId)?.phase.attempt ?? 0;
    const key = idempotencyKey(state.coordinationId, stepId, attempt);
    return [{ kind: "verifyResult", effectId: `${key}:verify`, stepId, attempt, checks: missing }];
  });
}

function expiries({ openQuestions, coordinationId }: OpenCoordination, now: EpochMs): ExpireQuestion[] {
  return openQuestions
    .filter((deadlineAtMs) => now >= deadlineAtMs)
    .keySeq()
    .toArray()
    .map((escalationId) => ({
      kind: "expireQuestion",
      effectId: `${coordinationId}:expire:${escalationId}`,
      escalationId,
    }));
}

function openQuestionsOf({ openQuestions, escalations }: OpenCoordination) {
  return openQuestions
    .keySeq()
    .toArray()
    .flatMap((escalationId) => escalations.get(escalationId) ?? []);
}

/** One at a time on each channel, so that people hear of the questions of one coordination in their order. */
function notices(state: OpenCoordination, now: EpochMs): NotifyPeople[] {
  const next = new Map<Channel, NotifyPeople>();
  for (const question of openQuestionsOf(state)) {
    const { escalationId } = question;
    for (const { channel, atMs, notice } of unsentNotices(question)) {
      if (atMs > now || next.has(channel)) continue;
      const effectId = `${state.coordinationId}:notify:${channel}`;
      next.set(channel, { kind: "notifyPeople", effectId, escalationId, notice, channel });
    }
  }
  return [...next.values()];
}

/**
 * A child that a model spawned is told when its own work is over: a turn of ours in the middle of it would take the place of its run
 * in the host's records. Of a planned step we follow the run by its key.
 */
function tellable({ tellings: open, children, steps }: OpenCoordination): string[] {
  const isAtWork = (session: SessionKey): boolean => {
    const stepId = children.get(session);
    const step = stepId && steps.get(stepId);
    if (!step || step.spec.planned) return false;
    return step.phase.status === "dispatched" || step.phase.status === "running";
  };
  return open
    .filter(({ session }) => !isAtWork(session))
    .keySeq()
    .toArray();
}

function tellings(state: OpenCoordination): TellSession[] {
  const { coordinationId } = state;
  return tellable(state).map((tellingId) => ({
    kind: "tellSession",
    effectId: `${coordinationId}:tell:${tellingId}`,
    tellingId,
  }));
}
