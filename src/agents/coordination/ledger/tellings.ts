/** Owns: what sessions are told of those that work for them, and the names and times of these tellings. */
import type { FactPayloads } from "../contracts/facts.ts";
import type { EpochMs, SessionKey } from "../contracts/ids.ts";
import { isEnded, type KnownCoordination, type Step, type PendingTelling } from "./state.ts";

/** A session has few questions and held results of its children open at once. */
const TELLINGS_MAX = 20;

/** Returns the id of the telling by which a parent's session learns that it is asked a question. */
export function nameQuestionTelling(escalationId: string): string {
  return `question:${escalationId}`;
}

/**
 * Returns the telling by which a session learns that it is asked a question in place of people; `undefined` where
 * people are asked.
 */
export function createQuestionTelling(
  { escalationId, askedOf }: FactPayloads["coordination.escalated"],
  sinceMs: EpochMs,
): PendingTelling | undefined {
  if (!askedOf) return undefined;
  const tellingId = nameQuestionTelling(escalationId);
  return { tellingId, session: askedOf, sinceMs, of: { kind: "question", escalationId } };
}

/**
 * Returns the telling by which a parent learns what became of a result that was kept from it; `undefined` where the
 * step has not ended, or nobody waits for that.
 */
export function createResultTelling(step: Step): PendingTelling | undefined {
  const { spec, phase } = step;
  if (!isEnded(phase) || !isResultAwaited(step)) return undefined;
  const { stepId, sourceSession: session } = spec;
  const { attempt, endedAtMs: sinceMs } = phase;
  const tellingId = `result:${stepId}:${attempt}`;
  return { tellingId, session, sinceMs, of: { kind: "result", stepId, attempt } };
}

/** True when the parent has a placeholder, which promises that it will be told more. */
function isResultAwaited({ spec, phase, withheld }: Step): boolean {
  if (spec.planned) return false;
  return withheld !== undefined || ("error" in phase && phase.error.code === "result_lost");
}

/**
 * Lists, by time and up to a bound, the newest tellings that a session may have had, or may still get. Those of which
 * no turn began are left out.
 */
export function listTellingsToSession(state: KnownCoordination, session: SessionKey): PendingTelling[] {
  const { escalations, steps, tellings, untold } = state;
  const questions = escalations
    .toList()
    .map((question) => createQuestionTelling(question, question.askedAtMs));
  const results = steps.toList().map(createResultTelling);
  const allTellings = [...questions, ...results, ...tellings.values()].filter(
    (telling) => telling !== undefined,
  );
  const byId = new Map(
    allTellings
      .filter((telling) => telling.session === session && !untold.has(telling.tellingId))
      .map((each) => [each.tellingId, each]),
  );
  return [...byId.values()].toSorted((a, b) => a.sinceMs - b.sinceMs).slice(-TELLINGS_MAX);
}
