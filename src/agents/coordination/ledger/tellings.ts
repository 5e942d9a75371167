/** Owns: what sessions are told of those that work for them, and the names and times of these tellings. */
import type { FactPayloads } from "../contracts/facts.ts";
import type { EpochMs, SessionKey } from "../contracts/ids.ts";
import { isEnded, type KnownCoordination, type Step, type Telling } from "./state.ts";

/** A session has few questions and held results of its children open at once. */
const TELLINGS_MAX = 20;

/** Names the telling by which a session learns that it is asked. */
export function nameQuestionTelling(escalationId: string): string {
  return `question:${escalationId}`;
}

/** Creates the telling by which a session learns that it is asked in place of people; `undefined` where people are asked. */
export function createQuestionTelling(
  { escalationId, askedOf }: FactPayloads["coordination.escalated"],
  sinceMs: EpochMs,
): Telling | undefined {
  if (!askedOf) return undefined;
  const tellingId = nameQuestionTelling(escalationId);
  return { tellingId, session: askedOf, sinceMs, of: { kind: "question", escalationId } };
}

/** Creates the telling by which a parent learns what became of a result; `undefined` unless that was kept from it and is settled. */
export function createResultTelling(step: Step): Telling | undefined {
  const { spec, phase } = step;
  if (!isEnded(phase) || !isAwaited(step)) return undefined;
  const { stepId, sourceSession: session } = spec;
  const { attempt, endedAtMs: sinceMs } = phase;
  const tellingId = `result:${stepId}:${attempt}`;
  return { tellingId, session, sinceMs, of: { kind: "result", stepId, attempt } };
}

/** True when the parent has a placeholder, which promises that it will be told more. */
function isAwaited({ spec, phase, withheld }: Step): boolean {
  if (spec.planned) return false;
  return withheld !== undefined || ("error" in phase && phase.error.code === "result_lost");
}

/** Lists the tellings to a session that may have a turn, or may get one, but for old ones, whose turns are long over. */
export function listTellingsTo(state: KnownCoordination, session: SessionKey): Telling[] {
  const { escalations, steps, tellings, untold } = state;
  const questions = escalations
    .toList()
    .map((question) => createQuestionTelling(question, question.askedAtMs));
  const results = steps.toList().map(createResultTelling);
  const all = [...questions, ...results, ...tellings.values()].filter((telling) => telling !== undefined);
  const byId = new Map(
    all
      .filter((telling) => telling.session === session && !untold.has(telling.tellingId))
      .map((each) => [each.tellingId, each]),
  );
  return [...byId.values()].toSorted((a, b) => a.sinceMs - b.sinceMs).slice(-TELLINGS_MAX);
}
