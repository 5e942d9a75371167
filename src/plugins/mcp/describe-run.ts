/** Owns: what a client of the MCP server is told of a run, as data and in words. */
import { hasRunEnded } from "../../agents/coordination/contracts/workflows/workflow-summary.ts";
import type { RunSnapshot } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { readQuestion } from "../openwop/runs/run-question.ts";
import { formatRunUri } from "./run-uris.ts";
import { createResult, type Fields, type ToolResult } from "./mcp-tool.ts";

const SHOWN = ["runId", "workflowId", "status", "startedAt", "endedAt", "outputs", "error", "childRuns"];

/** Reports a run with its question; times are ISO 8601. */
export function createRunReport(snapshot: RunSnapshot): Fields {
  const question = readQuestion(snapshot);
  return {
    ...Object.fromEntries(
      SHOWN.flatMap((key) => (snapshot[key] === undefined ? [] : [[key, snapshot[key]]])),
    ),
    ...(question && { question }),
    resource: formatRunUri(snapshot.runId),
  };
}

export function createRunResult(
  snapshot: RunSnapshot,
  { mayAnswer }: { readonly mayAnswer: boolean },
): ToolResult {
  const isError = snapshot.status === "failed" || snapshot.status === "cancelled";
  return createResult(describeRun(snapshot, mayAnswer), createRunReport(snapshot), { isError });
}

function describeRun(snapshot: RunSnapshot, mayAnswer: boolean): string {
  const { runId, workflowId, status } = snapshot;
  if (status === "failed") return `Run ${runId} of ${workflowId} failed: ${describeFailure(snapshot)}`;
  if (hasRunEnded(status)) return `Run ${runId} of ${workflowId} is ${status}.`;
  const question = readQuestion(snapshot);
  if (!question)
    return `Run ${runId} of ${workflowId} is ${status}. Call \`status\` with its runId to wait for its end.`;
  const next = mayAnswer
    ? "A person must decide; give their decision to `answer` with this runId and nodeId"
    : "A person must answer it elsewhere: by the host's API, its page, or the command line";
  return `Run ${runId} of ${workflowId} waits at ${question.nodeId} for an answer (${question.kind}). ${next}, and then call \`status\`.`;
}

interface RunError {
  readonly message: string;
  readonly code: string;
}

function describeFailure({ error }: RunSnapshot): string {
  const { message = "no reason is recorded", code = "unknown" } = (error ?? {}) as Partial<RunError>;
  return `${message} (${code})`;
}
