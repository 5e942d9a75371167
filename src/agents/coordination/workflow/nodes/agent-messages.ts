/** Owns: what an agent's model is told: the task, and what it said and got so far, out of the log alone. */
import { AGENT_BOUNDS } from "../../contracts/workflows/agent-manifest.ts";
import type { AskedCall } from "../../contracts/workflows/agent-events.ts";
import type { AgentMessage } from "../node-contract/agent-effects.ts";
import { formatToolReturn, type Invocation } from "../state/invocation.ts";
import { isRecord } from "../../std/is-record.ts";

/**
 * Builds the messages to the model of an agent's invocation: the task, then each turn with the results of its tool
 * calls, which are cut.
 */
export function buildAgentMessages(invocation: Invocation): AgentMessage[] {
  return [
    { role: "user", content: formatTask(invocation.bound?.task) },
    ...invocation.turns.flatMap(({ text, calls }): AgentMessage[] => [
      {
        role: "assistant",
        content: text,
        calls: calls.map(({ callId, call, args }) => ({ callId, call, args })),
      },
      ...calls.map((call): AgentMessage => {
        const { callId, call: name } = call;
        return {
          role: "tool",
          callId,
          call: name,
          content: cutToolResult(formatCallResult(invocation, call)),
        };
      }),
    ]),
  ];
}

/** Formats what the model is told of one of its calls: the result, or why it was not made. */
function formatCallResult({ returned }: Invocation, { callId, problem }: AskedCall): string {
  if (problem !== undefined) return PROBLEMS[problem];
  const back = returned.get(callId);
  return back ? formatToolReturn(back) : "error: no answer";
}

const PROBLEMS: Readonly<Record<NonNullable<AskedCall["problem"]>, string>> = {
  forbidden: "forbidden: you may not call this tool",
  malformed: "error: the arguments are no JSON object; nothing was called",
  "over-limit": "error: you have called tools as often as you may; answer now",
};

/**
 * Returns the text of a tool's result cut to its bound. A text that is cut says so at its end, and is not changed by
 * another cut.
 */
export function cutToolResult(text: string): string {
  const most = AGENT_BOUNDS.toolResultCharsMax;
  return text.length <= most ? text : `${text.slice(0, most)}\n[cut after ${most} characters]`;
}

const ALONE = ["task", "prompt", "text", "message", "question"];

/**
 * Returns the text of an agent's task for its model: a text, or the only member of a record where that is a text named
 * such as `task` or `prompt`, as it is; anything else as JSON.
 */
export function formatTask(task: unknown): string {
  if (typeof task === "string") return task;
  const entries = isRecord(task) ? Object.entries(task) : [];
  const [only] = entries;
  if (only && entries.length === 1 && ALONE.includes(only[0]) && typeof only[1] === "string") return only[1];
  return JSON.stringify(task ?? {});
}
