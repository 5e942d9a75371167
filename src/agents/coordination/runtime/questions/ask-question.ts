/** Owns: putting a question of a session to people or to its parent, in the coordination that it belongs to. */
import type { AskPeople, Command } from "../../contracts/commands.ts";
import type { PolicyRef } from "../../contracts/fact-fields.ts";
import type { AgentId, CoordinationId, SessionKey, StepId } from "../../contracts/ids.ts";
import type { TreeBudget } from "../../contracts/usage.ts";
import { findAskedQuestion } from "../../ledger/open-questions.ts";
import { isEnded } from "../../ledger/state.ts";
import { nameChildReference, nameTraceReference } from "../../ledger/summary.ts";
import type { ContentInput } from "../../ports/content-store.ts";
import type { TurnsByName } from "../../std/turns-by-name.ts";
import { chooseRules, withRules, type PolicyRules } from "../environment/policy-rules.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";
import { findStepOfChild } from "../log/step-of-child.ts";
import { createQuestionPolicy } from "./question-policy.ts";
import { createQuestionId, type AskOutcome, type AskRequest } from "./question-requests.ts";
import { encodeQuestion } from "./question-text.ts";
import type { QuestionWaits } from "./question-waits.ts";

/** The collaborators of questions and their answers. */
export interface QuestionDependencies extends RuntimeDependencies {
  readonly newCoordinationId: () => CoordinationId;
  readonly waits: QuestionWaits;
  /** Looking up and opening take turns by name: one for questions and spawns. */
  readonly opening: TurnsByName;
  /** The budget of a coordination that a question opens; absent where the operator sets none. */
  readonly budget?: TreeBudget;
}

/** H3: the question belongs to the step that the session works on, else to a coordination of the session's own. */
export async function askQuestion(
  dependencies: QuestionDependencies,
  request: AskRequest,
): Promise<AskOutcome> {
  const parent = request.to === "parent" ? await findParentSession(dependencies, request.askedBy) : undefined;
  if (request.to === "parent" && !parent) return { kind: "refused", code: "UNKNOWN_STEP", reason: NO_PARENT };
  const place = await findKnownPlace(dependencies, request);
  return place
    ? askInPlace(dependencies, request, { parent, place })
    : runInOpeningTurn(dependencies, request, async () =>
        askInPlace(dependencies, request, {
          parent,
          place:
            (await findKnownPlace(dependencies, request)) ?? (await createNewPlace(dependencies, request)),
        }),
      );
}

/**
 * Does the work in the session's turn for opening coordinations. Parallel questions open one between them, where they
 * are counted together; with spawns of the same trace, too.
 */
function runInOpeningTurn<T>(
  { opening, settings: { gateway } }: QuestionDependencies,
  { askedBy, traceId = QUESTIONS_TRACE }: AskRequest,
  work: () => Promise<T>,
): Promise<T> {
  const trace = nameTraceReference({ session: askedBy, gateway }, traceId);
  return opening.run(nameChildReference(askedBy), () => opening.run(trace, work));
}

async function askInPlace(
  dependencies: QuestionDependencies,
  request: AskRequest,
  { parent, place }: Pick<PlacedQuestion, "parent" | "place">,
): Promise<AskOutcome> {
  const content = createQuestionContent(dependencies, request);
  const ruled = withRules(dependencies, place.rules);
  const command = draftAsking(ruled, request, { parent, place, question: content.ref });
  const opening = { ruled, policy: place.rules?.policy };
  const commands =
    place.kind === "new" ? [draftOpeningOfQuestion(opening, request, content), command] : [command];
  const submitted = await dependencies.runs.submit(place.runId, commands, [content]);
  if (submitted.kind === "refused")
    return { kind: "refused", code: submitted.code, reason: submitted.reason };
  const found = findAskedQuestion(submitted.state, command);
  if (!found) return { kind: "refused", code: "QUESTION_CLOSED", reason: "the question is closed already" };
  return {
    kind: "asked",
    questionId: createQuestionId(place.runId, found.escalationId),
    deadlineAtMs: found.deadlineAtMs,
  };
}

function createQuestionContent(
  { refOf }: QuestionDependencies,
  { question, options, otherwise }: AskRequest,
): ContentInput {
  const text = encodeQuestion({
    question,
    ...(options && { options: [...options] }),
    ...(otherwise !== undefined && { otherwise }),
  });
  return { ref: refOf(text), text, keepWhileRunning: true };
}

/** A question with the coordination that it belongs to, and the parent session it is put to. */
interface PlacedQuestion {
  readonly parent: SessionKey | undefined;
  readonly place: CoordinationOfQuestion;
  readonly question: ContentInput["ref"];
}

function draftAsking(
  { escalations: { openMax, parentAnswerMs }, waits }: QuestionDependencies,
  { askedBy, kind, otherwise, answerMs: wishedMs }: AskRequest,
  { parent, place, question }: PlacedQuestion,
): AskPeople {
  const answerMs = wishedMs ?? (parent && parentAnswerMs);
  return {
    type: "askPeople",
    askedBy,
    kind,
    question,
    hasDefault: otherwise !== undefined,
    openMax,
    tellingsUnderWay: waits.listTellings(place.runId),
    ...(parent && { askedOf: parent }),
    ...(place.stepId && { stepId: place.stepId }),
    ...(answerMs !== undefined && { answerMs }),
  };
}

const NO_PARENT =
  "this session works on no open step, so it has no parent to ask; leave `to` out to ask a person";

async function findParentSession(
  dependencies: QuestionDependencies,
  child: SessionKey,
): Promise<SessionKey | undefined> {
  const found = await findStepOfChild(dependencies, child);
  const isOpen = found?.state.kind === "open" && !isEnded(found.step.phase);
  return isOpen ? found.step.spec.sourceSession : undefined;
}

/** The coordination that a question belongs to: an open one, or one that it opens. */
interface CoordinationOfQuestion {
  readonly kind: "known" | "new";
  readonly runId: CoordinationId;
  readonly stepId?: StepId;
  /** Those of the pack that holds there alone. */
  readonly rules: PolicyRules | undefined;
}

/** A session that coordinates nothing has one coordination for its questions, so that they are counted together. */
const QUESTIONS_TRACE = "questions";

/** Finds the open coordination that the question belongs to. */
async function findKnownPlace(
  dependencies: QuestionDependencies,
  { askedBy, traceId }: AskRequest,
): Promise<CoordinationOfQuestion | undefined> {
  const traces = traceId ? [traceId, QUESTIONS_TRACE] : [QUESTIONS_TRACE];
  const { gateway, movedFrom } = dependencies.settings;
  // Before the ledger was moved, the gateway that it was moved from named itself nowhere.
  const gateways = gateway !== undefined && gateway === movedFrom ? [gateway, undefined] : [gateway];
  const names = [
    nameChildReference(askedBy),
    ...gateways.flatMap((home) =>
      traces.map((trace) => nameTraceReference({ session: askedBy, gateway: home }, trace)),
    ),
  ];
  for (const name of names) {
    const found = await dependencies.store.find(name);
    if (!found) continue;
    const state = await dependencies.runs.state(found.runId);
    if (state.kind !== "open") continue;
    const rules = dependencies.policies?.find(state.created.policy);
    return { kind: "known", runId: found.runId, rules, ...(found.stepId && { stepId: found.stepId }) };
  }
  return undefined;
}

async function createNewPlace(
  dependencies: QuestionDependencies,
  { askedBy, agentId }: AskRequest,
): Promise<CoordinationOfQuestion> {
  const around = await findStepOfChild(dependencies, askedBy);
  const owner = { agent: agentId as AgentId, session: askedBy };
  const rules = chooseRules(dependencies.policies, around, owner);
  return { kind: "new", runId: dependencies.newCoordinationId(), rules };
}

function draftOpeningOfQuestion(
  { ruled, policy }: { readonly ruled: QuestionDependencies; readonly policy: PolicyRef | undefined },
  { askedBy, agentId, traceId }: AskRequest,
  { ref }: ContentInput,
): Command {
  const { settings, budget } = ruled;
  return {
    type: "openCoordination",
    origin: "observed",
    ownerSession: askedBy,
    ownerAgent: agentId as AgentId,
    objective: ref,
    trace: { traceId: traceId ?? QUESTIONS_TRACE },
    failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" },
    settleMs: settings.settleMs,
    acknowledgeMs: settings.acknowledgeMs,
    questions: createQuestionPolicy(ruled),
    // Spawns of the turn that asks join it.
    ...(budget && { budget }),
    ...(policy && { policy }),
    ...(settings.gateway !== undefined && { gateway: settings.gateway }),
  };
}
