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
import type { RunSnapshot } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { isRecord } from "../../agents/coordination/std/is-record.ts";
import { readQuestion } from "../openwop/runs/run-question.ts";

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

export function createTask(snapshot: RunSnapshot): Task {
  const artifact = createArtifact(snapshot);
  return {
    id: snapshot.runId,
    contextId: getContextId(snapshot),
    status: createStatus(snapshot),
    artifacts: artifact ? [artifact] : [],
    // The log of the run has what was said; its client may read it by its id.
    history: [],
    metadata: { workflowId: snapshot.workflowId },
  };
}

export function createStatus(snapshot: RunSnapshot): TaskStatus {
  const { endedAt, startedAt } = snapshot;
  const timestamp = [endedAt, startedAt].find((time) => typeof time === "string");
  return { state: STATES[snapshot.status], message: createStatusMessage(snapshot), timestamp };
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

function createStatusMessage(snapshot: RunSnapshot): Message | undefined {
  const question = readQuestion(snapshot);
  if (question) {
    const words = `The run waits at ${question.nodeId} for an answer (${question.kind}).`;
    return createMessage(snapshot, [createTextPart(words), createDataPart(question)]);
  }
  const { error } = snapshot;
  if (!isRecord(error)) return undefined;
  return createMessage(snapshot, [createTextPart(String(error["message"])), createDataPart(error)]);
}

function createMessage(snapshot: RunSnapshot, parts: Part[]): Message {
  const { runId, status } = snapshot;
  return {
    messageId: `${runId}:${status}`,
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
