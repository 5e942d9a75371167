/** Owns: a run as a task of the A2A protocol. A task has the id of its run. */
import {
  Role,
  TaskState,
  type Artifact,
  type Message,
  type Part,
  type Task,
  type TaskStatus,
} from "@a2a-js/sdk";
import type { WorkflowStatus } from "../../agents/coordination/contracts/workflows/workflow-summary.ts";
import type {
  Caller,
  RunSnapshot,
  WorkflowHost,
} from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { isRecord } from "../../agents/coordination/std/is-record.ts";
import { findShownQuestion, type ShownQuestion } from "../openwop/runs/run-question.ts";

const STATES: Readonly<Record<WorkflowStatus, TaskState>> = {
  pending: TaskState.TASK_STATE_SUBMITTED,
  running: TaskState.TASK_STATE_WORKING,
  paused: TaskState.TASK_STATE_WORKING,
  cancelling: TaskState.TASK_STATE_WORKING,
  "waiting-approval": TaskState.TASK_STATE_INPUT_REQUIRED,
  "waiting-input": TaskState.TASK_STATE_INPUT_REQUIRED,
  "waiting-external": TaskState.TASK_STATE_INPUT_REQUIRED,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  cancelled: TaskState.TASK_STATE_CANCELED,
};

/** Where a run keeps the context that its client named. */
export const CONTEXT_FIELD = "a2aContextId";

/** Returns the A2A context id of a run: the one that its creator gave it in its metadata, else the run's id. */
export function getContextId({ runId, metadata }: RunSnapshot): string {
  const contextId = isRecord(metadata) ? metadata[CONTEXT_FIELD] : undefined;
  return typeof contextId === "string" ? contextId : runId;
}

/** Returns a run as an A2A task as it is now, with the question that it, or a run that it waits for, asks. */
export async function createCurrentTask(
  host: Pick<WorkflowHost, "snapshot">,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<Task> {
  return createTaskWithStatus(snapshot, await createTaskStatus(host, caller, snapshot));
}

/**
 * Returns a run as an A2A task, with a status that was made before, and its outputs as an artifact; without history,
 * which is in the run's log.
 */
export function createTaskWithStatus(snapshot: RunSnapshot, status: TaskStatus): Task {
  const artifact = createOutputsArtifact(snapshot);
  return {
    id: snapshot.runId,
    contextId: getContextId(snapshot),
    status,
    artifacts: artifact ? [artifact] : [],
    // The log of the run has what was said; its client may read it by its id.
    history: [],
    metadata: { workflowId: snapshot.workflowId },
  };
}

/**
 * Returns the A2A status of a run: its state, the question that it asks or else its error, and the time when it ended,
 * was paused or asked; without a time where the snapshot has none of these.
 */
export async function createTaskStatus(
  host: Pick<WorkflowHost, "snapshot">,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<TaskStatus> {
  const { status, endedAt, pausedAt } = snapshot;
  const question = await findShownQuestion(host, caller, snapshot);
  const askedAt = status.startsWith("waiting-") ? question?.askedAt : undefined;
  const timestamp = [endedAt, pausedAt, askedAt].find((time) => typeof time === "string");
  return { state: STATES[status], message: createStatusMessage(snapshot, question), timestamp };
}

/** Returns the outputs of a run as an A2A artifact; `undefined` where the run has none. */
export function createOutputsArtifact({ outputs }: RunSnapshot): Artifact | undefined {
  if (outputs === undefined) return undefined;
  return {
    artifactId: "outputs",
    name: "outputs",
    description: "",
    parts: [createDataPart(outputs)],
    metadata: undefined,
    extensions: [],
  };
}

function createStatusMessage(
  snapshot: RunSnapshot,
  question: ShownQuestion | undefined,
): Message | undefined {
  if (question) {
    // Another question is another message, also of another child whose nodes have the same names.
    const about = `${question.runId}:${question.interruptId}`;
    const words = describeTaskQuestion(snapshot, question);
    return createAgentMessage(snapshot, about, [createTextPart(words), createDataPart(question)]);
  }
  const { status, error } = snapshot;
  if (!isRecord(error)) return undefined;
  return createAgentMessage(snapshot, status, [
    createTextPart(String(error["message"])),
    createDataPart(error),
  ]);
}

function describeTaskQuestion(snapshot: RunSnapshot, { runId, nodeId, kind }: ShownQuestion): string {
  const below = runId === snapshot.runId ? "" : ` for run ${runId} below it, which waits`;
  return `The run waits${below} at ${nodeId} for an answer (${kind}).`;
}

function createAgentMessage(snapshot: RunSnapshot, about: string, parts: Part[]): Message {
  const { runId } = snapshot;
  return {
    messageId: `${runId}:${about}`,
    contextId: getContextId(snapshot),
    taskId: runId,
    role: Role.ROLE_AGENT,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

function createTextPart(value: string): Part {
  return { content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "text/plain" };
}

function createDataPart(value: unknown): Part {
  return {
    content: { $case: "data", value },
    metadata: undefined,
    filename: "",
    mediaType: "application/json",
  };
}
