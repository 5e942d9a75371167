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
import { findQuestion, type ShownQuestion } from "../openwop/runs/run-question.ts";

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

export function getContextId({ runId, metadata }: RunSnapshot): string {
  const contextId = isRecord(metadata) ? metadata[CONTEXT_FIELD] : undefined;
  return typeof contextId === "string" ? contextId : runId;
}

/** Describes the run with the question that it, or a run that it waits for, asks. */
export async function describeTask(
  host: Pick<WorkflowHost, "snapshot">,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<Task> {
  return createTask(snapshot, await describeStatus(host, caller, snapshot));
}

/** Creates the task of a run whose status is described. */
export function createTask(snapshot: RunSnapshot, status: TaskStatus): Task {
  const artifact = createArtifact(snapshot);
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

/** Describes the status, with its time where that is in the log: since when a run works is not. */
export async function describeStatus(
  host: Pick<WorkflowHost, "snapshot">,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<TaskStatus> {
  const { status, endedAt, pausedAt } = snapshot;
  const question = await findQuestion(host, caller, snapshot);
  const askedAt = status.startsWith("waiting-") ? question?.askedAt : undefined;
  const timestamp = [endedAt, pausedAt, askedAt].find((time) => typeof time === "string");
  return { state: STATES[status], message: createStatusMessage(snapshot, question), timestamp };
}

/** The outputs of a run that completed. */
export function createArtifact({ outputs }: RunSnapshot): Artifact | undefined {
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
    const words = describeQuestion(snapshot, question);
    return createMessage(snapshot, about, [createTextPart(words), createDataPart(question)]);
  }
  const { status, error } = snapshot;
  if (!isRecord(error)) return undefined;
  return createMessage(snapshot, status, [createTextPart(String(error["message"])), createDataPart(error)]);
}

function describeQuestion(snapshot: RunSnapshot, { runId, nodeId, kind }: ShownQuestion): string {
  const below = runId === snapshot.runId ? "" : ` for run ${runId} below it, which waits`;
  return `The run waits${below} at ${nodeId} for an answer (${kind}).`;
}

function createMessage(snapshot: RunSnapshot, about: string, parts: Part[]): Message {
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
