/**
 * Owns: what may have come of a history of gates and questions, told from the commands and their times alone. It knows nothing of
 * how the core decides.
 */
import type {
  AnswerEscalation,
  Command,
  RecordFinding,
  StatedConfidence,
} from "../../src/agents/coordination/contracts/commands.ts";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import type { History, PlayedCommand } from "./gates-play.ts";

type Fact<T extends RunEvent["type"]> = Extract<RunEvent, { type: T }>;
type Question = FactPayloads["coordination.escalated"];
type AdmissionPayload = FactPayloads["step.admitted"];

const filterByType = <T extends RunEvent["type"]>(events: readonly RunEvent[], type: T): Fact<T>[] =>
  events.filter((event): event is Fact<T> => event.type === type);

/** The specs as they were admitted. */
export function specsOf({ log }: Pick<History, "log">): ReadonlyMap<string, AdmissionPayload> {
  return new Map(filterByType(log, "step.admitted").map(({ payload }) => [payload.stepId, payload]));
}

const isAccepted = ({ decision }: PlayedCommand): boolean => decision.kind === "accepted";

function acceptedOf<T extends Command["type"]>(
  played: readonly PlayedCommand[],
  type: T,
): (PlayedCommand & { readonly command: Extract<Command, { type: T }> })[] {
  return played.filter(
    (each): each is PlayedCommand & { readonly command: Extract<Command, { type: T }> } =>
      each.command.type === type && isAccepted(each),
  );
}

/** Why results were let through that may not be; empty where all is well. */
export function findWronglyLetThrough(history: History): string[] {
  const specs = specsOf(history);
  return history.played.flatMap((each, index) =>
    filterByType(each.events, "step.completed").flatMap(({ payload }) => {
      const gate = specs.get(payload.stepId)?.gate;
      if (!gate) return [];
      const before = history.played.slice(0, index + 1);
      return mayCount(gate, payload, before)
        ? []
        : [`${payload.stepId} ${payload.attempt} ${payload.released ?? "at once"}`];
    }),
  );
}

interface StepAttempt {
  readonly stepId: string;
  readonly attempt: number;
}

const isOf = (a: StepAttempt, b: StepAttempt): boolean => a.stepId === b.stepId && a.attempt === b.attempt;

function mayCount(
  gate: Gate,
  completed: FactPayloads["step.completed"],
  before: readonly PlayedCommand[],
): boolean {
  const last = before.at(-1);
  if (!last || !isAccepted(last)) return false;
  const stated = findStated(before, completed);
  switch (completed.released) {
    case undefined:
      return last.command.type === "completeStep" && (gate.checks ?? []).length === 0 && isSure(gate, stated);
    case "verified":
      return isSure(gate, stated) && hasPassed(gate, completed, before);
    case "approved":
    case "replaced":
      return isRuledOn(completed, before);
  }
}

function isSure(
  { threshold, requireConfidence }: Gate,
  { confidence, confidenceUnreadable }: StatedConfidence,
): boolean {
  if (confidenceUnreadable) return false;
  return confidence === undefined ? requireConfidence !== true : confidence >= threshold;
}

/** The newest report, else what came with the result, else the newest text that was kept back. */
function findStated(before: readonly PlayedCommand[], of: StepAttempt): StatedConfidence {
  const report = acceptedOf(before, "reportStep").findLast(({ command }) => isOf(command, of))?.command;
  if (report?.confidence !== undefined) return { confidence: report.confidence };
  const completion = acceptedOf(before, "completeStep").find(({ command }) => isOf(command, of))?.command;
  return completion?.stated ?? findSaid(before, of);
}

function findSaid(before: readonly PlayedCommand[], of: StepAttempt): StatedConfidence {
  const statement = acceptedOf(before, "withholdText").findLast(({ command }) => isOf(command, of))?.command;
  if (statement?.confidenceUnreadable) return { confidenceUnreadable: true };
  return statement?.confidence === undefined ? {} : { confidence: statement.confidence };
}

/** The `agent.decided` behind the fact that the result of the attempt is held. */
function targetOf(before: readonly PlayedCommand[], of: StepAttempt): string | undefined {
  for (const { events } of before) {
    const at = events.findIndex(({ type, payload }) => type === "result.held" && isOf(payload, of));
    if (at >= 0) return events.slice(at).find(({ type }) => type === "agent.decided")?.eventId;
  }
  return undefined;
}

/** Every check passed, on this very result, sure enough of itself, by somebody who may. */
function hasPassed(gate: Gate, of: StepAttempt, before: readonly PlayedCommand[]): boolean {
  const target = targetOf(before, of);
  const rulings = acceptedOf(before, "recordFinding")
    .map(({ command }) => command)
    .filter((command) => isOf(command, of) && command.target === target);
  const failures = acceptedOf(before, "recordNoVerdict").filter(({ command }) => isOf(command, of));
  const checks = gate.checks ?? [];
  return (
    target !== undefined &&
    checks.length > 0 &&
    failures.length === 0 &&
    checks.every((check) => rulings.filter(({ finding }) => finding.check === check).length === 1) &&
    rulings.every((ruling) => isPass(gate, ruling))
  );
}

function isPass(gate: Gate, { finding }: RecordFinding): boolean {
  const { verdict, confidence = 10_000, self } = finding;
  return (
    verdict === "pass" && confidence >= (gate.criticThreshold ?? 0) && (!self || gate.allowSelf === true)
  );
}

/** People let it through in time: it is their answer that made it count. */
function isRuledOn(completed: FactPayloads["step.completed"], before: readonly PlayedCommand[]): boolean {
  const last = before.at(-1);
  if (last?.command.type !== "answerEscalation") return false;
  const { command, now } = last;
  const earlier = before.slice(0, -1);
  const escalation = findAsked(earlier, command.escalationId);
  if (!escalation || targetOf(earlier, completed) === undefined) return false;
  const isInTime = !isClosedIn(earlier, command.escalationId) && mayAnswer(earlier, escalation, command, now);
  return isInTime && isAboutResult(escalation, completed) && isRelease(command, completed);
}

function isAboutResult({ cause, confidence, stepId }: Question, of: StepAttempt): boolean {
  if (stepId !== of.stepId) return false;
  return cause === "verifier" || (cause === "confidence" && confidence?.of !== "decision");
}

function isRelease(
  { answer, text }: AnswerEscalation,
  { released, output }: FactPayloads["step.completed"],
): boolean {
  if (released !== "replaced") return answer === "approve";
  return answer === "answer" && text !== undefined && text.sha256 === output?.sha256;
}

function mayAnswer(
  before: readonly PlayedCommand[],
  escalation: Question,
  { by: { session } }: AnswerEscalation,
  now: number,
): boolean {
  const isSame =
    session !== undefined && (session === escalation.askedBy || session === findPlanOwner(before));
  return now < escalation.deadlineAtMs && !(escalation.requireDifferentApprover && isSame);
}

/** The session whose plan it is; none where only spawns were observed. */
function findPlanOwner(played: readonly PlayedCommand[]): string | undefined {
  const [created] = played.flatMap(({ events }) => filterByType(events, "coordination.created"));
  return created?.payload.plan && created.payload.ownerSession;
}

function findAsked(played: readonly PlayedCommand[], escalationId: string): Question | undefined {
  return played
    .flatMap(({ events }) => filterByType(events, "coordination.escalated"))
    .find(({ payload }) => payload.escalationId === escalationId)?.payload;
}

function isClosedIn(played: readonly PlayedCommand[], escalationId: string): boolean {
  return played
    .flatMap(({ events }) => filterByType(events, "escalation.closed"))
    .some(({ payload }) => payload.escalationId === escalationId);
}

/** Why decisions that people were to make were carried out without them; empty where all is well. */
export function findWronglyBegun(history: History): string[] {
  const specs = specsOf(history);
  const planDoubt = filterByType(history.log, "coordination.created").some(
    ({ payload }) => payload.plan?.decision,
  );
  return history.played.flatMap((each, index) =>
    filterByType(each.events, "step.dispatched").flatMap(({ payload: { stepId, attempt } }) => {
      const before = history.played.slice(0, index);
      const spec = specs.get(stepId);
      const problems: string[] = [];
      if (isBegunBefore(before, { stepId, attempt })) problems.push(`${stepId} ${attempt} twice`);
      if (spec?.decision && !isAllowed(before, stepId)) problems.push(`${stepId} without an answer`);
      const isWork = spec?.planned && stepId !== "@delivery";
      if (planDoubt && isWork && !isAllowed(before, undefined))
        problems.push(`${stepId} of a plan without an answer`);
      return problems;
    }),
  );
}

function isBegunBefore(before: readonly PlayedCommand[], of: StepAttempt): boolean {
  return before.some(({ events }) =>
    filterByType(events, "step.dispatched").some(({ payload }) => isOf(payload, of)),
  );
}

/** An approval of this very decision came in time. */
function isAllowed(before: readonly PlayedCommand[], stepId: string | undefined): boolean {
  return acceptedOf(before, "answerEscalation").some(({ command, now }) => {
    const escalation = findAsked(before, command.escalationId);
    return (
      escalation !== undefined &&
      escalation.cause === "confidence" &&
      escalation.confidence?.of === "decision" &&
      escalation.stepId === stepId &&
      command.answer === "approve" &&
      mayAnswer(before, escalation, command, now)
    );
  });
}

const ENDS: ReadonlySet<string> = new Set([
  "step.completed",
  "step.failed",
  "step.timed_out",
  "result.revised",
]);

/** Attempts that ended in more than one way, or more than once. */
export function findEndedTwice({ log }: History): string[] {
  const seen = new Map<string, string>();
  return log.flatMap((event) => {
    if (!ENDS.has(event.type)) return [];
    const { stepId, attempt } = event.payload as StepAttempt;
    const key = `${stepId} ${attempt}`;
    const before = seen.get(key);
    seen.set(key, event.type);
    return before ? [`${key}: ${before}, ${event.type}`] : [];
  });
}

/** Questions that were closed or answered more than once, or answered after they were closed. */
export function findRuledTwice({ log }: History): string[] {
  const counted = new Map<string, number>();
  const closed = new Map<string, number>();
  const problems: string[] = [];
  for (const event of log) {
    if (event.type === "escalation.answered" && !event.payload.refused) {
      const { escalationId } = event.payload;
      counted.set(escalationId, (counted.get(escalationId) ?? 0) + 1);
      if (closed.has(escalationId)) problems.push(`${escalationId} answered after its end`);
    }
    if (event.type === "escalation.closed")
      closed.set(event.payload.escalationId, (closed.get(event.payload.escalationId) ?? 0) + 1);
  }
  for (const [escalationId, times] of [...counted, ...closed])
    if (times > 1) problems.push(`${escalationId} ${times} times`);
  return problems;
}

/** Verdicts about a result for which people were asked before; what did not count is in the log under another name. */
export function findRuledTooLate({ log }: History): string[] {
  const askedIds = new Set<string>();
  const attempts = new Map<string, number>();
  return log.flatMap((event) => {
    if (event.type === "step.dispatched") attempts.set(event.payload.stepId, event.payload.attempt);
    if (event.type === "coordination.escalated") {
      const { stepId = "" } = event.payload;
      const about = { stepId, attempt: attempts.get(stepId) ?? 0 };
      if (isAboutResult(event.payload, about)) askedIds.add(`${stepId} ${about.attempt}`);
    }
    if (event.type !== "result.verified" && event.type !== "verification.failed") return [];
    const { stepId, attempt } = event.payload;
    return askedIds.has(`${stepId} ${attempt}`) ? [event.eventId] : [];
  });
}

/** Questions that expired before their deadline; and what people withheld and was begun again. */
export function findEndedWrongly({ played }: History): string[] {
  const deadlines = new Map<string, number>();
  const withheld = new Set<string>();
  return played.flatMap(({ events, now }) =>
    events.flatMap((event) => {
      if (event.type === "coordination.escalated")
        deadlines.set(event.payload.escalationId, event.payload.deadlineAtMs);
      if (event.type === "step.failed" && event.payload.error.code === "withheld")
        withheld.add(event.payload.stepId);
      const isEarly =
        event.type === "escalation.closed" &&
        event.payload.resolution === "expired" &&
        now < (deadlines.get(event.payload.escalationId) ?? Infinity);
      const isAgain = event.type === "step.dispatched" && withheld.has(event.payload.stepId);
      return isEarly || isAgain ? [event.eventId] : [];
    }),
  );
}

/** Questions about results whose steps wait for no ruling any more, and which are open all the same. */
export function findOutlived({ log, state }: History): string[] {
  if (state.kind === "unopened") return [];
  const closed = new Set(filterByType(log, "escalation.closed").map(({ payload }) => payload.escalationId));
  return filterByType(log, "coordination.escalated")
    .map(({ payload }) => payload)
    .filter(
      (escalation) =>
        escalation.stepId !== undefined &&
        isAboutResult(escalation, { stepId: escalation.stepId, attempt: 0 }),
    )
    .filter(({ escalationId }) => !closed.has(escalationId))
    .filter(({ stepId }) => stepId && state.steps.get(stepId)?.phase.status !== "held")
    .map(({ escalationId }) => escalationId);
}
