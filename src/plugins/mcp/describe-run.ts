/** Owns: what a client of the MCP server is told of a run, as data and in words. */
import { hasRunEnded } from "../../agents/coordination/contracts/workflows/workflow-summary.ts";
import type {
  Caller,
  RunSnapshot,
} from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { findShownQuestion, type ShownQuestion } from "../openwop/runs/run-question.ts";
import { formatRunUri } from "./run-uris.ts";
import { createToolResult, type ToolFields, type McpDependencies, type ToolResult } from "./mcp-tool.ts";

const SHOWN = ["runId", "workflowId", "status", "startedAt", "endedAt", "outputs", "error", "childRuns"];

/**
 * Returns the report of a run as plain data, with the question that it or a run below it waits for; times are ISO
 * 8601.
 */
export async function createRunReport(
  { host }: Pick<McpDependencies, "host">,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<ToolFields> {
  return formatRunReport(snapshot, await findShownQuestion(host, caller, snapshot));
}

function formatRunReport(snapshot: RunSnapshot, question: ShownQuestion | undefined): ToolFields {
  return {
    ...Object.fromEntries(
      SHOWN.flatMap((key) => (snapshot[key] === undefined ? [] : [[key, snapshot[key]]])),
    ),
    ...(question && { question }),
    resource: formatRunUri(snapshot.runId),
  };
}

/**
 * Returns the tool result that says how a run is, in words and as data; it is marked as an error where the run failed
 * or was cancelled.
 */
export async function createRunResult(
  { host, mayAnswer }: Pick<McpDependencies, "host" | "mayAnswer">,
  caller: Caller,
  snapshot: RunSnapshot,
): Promise<ToolResult> {
  const isError = snapshot.status === "failed" || snapshot.status === "cancelled";
  const question = await findShownQuestion(host, caller, snapshot);
  const words = question
    ? describeWaitingRun(snapshot, question, mayAnswer)
    : describeRunWithoutQuestion(snapshot);
  return createToolResult(words, formatRunReport(snapshot, question), { isError });
}

function describeRunWithoutQuestion(snapshot: RunSnapshot): string {
  const { runId, workflowId, status } = snapshot;
  if (status === "failed") return `Run ${runId} of ${workflowId} failed: ${describeRunFailure(snapshot)}`;
  if (hasRunEnded(status)) return `Run ${runId} of ${workflowId} is ${status}.`;
  return `Run ${runId} of ${workflowId} is ${status}. Call \`status\` with its runId to wait for its end.`;
}

function describeWaitingRun(
  { runId, workflowId }: RunSnapshot,
  question: ShownQuestion,
  mayAnswer: boolean,
): string {
  const isChild = question.runId !== runId;
  const asking = isChild ? ` for run ${question.runId} below it, which waits` : "";
  const whichRunId = isChild ? "the question's runId" : "this runId";
  const next = mayAnswer
    ? `A person must decide; give their decision to \`answer\` with ${whichRunId} and nodeId`
    : "A person must answer it elsewhere: by the host's API, its page, or the command line";
  return `Run ${runId} of ${workflowId} waits${asking} at ${question.nodeId} for an answer (${question.kind}). ${next}, and then call \`status\`.`;
}

interface RunError {
  readonly message: string;
  readonly code: string;
}

function describeRunFailure({ error }: RunSnapshot): string {
  const { message = "no reason is recorded", code = "unknown" } = (error ?? {}) as Partial<RunError>;
  return `${message} (${code})`;
}
