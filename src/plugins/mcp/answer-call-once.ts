/**
 * Owns: that a call of the tool `answer` which has an id answers one question: made again, it is not taken for the answer to the next
 * one. A process that dies after the answer and before that is kept leaves a minute in which the question may be answered, and the
 * call still counts as new after it. Does not own: calls without an id, which nothing tells apart.
 */
import { hash } from "node:crypto";
import { addMs, type CoordinationId, type EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { RequestKey, RequestLog } from "../../agents/coordination/ports/workflow-store.ts";
import { formatCanonicalJson } from "../../agents/coordination/std/canonical-json.ts";
import { HTTP_BOUNDS } from "../openwop/http/http-bounds.ts";
import {
  createFailure,
  createRefusal,
  type McpDependencies,
  type ToolCall,
  type ToolResult,
} from "./mcp-tool.ts";

/** Gives the answer by `answer`, or returns what was answered to the same call before. */
export async function answerOnce(
  { host, clock }: Pick<McpDependencies, "host" | "clock">,
  { caller, args, callId }: ToolCall,
  runId: string,
  answer: () => Promise<ToolResult>,
): Promise<ToolResult> {
  if (callId === undefined) return answer();
  // Only runs that are there have their names kept.
  const found = await host.snapshot(caller, runId);
  if (found.kind === "refused") return createRefusal(found);
  const { requests } = host;
  const digest = hash("sha256", formatCanonicalJson([caller.principal, callId, args]));
  const at: RequestKey = { tenant: caller.tenant, endpoint: "MCP answer", key: digest };
  const now = clock.now();
  const leaseUntilMs = addMs(now, HTTP_BOUNDS.requestLeaseMs);
  const begun = await requests.begin({
    ...at,
    digest,
    runId: runId as CoordinationId,
    now,
    leaseUntilMs,
  });
  if (begun.kind === "answered") return JSON.parse(begun.answer.body) as ToolResult;
  if (begun.kind !== "new")
    return createFailure("The same call is being worked on: make it again in a moment.");
  const result = await answerOrRelease(requests, { ...at, leaseUntilMs }, answer);
  if (result.isError !== true) await requests.finish(at, { status: 200, body: JSON.stringify(result) });
  return result;
}

/** Frees the call where nothing was answered, so that it may be made again. */
async function answerOrRelease(
  requests: RequestLog,
  at: RequestKey & { readonly leaseUntilMs: EpochMs },
  answer: () => Promise<ToolResult>,
): Promise<ToolResult> {
  let isAnswered = false;
  try {
    const result = await answer();
    isAnswered = result.isError !== true;
    return result;
  } finally {
    if (!isAnswered) await requests.release(at);
  }
}
