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
import { questionOf } from "../../openwop/project-questions.ts";
import type { RunReader } from "../../ports/ledger-store.ts";
import type { CoordinationView, QuestionView, StepView } from "../log/coordination-view.ts";
import type { Coordinator } from "../coordinator.ts";
import { refuse } from "./driving/create-run.ts";
import { readEventPage } from "./records/read-event-page.ts";
import { refuseSettledQuestion, refuseUnaskedNode, refuseUnknownRun } from "./requests/shared-refusals.ts";
import type { OtherRuns } from "./records/other-runs.ts";
import { answerToQuestion } from "./question-answer.ts";
import type {
  Answered,
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

export function createCoordinationRuns(dependencies: CoordinationRunsDependencies): OtherRuns {
  /** R1 */
  const withOwnRun = async <T>(
    { tenant }: Caller,
    runId: string,
    work: (opening: Opening) => Promise<Answered<T>>,
  ): Promise<Answered<T> | undefined> => {
    if (tenant !== dependencies.tenant) return undefined;
    const [first] = await dependencies.store.read(runId as CoordinationId, { from: 0, limit: 1 });
    return first?.type === "coordination.created" ? work(first) : undefined;
  };
  return {
    snapshot: (caller, runId) =>
      withOwnRun(caller, runId, async (opening) => readSnapshot(dependencies, opening)),
    events: (caller, runId, range) =>
      withOwnRun(caller, runId, async ({ runId: id }) => {
        const entry = await dependencies.store.entry(id);
        if (!entry) return refuseUnknownRun(runId);
        const hasEnded = entry.summary.status !== "running";
        return createDone(await readEventPage(dependencies.store, { ...entry, hasEnded }, range));
      }),
    length: async (runId) => (await dependencies.store.entry(runId as CoordinationId))?.length,
    ancestry: (caller, runId) =>
      withOwnRun(caller, runId, ({ payload: { parent } }) => {
        const hostId = dependencies.hostId();
        const above = parent && { runId: parent.coordinationId, hostId, cause: "core.dispatch" };
        return Promise.resolve(createDone({ runId, hostId, parent: above ?? null }));
      }),
    cancel: (caller, runId) => withOwnRun(caller, runId, async ({ runId: id }) => cancel(dependencies, id)),
    question: (caller, runId, question) =>
      withOwnRun(caller, runId, async ({ runId: id }) => {
        const found = findQuestion(await dependencies.coordinator.view(id), question);
        return found.kind === "refused" ? found : createDone(interruptOf(id, found.value));
      }),
    resolve: (caller, runId, question, value) =>
      withOwnRun(caller, runId, async ({ runId: id }) =>
        resolve(dependencies, { ...question, caller, runId: id, value }),
      ),
  };
}

type Opening = RunEvent & { readonly type: "coordination.created" };

function createDone<T>(value: T): Answered<T> {
  return { kind: "done", value };
}

async function readSnapshot(
  dependencies: CoordinationRunsDependencies,
  { runId, payload }: Opening,
): Promise<Answered<RunSnapshot>> {
  const view = await dependencies.coordinator.view(runId);
  if (!view) return refuseUnknownRun(runId);
  const { parent, ownerAgent } = payload;
  const status = statusOf(view);
  const question = openQuestions(view)[0];
  const endedAt = view.endedAtMs === undefined ? undefined : formatTimestamp(view.endedAtMs);
  return createDone({
    runId,
    workflowId: WORKFLOW_IDS[payload.origin],
    status,
    owner: { tenant: dependencies.tenant, principal: `agent:${ownerAgent}` },
    ...(question && status.startsWith("waiting-") && { currentNodeId: nodeOf(question) }),
    startedAt: formatTimestamp(view.createdAtMs),
    ...(endedAt !== undefined && { completedAt: endedAt, endedAt }),
    inputs: {},
    variables: {},
    ...(status === "failed" && { error: errorOf(view) }),
    runOrchestrator: { agentId: `agent:${ownerAgent}` },
    nodeStates: Object.fromEntries(view.steps.map((step) => [step.stepId, formatNodeState(step)])),
    ...(parent && { parentRunId: parent.coordinationId, parentNodeId: parent.stepId }),
    ...(question && { interrupt: interruptOf(runId, question) }),
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

/** Returns the status of the terminal event; a coordination that only people can move on waits for them. */
function statusOf(view: CoordinationView): WorkflowStatus {
  if (view.status !== "running") return ENDED[view.status];
  const open = openQuestions(view);
  const asking = new Set<StepId | undefined>(open.map(({ stepId }) => stepId));
  const [first] = open;
  const works = view.steps.some(({ status, stepId }) => AT_WORK.has(status) && !asking.has(stepId));
  if (!first || works) return "running";
  return first.kind === "approval" ? "waiting-approval" : "waiting-input";
}

const AT_WORK: ReadonlySet<StepView["status"]> = new Set(["dispatched", "running", "backoff"]);

function openQuestions({ status, escalations }: CoordinationView): QuestionView[] {
  return status === "running" ? escalations.filter(({ closed }) => !closed) : [];
}

function nodeOf({ stepId }: QuestionView): string {
  return stepId ?? ORCHESTRATOR;
}

function findQuestion(
  view: CoordinationView | undefined,
  { nodeId, interruptId }: QuestionPlace,
): Answered<QuestionView> {
  const isOfNode = (question: QuestionView): boolean => nodeOf(question) === nodeId;
  if (!view?.escalations.some(isOfNode)) return refuseUnaskedNode(nodeId);
  const found = openQuestions(view).find(
    (question) => isOfNode(question) && (interruptId ?? question.escalationId) === question.escalationId,
  );
  return found ? createDone(found) : refuseSettledQuestion(nodeId);
}

function interruptOf(coordinationId: CoordinationId, question: QuestionView): OpenInterrupt {
  const { escalationId, kind, askedAtMs, deadlineAtMs } = question;
  return {
    interruptId: escalationId,
    runId: coordinationId,
    nodeId: nodeOf(question),
    kind,
    key: escalationId,
    data: questionOf(question),
    askedAt: formatTimestamp(askedAtMs),
    expiresAt: formatTimestamp(deadlineAtMs),
  };
}

function errorOf({ status, steps }: CoordinationView) {
  const completed = steps.filter((step) => step.status === "completed").length;
  return { code: `coordination_${status}`, message: `${completed} of ${steps.length} steps completed` };
}

/** The message of a step's error may quote what an agent said. */
function formatNodeState({ status, attempt, agentId, error }: StepView) {
  return { status, attempt, agentId: `agent:${agentId}`, ...(error && { error: { code: error.code } }) };
}

async function cancel({ coordinator }: CoordinationRunsDependencies, coordinationId: CoordinationId) {
  const answered = await coordinator.cancel({ coordinationId, by: "operator" });
  const view = await coordinator.view(coordinationId);
  if (!view) return refuseUnknownRun(coordinationId);
  const status = statusOf(view);
  if (view.status !== "running") return createDone({ runId: coordinationId, status });
  if (answered.kind === "refused") return refuse("forbidden", answered.reason);
  return createDone({ runId: coordinationId, status: "cancelling" as const });
}

interface Resolving extends QuestionPlace {
  readonly caller: Caller;
  readonly runId: CoordinationId;
  readonly value: unknown;
}

async function resolve(
  { coordinator }: CoordinationRunsDependencies,
  resolving: Resolving,
): Promise<Answered<ResolvedInterrupt>> {
  const { runId, nodeId } = resolving;
  const view = await coordinator.view(runId);
  const found = findQuestion(view, resolving);
  if (found.kind === "refused") return recallAnswer(coordinator, found, { ...resolving, view });
  const request = createAnswerRequest(found.value, resolving);
  if ("refused" in request) return refuse("validation_error", request.refused);
  const answered = await coordinator.answer(request);
  if (answered.kind === "refused")
    return refuse(REFUSALS[answered.code] ?? "validation_error", answered.reason);
  const after = await coordinator.view(runId);
  const status = after ? statusOf(after) : "running";
  return createDone({ runId, nodeId, interruptId: found.value.escalationId, status });
}

type AnswerRequest = Parameters<Coordinator["answer"]>[0];

function createAnswerRequest(
  { escalationId, kind }: QuestionView,
  { caller, runId, value }: Resolving,
): AnswerRequest | { readonly refused: string } {
  const answer = answerToQuestion({ kind, escalationId }, value);
  if ("refused" in answer) return answer;
  return {
    ...answer,
    questionId: `${runId}:${escalationId}`,
    by: { kind: "operator", id: `openwop:${caller.tenant}:${caller.principal}`.slice(0, BOUNDS.idCharsMax) },
    through: "gateway",
  };
}

interface Resolved extends Resolving {
  readonly view: CoordinationView | undefined;
}

/** Adds to the refusal what this answer came to, where it is the one that settled the question that it names. */
async function recallAnswer(
  coordinator: Coordinator,
  refusal: HostRefusal,
  resolved: Resolved,
): Promise<HostRefusal> {
  const { view, runId, nodeId, interruptId } = resolved;
  const question = view?.escalations.find(({ escalationId }) => escalationId === interruptId);
  if (!view || !question || nodeOf(question) !== nodeId) return refusal;
  const request = createAnswerRequest(question, resolved);
  if ("refused" in request || !(await coordinator.isCountedAnswer(request))) return refusal;
  const { escalationId } = question;
  return { ...refusal, resolved: { runId, nodeId, interruptId: escalationId, status: statusOf(view) } };
}

const REFUSALS: Readonly<Record<string, HostRefusal["code"]>> = {
  NOT_FOUND: "interrupt_not_found",
  UNKNOWN_QUESTION: "interrupt_not_found",
  QUESTION_CLOSED: "interrupt_already_resolved",
  COORDINATION_ENDED: "interrupt_already_resolved",
};
