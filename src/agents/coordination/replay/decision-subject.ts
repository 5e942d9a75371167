/** Owns: what a decision is about, and giving the facts of another decision the names of the recorded ones. */
import type { Command } from "../contracts/commands.ts";
import type { StepAdmitted } from "../contracts/fact-fields.ts";
import type { StepId } from "../contracts/ids.ts";
import type { FactDraft } from "../contracts/run-event.ts";
import type { Coordination, OpenCoordination } from "../ledger/state.ts";
import type { ReplayedDecision } from "./replay-log.ts";

/** Returns what a step was admitted with, which never changes; `undefined` for an unknown step. */
export function findStepSpec(state: Coordination, stepId: StepId): StepAdmitted | undefined {
  return state.kind === "unopened" ? undefined : state.steps.get(stepId)?.spec;
}

/**
 * Returns the id of the one step that a recorded command is about; `undefined` where it is about several or the whole
 * coordination, or where no command is known.
 */
export function findSubjectStepId(
  before: Coordination,
  { command, facts: [fact] }: ReplayedDecision,
): StepId | undefined {
  if (!command || before.kind !== "open") return undefined;
  if (command.type === "admitSpawn") return fact.type === "step.admitted" ? fact.payload.stepId : undefined;
  if ("stepId" in command && command.stepId) return command.stepId;
  return findIndirectSubject(before, command);
}

/**
 * Returns the step behind the question, child, conflict, message or first claim that a command names, or the one step
 * that it skips; `undefined` for any other command.
 */
function findIndirectSubject(state: OpenCoordination, command: Command): StepId | undefined {
  switch (command.type) {
    case "answerEscalation":
    case "expireEscalation":
    case "recordNotice":
      return state.escalations.get(command.escalationId)?.stepId;
    case "stopChild":
      return state.plan?.strays.get(command.childSessionKey)?.stepId;
    case "settleReview":
      return findStepOfConflict(state, command.conflictId);
    case "recordTelling":
      return findStepOfTelling(state, command.tellingId);
    case "releaseClaims":
      return state.claims.get(command.tokens?.[0] ?? 0)?.stepId;
    case "skipSteps":
      return command.stepIds.length === 1 ? command.stepIds[0] : undefined;
    default:
      return undefined;
  }
}

/** Returns the step whose request is contested in a conflict. */
function findStepOfConflict({ conflicts }: OpenCoordination, conflictId: string): StepId | undefined {
  return conflicts.findLast((conflict) => conflict.conflictId === conflictId)?.contest?.requester;
}

function findStepOfTelling(
  { tellings, escalations }: OpenCoordination,
  tellingId: string,
): StepId | undefined {
  const of = tellings.get(tellingId)?.of;
  return of && (of.kind === "result" ? of.stepId : escalations.get(of.escalationId)?.stepId);
}

/**
 * True for a kind of command that acts on one step, question, claim or plan, so that it means nothing in a history
 * where that subject is not there.
 */
export function isMootWithoutSubject({ type }: Command): boolean {
  return MOOT_WITHOUT_SUBJECT.has(type);
}

const MOOT_WITHOUT_SUBJECT: ReadonlySet<Command["type"]> = new Set([
  "answerEscalation",
  "expireEscalation",
  "recordNotice",
  "recordTelling",
  "withholdText",
  "recordShortened",
  "recordSuppressed",
  "reportStep",
  "releaseClaims",
  "settleReview",
  "judgePlan",
  "stopChild",
]);

/** Lists, each once, the ids of the steps that facts name, or whose question they close or answer. */
export function listTouchedSteps(state: Coordination, facts: readonly FactDraft[]): StepId[] {
  if (state.kind === "unopened") return [];
  const ids = facts.flatMap((fact): StepId[] => {
    if ("stepId" in fact.payload && fact.payload.stepId) return [fact.payload.stepId];
    if (fact.type !== "escalation.closed" && fact.type !== "escalation.answered") return [];
    const stepId = state.escalations.get(fact.payload.escalationId)?.stepId;
    return stepId ? [stepId] : [];
  });
  return [...new Set(ids)];
}

/**
 * True when a recorded fact can also be told in another open history: its claim, conflict or step stands there as
 * then, or a claim or conflict that begins by it is not there yet.
 */
export function isFactTransferable(state: Coordination, before: Coordination, fact: FactDraft): boolean {
  if (state.kind !== "open" || before.kind !== "open") return false;
  switch (fact.type) {
    case "claim.renewed":
    case "claim.released":
      return state.claims.get(fact.payload.token)?.stepId === fact.payload.stepId;
    case "claim.acquired":
      return fact.payload.token > state.newestToken;
    case "conflict.detected":
      return state.conflicts.every(({ conflictId }) => conflictId !== fact.payload.conflictId);
    case "conflict.resolved":
      return state.conflicts.some(
        ({ conflictId, resolution }) => conflictId === fact.payload.conflictId && !resolution,
      );
    default:
      return listTouchedSteps(before, [fact]).every((stepId) => isStepAsItWas(state, before, stepId));
  }
}

function isStepAsItWas(state: OpenCoordination, before: OpenCoordination, stepId: StepId): boolean {
  const [now, then] = [state.steps.get(stepId)?.phase, before.steps.get(stepId)?.phase];
  return now?.status === then?.status && now?.attempt === then?.attempt;
}

/**
 * Returns the facts of a new decision with the ids of steps and questions that the recorded decision gave to the same
 * ones. A question that is in the new one alone gets an id of `newName`.
 */
export function withRecordedNames(
  recorded: readonly FactDraft[],
  derived: readonly FactDraft[],
  newName: () => string,
): FactDraft[] {
  const stepIds = mapSpawnNames(recorded[0], derived[0]);
  const questions = new Map<string, string>();
  const unmatchedQuestions = recorded.filter((fact) => fact.type === "coordination.escalated");
  for (const fact of derived) {
    if (fact.type !== "coordination.escalated") continue;
    const at = unmatchedQuestions.findIndex(({ payload }) => payload.stepId === fact.payload.stepId);
    const [same] = at === -1 ? [] : unmatchedQuestions.splice(at, 1);
    questions.set(fact.payload.escalationId, same?.payload.escalationId ?? newName());
  }
  if (questions.size === 0 && stepIds.size === 0) return [...derived];
  return derived.map((fact) => renameInFact(fact, { stepIds, questions }));
}

function mapSpawnNames(recorded: FactDraft | undefined, derived: FactDraft | undefined): Map<StepId, StepId> {
  const isSpawn = recorded?.type === "step.admitted" && derived?.type === "step.admitted";
  return new Map(isSpawn ? [[derived.payload.stepId, recorded.payload.stepId]] : []);
}

/** The ids of steps and questions in one history, by those in the other. */
interface IdTranslation {
  readonly stepIds: ReadonlyMap<StepId, StepId>;
  readonly questions: ReadonlyMap<string, string>;
}

function renameInFact(fact: FactDraft, { stepIds, questions }: IdTranslation): FactDraft {
  const { payload } = fact;
  const stepId = "stepId" in payload && payload.stepId ? stepIds.get(payload.stepId) : undefined;
  return {
    ...fact,
    payload: { ...payload, ...(stepId && { stepId }), ...pickRenamedQuestion(fact, questions) },
  } as FactDraft;
}

/** Returns the field of a fact that names a question, with its new name; empty where the fact names none. */
function pickRenamedQuestion(fact: FactDraft, questions: IdTranslation["questions"]): object {
  if (fact.type === "coordination.escalated") {
    const escalationId = questions.get(fact.payload.escalationId);
    return escalationId === undefined ? {} : { escalationId };
  }
  if (fact.type !== "step.failed" && fact.type !== "step.timed_out") return {};
  const { escalated } = fact.payload;
  const escalationId = escalated && questions.get(escalated.escalationId);
  return escalationId === undefined ? {} : { escalated: { ...escalated, escalationId } };
}
