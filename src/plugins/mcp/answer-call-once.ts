/**
 * Owns: that a call of the tool `answer` which has an id answers one question: the one that is open when the call first comes. Made
 * again, it is told what became of that answer, and is not taken for the answer to the next question. Does not own: calls without an
 * id, which nothing tells apart.
 */
import { hash } from "node:crypto";
import type { QuestionPlace } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { formatCanonicalJson } from "../../agents/coordination/std/canonical-json.ts";
import {
  formatQuestionSubject,
  parseQuestionSubject,
  runKeyedRequest,
  type WorkOutcome,
} from "../openwop/http/keyed-request.ts";
import { createFailureResult, type McpDependencies, type ToolCall, type ToolResult } from "./mcp-tool.ts";

/** A question, and the run that asks it. */
export interface RunQuestion extends QuestionPlace {
  readonly runId: string;
}

interface AnsweringCall extends Pick<ToolCall, "caller" | "args"> {
  readonly callId: string;
}

/**
 * Runs `answer` for a tool call that answers a question and keeps a result that is no error, which the same call of
 * the same caller gets when made again; returns a failure while that call is worked on.
 */
export async function answerCallOnce(
  { host, clock }: Pick<McpDependencies, "host" | "clock">,
  { caller, args, callId }: AnsweringCall,
  question: RunQuestion | undefined,
  answer: (question: RunQuestion | undefined) => Promise<ToolResult>,
): Promise<ToolResult> {
  const digest = hash("sha256", formatCanonicalJson([caller.principal, callId, args]));
  const outcome = await runKeyedRequest(
    { requests: host.requests, clock },
    {
      tenant: caller.tenant,
      endpoint: "MCP answer",
      key: digest,
      digest,
      subject: formatQuestionSubject(question && selectQuestionNames(question)),
    },
    async (subject): Promise<WorkOutcome<ToolResult>> => {
      const about = (parseQuestionSubject(subject) as RunQuestion | undefined) ?? question;
      const toolResult = await answer(about);
      if (toolResult.isError !== true)
        return { value: toolResult, keep: { status: 200, body: JSON.stringify(toolResult) } };
      // Made again, a call that came before its question is for the one that is open then.
      return { value: toolResult, keep: about?.interruptId === undefined ? "nothing" : "subject" };
    },
  );
  if (outcome.kind === "done") return outcome.value;
  if (outcome.kind === "answered") return JSON.parse(outcome.answer.body) as ToolResult;
  return createFailureResult("The same call is being worked on: make it again in a moment.");
}

function selectQuestionNames({ runId, nodeId, interruptId }: RunQuestion): RunQuestion {
  return { runId, nodeId, ...(interruptId !== undefined && { interruptId }) };
}
