/** Owns: what must be true of every plan that was played, by the ledger and by what the host knows (D1 to D6, delivery). */
import { DELIVERY_STEP_ID, createIdempotencyKey } from "../../src/agents/coordination/contracts/ids.ts";
import { isFact, type FactEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { checkBudget } from "./plan-check-budget.ts";
import { checkGates } from "./plan-check-gates.ts";
import { checkHost } from "./plan-check-host.ts";
import { checkFates } from "./plan-check-fates.ts";
import type { AnsweredRequest, PlayedPlan } from "./plan-play.ts";
import type { ScheduledRequest } from "./plan-schedule.ts";

export type FactOf<T extends FactEvent["type"]> = Extract<FactEvent, { type: T }>;

export const filterByType = <T extends FactEvent["type"]>(
  facts: readonly FactEvent[],
  type: T,
): FactOf<T>[] => facts.filter((fact): fact is FactOf<T> => fact.type === type);

export type OutcomeFact = FactOf<"step.completed" | "step.failed" | "step.timed_out">;

export interface Evidence extends PlayedPlan {
  readonly facts: readonly FactEvent[];
  readonly admitted: ReadonlyMap<string, FactOf<"step.admitted">["payload"]>;
  readonly dispatches: readonly FactOf<"step.dispatched">[];
  /** Attempts under way, without the refused ones. */
  readonly outcomes: readonly OutcomeFact[];
  readonly created: FactOf<"coordination.created">["payload"];
}

/** Everything that is wrong; nothing where all promises were kept. */
export function problemsOf(played: PlayedPlan): string[] {
  const facts = played.events.filter(isFact);
  const [created] = filterByType(facts, "coordination.created");
  if (!created) return [...played.problems, "there is no coordination"];
  const evidence: Evidence = {
    ...played,
    facts,
    admitted: new Map(filterByType(facts, "step.admitted").map(({ payload }) => [payload.stepId, payload])),
    dispatches: filterByType(facts, "step.dispatched"),
    outcomes: facts.filter((fact): fact is OutcomeFact => OUTCOMES.has(fact.type)),
    created: created.payload,
  };
  const ended = checkEnd(evidence);
  // The checks of an end have no meaning without one.
  if (ended.length > 0) return [...played.problems, ...ended];
  return [
    ...played.problems,
    ...checkAttempts(evidence),
    ...checkOrder(evidence),
    ...checkLate(evidence),
    ...checkBudget(evidence),
    ...checkAnswers(evidence),
    ...checkGates(evidence),
    ...checkFates(evidence),
    ...checkHost(evidence),
  ];
}

const OUTCOMES: ReadonlySet<string> = new Set(["step.completed", "step.failed", "step.timed_out"]);

/** The plan of an agent whose attempt is over: nobody is told how it ended. */
export function isCutOff({ facts }: Evidence): boolean {
  return filterByType(facts, "coordination.cancel_requested").some(({ payload }) => payload.by === "parent");
}

export const timeOf = ({ timestamp }: { readonly timestamp: string }): number => Date.parse(timestamp);

function checkEnd({ facts }: Evidence): string[] {
  const ends = filterByType(facts, "coordination.terminal");
  if (ends.length !== 1)
    return [
      `D5: ${ends.length} ends; last: ${facts
        .slice(-3)
        .map(({ type, payload }) => `${type} ${JSON.stringify(payload)}`)
        .join(" | ")}`,
    ];
  return facts.at(-1)?.type === "coordination.terminal" ? [] : ["D5: something after the end"];
}

/** D2, D4, and that attempts follow one another. */
function checkAttempts({ facts, dispatches, admitted, outcomes }: Evidence): string[] {
  const problems: string[] = [];
  const keys = dispatches.map(({ payload }) => payload.idempotencyKey);
  if (new Set(keys).size < keys.length) problems.push("D2: a key was dispatched twice");
  // A result goes back to the session that it came from.
  const sessions = dispatches.flatMap(({ payload: { targetSession, stepId, attempt } }) =>
    stepId === DELIVERY_STEP_ID || isRevising(facts, { stepId, attempt }) ? [] : [targetSession],
  );
  if (new Set(sessions).size < sessions.length) problems.push("D2: two attempts have one session");
  for (const { runId, payload } of dispatches) {
    const { stepId, attempt, idempotencyKey: key } = payload;
    if (key !== createIdempotencyKey(runId, stepId, attempt)) problems.push(`D2: ${key} is not the key`);
    const more = ["step.retry_granted", "result.revised"] as const;
    const granted = more
      .flatMap((type) => filterByType<(typeof more)[number]>(facts, type))
      .filter((fact) => fact.payload.stepId === stepId).length;
    const budget = admitted.get(stepId)?.retryBudget ?? 0;
    if (attempt > budget + 1 + granted)
      problems.push(`D4: ${key} with a budget of ${budget} and ${granted} granted`);
  }
  const sentences = outcomes.map(({ payload: { stepId, attempt } }) => `${stepId}:${attempt}`);
  if (new Set(sentences).size < sentences.length) problems.push("D3: an attempt has two outcomes");
  return problems;
}

function isRevising(
  facts: readonly FactEvent[],
  { stepId, attempt }: { readonly stepId: string; readonly attempt: number },
): boolean {
  return filterByType(facts, "result.revised").some(
    ({ payload }) => payload.stepId === stepId && payload.attempt === attempt - 1,
  );
}

/** Lists the steps of a fork whose results are those of its source. */
export function listCarried({ admitted }: Evidence): string[] {
  return [...admitted.values()].flatMap(({ stepId, carried }) => (carried ? [stepId] : []));
}

interface Progress {
  readonly newest: Map<string, number>;
  readonly completed: Set<string>;
}

/** D1, D3, D6 by their places in the log. */
function checkOrder(evidence: Evidence): string[] {
  const progress: Progress = { newest: new Map(), completed: new Set(listCarried(evidence)) };
  return evidence.facts.flatMap((fact) => {
    if (fact.type === "step.dispatched") return checkDispatch(evidence, progress, fact);
    const isOutcome =
      OUTCOMES.has(fact.type) || fact.type === "step.acknowledged" || fact.type === "step.reported";
    return isOutcome && "attempt" in fact.payload ? checkPlace(progress, fact.type, fact.payload) : [];
  });
}

function checkDispatch(
  { admitted }: Evidence,
  { newest, completed }: Progress,
  { payload: { stepId, attempt } }: FactOf<"step.dispatched">,
): string[] {
  const { dependsOn = [], fanIn = 0 } = admitted.get(stepId)?.planned ?? {};
  const met = dependsOn.filter((dependency) => completed.has(dependency)).length;
  const follows = attempt === (newest.get(stepId) ?? 0) + 1;
  newest.set(stepId, attempt);
  return [
    ...(met < fanIn ? [`D6: ${stepId} began with ${met} of ${fanIn}`] : []),
    ...(follows ? [] : [`D3: ${stepId}:${attempt} is out of order`]),
  ];
}

function checkPlace(
  { newest, completed }: Progress,
  type: string,
  { stepId, attempt }: { readonly stepId: string; readonly attempt: number },
): string[] {
  if (type === "step.completed") completed.add(stepId);
  return attempt === newest.get(stepId) ? [] : [`D1, D3: ${type} of ${stepId}:${attempt}`];
}

function checkLate({ facts }: Evidence): string[] {
  const late = filterByType(facts, "step.outcome_refused").map(
    ({ payload: { stepId, attempt, outcome } }) => `${stepId}:${attempt}:${outcome}`,
  );
  return new Set(late).size < late.length ? [`D3: a late outcome was recorded twice: ${late.join(" ")}`] : [];
}

/** Answers to the host are true: the fact behind an accepted request was appended before the answer, and after the request. */
function checkAnswers({ answers, facts }: Evidence): string[] {
  return answers.flatMap((answered) => {
    const { request, answer } = answered;
    if (answer === undefined) return [];
    if (request.subject === "submit again")
      return answer === "replay" ? [] : [`the same plan again was ${answer}`];
    if (request.subject === "submit another")
      return answer === "refused" ? [] : [`another plan was ${answer}`];
    return checkAnswer(facts, answered);
  });
}

function checkAnswer(facts: readonly FactEvent[], answered: AnsweredRequest): string[] {
  const { request, answer, askedFrom, answeredBy } = answered;
  const { subject } = request;
  const isReplay = answer === "replay" && subject === "cancel";
  if (answer !== "accepted" && !isReplay) return [];
  const from = isReplay ? 0 : askedFrom;
  const isThere = facts.some(
    (fact) => fact.sequence >= from && fact.sequence < answeredBy && isRequestedFact(fact, request),
  );
  return isThere ? [] : [`${subject} was ${answer} and is not on disk`];
}

function isRequestedFact(fact: FactEvent, { subject, stepId }: ScheduledRequest): boolean {
  switch (fact.type) {
    case "coordination.cancel_requested":
      return subject === "cancel" && fact.payload.stepId === stepId;
    case "step.retry_granted":
      return subject === "retry" && (stepId === undefined || fact.payload.stepId === stepId);
    case "escalation.closed":
      return subject === "retry" && stepId === undefined && fact.payload.resolution === "continued";
    case "escalation.answered":
      return fact.payload.answer === subject && fact.payload.refused === undefined;
    default:
      return false;
  }
}
