/**
 * Owns: what the methods of the A2A protocol do with runs, in the name of one caller. The ledger is the store of tasks: a
 * task outlives the process, and is followed from any process that serves the ledger.
 *
 * N1 The same message of a principal sent again, by its id, is the same task, and begins nothing.
 * N2 A client that leaves, or does not wait, leaves its task going on.
 * N3 A fault of ours is logged under an id and told as that id only.
 */
import { hash, randomUUID } from "node:crypto";
import {
  ExtendedAgentCardNotConfiguredError,
  A2AError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import {
  AgentCard,
  TaskState,
  type ListTasksRequest,
  type ListTasksResponse,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  type TaskStatus,
} from "@a2a-js/sdk";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import { hasRunEnded } from "../../agents/coordination/contracts/workflows/workflow-summary.ts";
import {
  followRun,
  type FollowedUntil,
} from "../../agents/coordination/runtime/workflow-host/agents/run-agent.ts";
import type {
  Caller,
  RunSnapshot,
} from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { formatCanonicalJson } from "../../agents/coordination/std/canonical-json.ts";
import { describeError } from "../../agents/coordination/std/describe-error.ts";
import { giveWay } from "../../platform/give-way.ts";
import { countCharsLeft } from "../../platform/write-json.ts";
import { listTenantRuns, readListedRun, type TenantRuns } from "../openwop/runs/list-tenant-runs.ts";
import { nameRepeatableRun } from "../openwop/runs/name-run.ts";
import { WAIT_MS, waitForRun } from "../openwop/runs/run-access.ts";
import { createInputSchema } from "../openwop/runs/workflow-inputs.ts";
import { A2A_BOUNDS, type A2aParts, type A2aRequest } from "./a2a-parts.ts";
import { listPublicWorkflows, type CardJson } from "./agent-card.ts";
import { answerMessageOnce } from "./answer-once.ts";
import {
  CONTEXT_FIELD,
  createOutputsArtifact,
  createTaskWithStatus,
  createTaskStatus,
  createCurrentTask,
  getContextId,
} from "./describe-task.ts";
import { chooseSkillWorkflow, readMessageContent, createRunInputs } from "./read-message.ts";
import { throwRefusal } from "./refusal-error.ts";

export interface HandlerDependencies extends A2aParts {
  readonly readCard: () => Promise<CardJson>;
}

/**
 * Creates the handler of the methods of A2A for one request: it sends messages, reads, lists, streams and cancels
 * tasks on the workflow host, and refuses push notifications. Faults of the host are logged, and answered without
 * their details.
 */
export function createTaskHandler(dependencies: HandlerDependencies, request: A2aRequest): A2ARequestHandler {
  const guard = createFaultGuard(dependencies);
  const refusePush = (): Promise<never> =>
    Promise.reject(
      new PushNotificationNotSupportedError(
        "This host calls nobody back: follow the task by a stream, or ask again.",
      ),
    );
  return {
    getAgentCard: () =>
      guard("the agent card", async () => AgentCard.fromJSON(await dependencies.readCard())),
    getAuthenticatedExtendedAgentCard: () =>
      Promise.reject(new ExtendedAgentCardNotConfiguredError("The agent card is the same for everybody.")),
    sendMessage: (params) => guard("SendMessage", () => sendMessage(dependencies, request, params)),
    sendMessageStream: (params) =>
      guardStream(guard, "SendStreamingMessage", () => streamMessage(dependencies, request, params)),
    getTask: ({ id }) => guard("GetTask", () => readTask(dependencies, request, id)),
    listTasks: (params) => guard("ListTasks", () => listTasks(dependencies, request, params)),
    cancelTask: ({ id }) => guard("CancelTask", () => cancelTask(dependencies, request, id)),
    resubscribe: ({ id }) =>
      guardStream(guard, "SubscribeToTask", () => streamTask(dependencies, request, id)),
    createTaskPushNotificationConfig: refusePush,
    getTaskPushNotificationConfig: refusePush,
    listTaskPushNotificationConfigs: refusePush,
    deleteTaskPushNotificationConfig: refusePush,
  };
}

async function sendMessage(
  dependencies: A2aParts,
  request: A2aRequest,
  params: SendMessageRequest,
): Promise<Task> {
  const runId = await acceptMessage(dependencies, request, params);
  const { caller, signal } = request;
  const waitMs = params.configuration?.returnImmediately === true ? 0 : WAIT_MS;
  const found = await waitForRun(dependencies, runId, { caller, signal, waitMs });
  if (found.kind === "refused") return throwRefusal(found);
  return await createCurrentTask(dependencies.host, caller, found.value);
}

async function* streamMessage(
  dependencies: A2aParts,
  request: A2aRequest,
  params: SendMessageRequest,
): AsyncGenerator<StreamResponse> {
  const runId = await acceptMessage(dependencies, request, params);
  yield* streamRun(dependencies, request, { runId, until: "waiting" });
}

async function* streamTask(
  dependencies: A2aParts,
  request: A2aRequest,
  id: string,
): AsyncGenerator<StreamResponse> {
  const { status } = await readRunOfTask(dependencies, request, id);
  if (hasRunEnded(status))
    throw new UnsupportedOperationError(`The task is ${status}: read it with GetTask.`);
  yield* streamRun(dependencies, request, { runId: id, until: "ended" });
}

interface FollowedTask {
  readonly runId: string;
  readonly until: FollowedUntil;
}

/** Yields the task as it is, then each change of its status or of what it asks, and its outputs before its end. */
async function* streamRun(
  { host }: A2aParts,
  { caller, signal }: A2aRequest,
  { runId, until }: FollowedTask,
): AsyncGenerator<StreamResponse> {
  let shown: string | undefined;
  for await (const found of followRun(host, runId, { caller, signal, until })) {
    const snapshot = found.kind === "refused" ? throwRefusal(found) : found.value;
    const status = await createTaskStatus(host, caller, snapshot);
    const news = `${snapshot.status} ${status.message?.messageId ?? ""}`;
    if (shown === undefined)
      yield { payload: { $case: "task", value: createTaskWithStatus(snapshot, status) } };
    else if (shown !== news) yield* listTaskUpdates(snapshot, status);
    shown = news;
  }
}

function* listTaskUpdates(snapshot: RunSnapshot, status: TaskStatus): Generator<StreamResponse> {
  const place = { taskId: snapshot.runId, contextId: getContextId(snapshot), metadata: undefined };
  const artifact = createOutputsArtifact(snapshot);
  if (artifact)
    yield {
      payload: { $case: "artifactUpdate", value: { ...place, artifact, append: false, lastChunk: true } },
    };
  yield { payload: { $case: "statusUpdate", value: { ...place, status } } };
}

/** Begins the run that a message asks for, or gives a run the answer that the message is. */
async function acceptMessage(
  dependencies: A2aParts,
  request: A2aRequest,
  { message, configuration }: SendMessageRequest,
): Promise<string> {
  if (configuration?.taskPushNotificationConfig)
    throw new PushNotificationNotSupportedError(
      "This host calls nobody back: leave taskPushNotificationConfig out.",
    );
  if (!message || message.messageId === "")
    throw new RequestMalformedError("message.messageId: it is missing");
  for (const field of ["messageId", "contextId", "taskId"] as const)
    if (message[field].length > A2A_BOUNDS.idCharsMax)
      throw new RequestMalformedError(
        `message.${field}: it has more than ${A2A_BOUNDS.idCharsMax} characters`,
      );
  return message.taskId === ""
    ? await beginTask(dependencies, request, message)
    : await continueTask(dependencies, request, message);
}

async function beginTask(dependencies: A2aParts, request: A2aRequest, message: Message): Promise<string> {
  const { caller, signal: _, ...context } = request;
  const definition = chooseSkillWorkflow(await listPublicWorkflows(dependencies), message);
  const inputs = createRunInputs(readMessageContent(message), definition);
  const problems = (await dependencies.contract()).check(createInputSchema(definition), inputs);
  if (problems.length > 0)
    throw new RequestMalformedError(
      problems.map(({ path, message: text }) => `inputs.${path}: ${text}`).join("; "),
    );
  const { messageId, contextId } = message;
  const created = await dependencies.host.create(caller, {
    ...context,
    workflowId: definition.id,
    inputs,
    transport: "a2a",
    // N1.
    runId: await nameRepeatableRun(
      dependencies.host,
      caller,
      [definition.id, messageId, contextId, inputs],
      nameA2aRun,
    ),
    // Runs of one context share their memory.
    ...(contextId !== "" && { scopeId: contextId, metadata: { [CONTEXT_FIELD]: contextId } }),
  });
  return created.kind === "refused" ? throwRefusal(created) : created.value.runId;
}

function nameA2aRun(parts: readonly unknown[]): CoordinationId {
  return `run-a2a-${hash("sha256", formatCanonicalJson(parts)).slice(0, 32)}` as CoordinationId;
}

async function continueTask(dependencies: A2aParts, request: A2aRequest, message: Message): Promise<string> {
  const snapshot = await readRunOfTask(dependencies, request, message.taskId);
  if (message.contextId !== "" && message.contextId !== getContextId(snapshot))
    throw new RequestMalformedError("message.contextId: the task is of another context");
  await answerMessageOnce(dependencies, { caller: request.caller, message, snapshot });
  return snapshot.runId;
}

async function listTasks(
  dependencies: A2aParts,
  { caller }: A2aRequest,
  query: ListTasksRequest,
): Promise<ListTasksResponse> {
  const { pageSize = A2A_BOUNDS.pageDefault, pageToken } = query;
  if (pageToken !== "" && !/^\d{1,15}$/u.test(pageToken))
    throw new RequestMalformedError("pageToken: expected the nextPageToken of a page before");
  const sinceMs = parseSince(query);
  const limit = Math.max(1, Math.min(pageSize, A2A_BOUNDS.pageMax));
  const page = await listTenantRuns(dependencies, caller, {
    limit,
    ...(pageToken !== "" && { after: { ordinal: Number(pageToken) } }),
  });
  const { tasks, next } = await readTasks(dependencies, caller, { page, query, sinceMs });
  const nextPageToken = next ? String(next.ordinal) : "";
  return { tasks, nextPageToken, pageSize: limit, totalSize: tasks.length };
}

/** @throws A2AError for what is no time */
function parseSince({ statusTimestampAfter: since = "" }: ListTasksRequest): number | undefined {
  if (since === "") return undefined;
  const ms = Date.parse(since);
  if (Number.isNaN(ms)) throw new RequestMalformedError("statusTimestampAfter: expected a time in ISO 8601");
  return ms;
}

interface TasksWanted {
  readonly page: TenantRuns;
  readonly query: ListTasksRequest;
  readonly sinceMs: number | undefined;
}

interface TasksPage {
  readonly tasks: Task[];
  readonly next?: TenantRuns["next"];
}

/** Reads one task after the other, and ends the page early where the tasks are large. */
async function readTasks(
  dependencies: A2aParts,
  caller: Caller,
  { page, query, sinceMs }: TasksWanted,
): Promise<TasksPage> {
  const { runs, next } = page;
  const tasks: Task[] = [];
  let charsLeft: number = A2A_BOUNDS.pageCharsMax;
  for (const [at, { runId, ordinal }] of runs.entries()) {
    const snapshot = await readListedRun(dependencies, caller, runId);
    const task = snapshot && (await createCurrentTask(dependencies.host, caller, snapshot));
    if (task && isTaskWanted(task, query) && mayHaveChangedSince(snapshot, sinceMs)) {
      // Outputs are left out of a listing, unless somebody asks for them.
      if (query.includeArtifacts !== true) task.artifacts = [];
      tasks.push(task);
      charsLeft = countCharsLeft(task, charsLeft);
    }
    if (charsLeft <= 0 && at < runs.length - 1) return { tasks, next: { ordinal } };
    await giveWay();
  }
  return { tasks, ...(next && { next }) };
}

function isTaskWanted(task: Task, { contextId, status }: ListTasksRequest): boolean {
  if (contextId !== "" && task.contextId !== contextId) return false;
  return status === TaskState.TASK_STATE_UNSPECIFIED || task.status?.state === status;
}

/**
 * True unless the task ended before `sinceMs`. One that has not ended may have worked on since, whatever time it
 * shows.
 */
function mayHaveChangedSince({ endedAt }: RunSnapshot, sinceMs: number | undefined): boolean {
  return sinceMs === undefined || typeof endedAt !== "string" || Date.parse(endedAt) >= sinceMs;
}

async function cancelTask(dependencies: A2aParts, request: A2aRequest, id: string): Promise<Task> {
  const { status } = await readRunOfTask(dependencies, request, id);
  if (hasRunEnded(status)) throw new TaskNotCancelableError(`The task is ${status}.`);
  const cancelled = await dependencies.host.cancel(request.caller, id, {
    reason: "cancelled by an A2A client",
  });
  if (cancelled.kind === "refused") return throwRefusal(cancelled);
  return await readTask(dependencies, request, id);
}

async function readTask(dependencies: A2aParts, request: A2aRequest, id: unknown): Promise<Task> {
  const snapshot = await readRunOfTask(dependencies, request, id);
  return await createCurrentTask(dependencies.host, request.caller, snapshot);
}

/** @throws A2AError where the caller's tenant has no such run; revision 0.3 lets the id be absent or anything */
async function readRunOfTask({ host }: A2aParts, { caller }: A2aRequest, id: unknown): Promise<RunSnapshot> {
  if (typeof id !== "string") throw new RequestMalformedError("id: expected the id of a task");
  const found = await host.snapshot(caller, id.slice(0, A2A_BOUNDS.idCharsMax));
  return found.kind === "refused" ? throwRefusal(found) : found.value;
}

/** Calls a function, and logs what it throws before the client is answered with an error. */
type FaultGuard = <T>(where: string, work: () => Promise<T>) => Promise<T>;

export const FAULT_MESSAGE = "An unexpected error occurred.";

/** Returns a function that does work, and logs a fault of ours under an id that alone is told (N3). */
function createFaultGuard({ logger }: A2aParts): FaultGuard {
  return async (where, work) => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof A2AError) throw error;
      const correlationId = randomUUID();
      logger.error({ correlationId, where, error: describeError(error) }, "a request over A2A failed");
      throw new A2AError({ message: FAULT_MESSAGE, metadata: { correlationId } });
    }
  };
}

/** Yields what the stream does, with each of its steps under the guard. */
async function* guardStream(
  guard: FaultGuard,
  where: string,
  work: () => AsyncGenerator<StreamResponse>,
): AsyncGenerator<StreamResponse> {
  const stream = work();
  try {
    for (;;) {
      const next = await guard(where, () => stream.next());
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await stream.return(undefined);
  }
}
