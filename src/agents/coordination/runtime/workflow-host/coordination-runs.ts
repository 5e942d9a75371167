/**
 * Owns: coordinations of OpenClaw's agents as runs of OpenWOP: how they are, their events, what they descend from, the end
 * that somebody wants, and answers to what they ask people. Does not own: what may be cancelled or answered (`Coordinator`).
 *
 * R1 Only callers of one tenant see them. R2 What is shown is free of content, as the log is: no variables, no texts.
 */
import { BOUNDS } from "../../contracts/bounds.ts";
import { formatTimestamp, type CoordinationId, type StepId } from "../../contracts/ids.ts";
import type { RunEvent } from "../../contracts/run-event.ts";
import type { CoordinationStatus } from "../../contracts/coordination-summary.ts";
import type { WorkflowStatus } from "../../contracts/workflows/workflow-summary.ts";
import { WORKFLOW_IDS } from "../../openwop/project.ts";
import { createQuestionData } from "../../openwop/project-questions.ts";
import type { RunReader } from "../../ports/ledger-store.ts";
import type { CoordinationView, QuestionView, StepView } from "../log/coordination-view.ts";
import type { Coordinator } from "../coordinator.ts";
import { refuse } from "./records/refuse.ts";
import { readEventPage } from "./records/read-event-page.ts";
import { refuseSettledQuestion, refuseUnaskedNode, refuseUnknownRun } from "./requests/shared-refusals.ts";
import type { OtherRuns } from "./records/other-runs.ts";
import { readQuestionAnswer } from "./question-answer.ts";
import type {
  HostAnswer,
  Caller,
  HostRefusal,
  OpenInterrupt,
  QuestionPlace,
  ResolvedInterrupt,
  RunSnapshot,
} from "./records/workflow-host.ts";

/** Reading coordinations, and asking for their end or for answers. */
export interface CoordinationAccess {
  readonly store: RunReader;
  readonly coordinator: Coordinator;
}

export interface TenantCoordinations extends CoordinationAccess {
  /** Whose callers see them. */
  readonly tenant: string;
}

export interface CoordinationRunsDependencies extends TenantCoordinations {
  readonly hostId: () => string;
}

/** The node of what concerns no step. */
const ORCHESTRATOR = "orchestrator";

/**
 * Creates the access to one tenant's coordinations as if they were workflow runs. Answers are `undefined` where the
 * run is no coordination, and, except that of `length`, for callers of another tenant.
 */
export function createCoordinationRuns(dependencies: CoordinationRunsDependencies): OtherRuns {
  /** R1 */
  const withOwnRun = async <T>(
    { tenant }: Caller,
    runId: string,
    work: (opening: OpeningEvent) => Promise<HostAnswer<T>>,
  ): Promise<HostAnswer<T> | undefined> => {
    if (tenant !== dependencies.tenant) return undefined;
    const [first] = await dependencies.store.read(runId as CoordinationId, { from: 0, limit: 1 });
    return first?.type === "coordination.created" ? work(first) : undefined;
  };
  return {
    snapshot: (caller, runId) =>
      withOwnRun(caller, runId, async (opening) => readCoordinationSnapshot(dependencies, opening)),
    events: (caller, runId, range) =>
      withOwnRun(caller, runId, async ({ runId: id }) => {
        const entry = await dependencies.store.entry(id);
        if (!entry) return refuseUnknownRun(runId);
        const hasEnded = entry.summary.status !== "running";
        return createDoneAnswer(await readEventPage(dependencies.store, { ...entry, hasEnded }, range));
      }),
    length: async (runId) => (await dependencies.store.entry(runId as CoordinationId))?.length,
    ancestry: (caller, runId) =>
      withOwnRun(caller, runId, ({ payload: { parent } }) => {
        const hostId = dependencies.hostId();
        const above = parent && { runId: parent.coordinationId, hostId, cause: "core.dispatch" };
        return Promise.resolve(createDoneAnswer({ runId, hostId, parent: above ?? null }));
      }),
    cancel: (caller, runId) =>
      withOwnRun(caller, runId, async ({ runId: id }) => requestCancellation(dependencies, id)),
    question: (caller, runId, question) =>
      withOwnRun(caller, runId, async ({ runId: id }) => {
        const openQuestion = findNodeQuestion(await dependencies.coordinator.view(id), question);
        return openQuestion.kind === "refused"
          ? openQuestion
          : createDoneAnswer(createQuestionInterrupt(id, openQuestion.value));
      }),
    resolve: (caller, runId, question, value) =>
      withOwnRun(caller, runId, async ({ runId: id }) =>
        resolveQuestion(dependencies, { ...question, caller, runId: id, value }),
      ),
  };
}

/** The first event of a coordination. */
type OpeningEvent = RunEvent & { readonly type: "coordination.created" };

function createDoneAnswer<T>(value: T): HostAnswer<T> {
  return { kind: "done", value };
}

/** Returns a coordination as the snapshot of a run, free of content (R2). */
async function readCoordinationSnapshot(
  dependencies: CoordinationRunsDependencies,
  { runId, payload }: OpeningEvent,
): Promise<HostAnswer<RunSnapshot>> {
  const view = await dependencies.coordinator.view(runId);
  if (!view) return refuseUnknownRun(runId);
  const { parent, ownerAgent } = payload;
  const status = findRunStatus(view);
  const question = listUnansweredQuestions(view)[0];
  const endedAt = view.endedAtMs === undefined ? undefined : formatTimestamp(view.endedAtMs);
  return createDoneAnswer({
    runId,
    workflowId: WORKFLOW_IDS[payload.origin],
    status,
    owner: { tenant: dependencies.tenant, principal: `agent:${ownerAgent}` },
    ...(question && status.startsWith("waiting-") && { currentNodeId: getQuestionNodeId(question) }),
    startedAt: formatTimestamp(view.createdAtMs),
    ...(endedAt !== undefined && { completedAt: endedAt, endedAt }),
    inputs: {},
    variables: {},
    ...(status === "failed" && { error: summarizeFailure(view) }),
    runOrchestrator: { agentId: `agent:${ownerAgent}` },
    nodeStates: Object.fromEntries(view.steps.map((step) => [step.stepId, formatNodeState(step)])),
    ...(parent && { parentRunId: parent.coordinationId, parentNodeId: parent.stepId }),
    ...(question && { interrupt: createQuestionInterrupt(runId, question) }),
    eventLogSchemaVersion: 1,
  });
}

const ENDED: Readonly<Record<Exclude<CoordinationStatus, "running">, WorkflowStatus>> = {
  success: "completed",
  partial: "completed",
  failed: "failed",
  escalated: "failed",
  cancelled: "cancelled",
};

/**
 * Returns the run status of a coordination: `waiting-...` where a question is open and no step is at work but those
 * that questions are about.
 */
function findRunStatus(view: CoordinationView): WorkflowStatus {
  if (view.status !== "running") return ENDED[view.status];
  const open = listUnansweredQuestions(view);
  const asking = new Set<StepId | undefined>(open.map(({ stepId }) => stepId));
  const [first] = open;
  const works = view.steps.some(({ status, stepId }) => AT_WORK.has(status) && !asking.has(stepId));
  if (!first || works) return "running";
  return first.kind === "approval" ? "waiting-approval" : "waiting-input";
}

const AT_WORK: ReadonlySet<StepView["status"]> = new Set(["dispatched", "running", "backoff"]);

/**
 * Lists the questions to people that are not closed; none once the coordination has ended. The log has no interrupt for
 * one that a child asks its parent.
 */
function listUnansweredQuestions({ status, escalations }: CoordinationView): QuestionView[] {
  if (status !== "running") return [];
  return escalations.filter(
    ({ closed, askedOf, forwardedAtMs }) => !closed && (askedOf === undefined || forwardedAtMs !== undefined),
  );
}

/** Returns the step that a question is about, else the orchestrator. */
function getQuestionNodeId({ stepId }: QuestionView): string {
  return stepId ?? ORCHESTRATOR;
}

/** Finds an open question of a node. Refuses a node that never asked, and a question that is settled. */
function findNodeQuestion(
  view: CoordinationView | undefined,
  { nodeId, interruptId }: QuestionPlace,
): HostAnswer<QuestionView> {
  const isOfNode = (question: QuestionView): boolean => getQuestionNodeId(question) === nodeId;
  if (!view?.escalations.some(isOfNode)) return refuseUnaskedNode(nodeId);
  const found = listUnansweredQuestions(view).find(
    (question) => isOfNode(question) && (interruptId ?? question.escalationId) === question.escalationId,
  );
  return found ? createDoneAnswer(found) : refuseSettledQuestion(nodeId);
}

function createQuestionInterrupt(coordinationId: CoordinationId, question: QuestionView): OpenInterrupt {
  const { escalationId, kind, askedAtMs, deadlineAtMs } = question;
  return {
    interruptId: escalationId,
    runId: coordinationId,
    nodeId: getQuestionNodeId(question),
    kind,
    key: escalationId,
    data: createQuestionData(question),
    askedAt: formatTimestamp(askedAtMs),
    expiresAt: formatTimestamp(deadlineAtMs),
  };
}

function summarizeFailure({ status, steps }: CoordinationView) {
  const completed = steps.filter((step) => step.status === "completed").length;
  return { code: `coordination_${status}`, message: `${completed} of ${steps.length} steps completed` };
}

/** Returns how a step is shown, with no more than the code of its error: the message may quote an agent. */
function formatNodeState({ status, attempt, agentId, error }: StepView) {
  return { status, attempt, agentId: `agent:${agentId}`, ...(error && { error: { code: error.code } }) };
}

/** Asks for the end of a coordination. Returns its status, or why it may not be cancelled. */
async function requestCancellation(
  { coordinator }: CoordinationRunsDependencies,
  coordinationId: CoordinationId,
) {
  const answered = await coordinator.cancel({ coordinationId, by: "operator" });
  const view = await coordinator.view(coordinationId);
  if (!view) return refuseUnknownRun(coordinationId);
  const status = findRunStatus(view);
  if (view.status !== "running") return createDoneAnswer({ runId: coordinationId, status });
  if (answered.kind === "refused") return refuse("forbidden", answered.reason);
  return createDoneAnswer({ runId: coordinationId, status: "cancelling" as const });
}

/** An answer that a caller submits to a question of a coordination. */
interface AnswerSubmission extends QuestionPlace {
  readonly caller: Caller;
  readonly runId: CoordinationId;
  readonly value: unknown;
}

/** Answers an open question. Where it is settled, the refusal says if this answer had settled it. */
async function resolveQuestion(
  { coordinator }: CoordinationRunsDependencies,
  resolving: AnswerSubmission,
): Promise<HostAnswer<ResolvedInterrupt>> {
  const { runId, nodeId } = resolving;
  const view = await coordinator.view(runId);
  const found = findNodeQuestion(view, resolving);
  if (found.kind === "refused") return addSettledOutcome(coordinator, found, { ...resolving, view });
  const request = createAnswerRequest(found.value, resolving);
  if ("refused" in request) return refuse("validation_error", request.refused);
  const answered = await coordinator.answer(request);
  if (answered.kind === "refused")
    return refuse(REFUSALS[answered.code] ?? "validation_error", answered.reason);
  const after = await coordinator.view(runId);
  const status = after ? findRunStatus(after) : "running";
  return createDoneAnswer({ runId, nodeId, interruptId: found.value.escalationId, status });
}

type AnswerRequest = Parameters<Coordinator["answer"]>[0];

function createAnswerRequest(
  { escalationId, kind }: QuestionView,
  { caller, runId, value }: AnswerSubmission,
): AnswerRequest | { readonly refused: string } {
  const answer = readQuestionAnswer({ kind, escalationId }, value);
  if ("refused" in answer) return answer;
  return {
    ...answer,
    questionId: `${runId}:${escalationId}`,
    by: { kind: "operator", id: `openwop:${caller.tenant}:${caller.principal}`.slice(0, BOUNDS.idCharsMax) },
    through: "gateway",
  };
}

/** An answer to a question that is not open, with the coordination as it is now. */
interface LateAnswer extends AnswerSubmission {
  readonly view: CoordinationView | undefined;
}

/** Adds to the refusal of a repeated answer what that answer came to, where it settled the question. */
async function addSettledOutcome(
  coordinator: Coordinator,
  refusal: HostRefusal,
  resolved: LateAnswer,
): Promise<HostRefusal> {
  const { view, runId, nodeId, interruptId } = resolved;
  const question = view?.escalations.find(({ escalationId }) => escalationId === interruptId);
  if (!view || !question || getQuestionNodeId(question) !== nodeId) return refusal;
  const request = createAnswerRequest(question, resolved);
  if ("refused" in request || !(await coordinator.isCountedAnswer(request))) return refusal;
  const { escalationId } = question;
  return { ...refusal, resolved: { runId, nodeId, interruptId: escalationId, status: findRunStatus(view) } };
}

type AnswerRefusal = Extract<Awaited<ReturnType<Coordinator["answer"]>>, { readonly kind: "refused" }>;

/** Every other refusal says that the answer is not one to the question. */
const REFUSALS: Readonly<Partial<Record<AnswerRefusal["code"], HostRefusal["code"]>>> = {
  NOT_FOUND: "interrupt_not_found",
  UNKNOWN_QUESTION: "interrupt_not_found",
  QUESTION_CLOSED: "interrupt_already_resolved",
  COORDINATION_ENDED: "interrupt_already_resolved",
};
