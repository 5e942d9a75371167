/** Owns: what an agent's model is told: the task, and what it said and got so far, out of the log alone. */
import { AGENT_BOUNDS } from "../../contracts/workflows/agent-manifest.ts";
import type { AskedCall } from "../../contracts/workflows/agent-events.ts";
import type { AgentMessage } from "../node-contract/agent-effects.ts";
import { describeReturned, type Invocation } from "../state/invocation.ts";
import { isRecord } from "../../std/is-record.ts";

export function messagesOf(invocation: Invocation): AgentMessage[] {
  return [
    { role: "user", content: textOf(invocation.bound?.task) },
    ...invocation.turns.flatMap(({ text, calls }): AgentMessage[] => [
      {
        role: "assistant",
        content: text,
        calls: calls.map(({ callId, call, args }) => ({ callId, call, args })),
      },
      ...calls.map((call): AgentMessage => {
        const { callId, call: name } = call;
        return { role: "tool", callId, call: name, content: cutToolResult(describeReturn(invocation, call)) };
      }),
    ]),
  ];
}

function describeReturn({ returned }: Invocation, { callId, problem }: AskedCall): string {
  if (problem !== undefined) return PROBLEMS[problem];
  const back = returned.get(callId);
  return back ? describeReturned(back) : "error: no answer";
}

const PROBLEMS: Readonly<Record<NonNullable<AskedCall["problem"]>, string>> = {
  forbidden: "forbidden: you may not call this tool",
  malformed: "error: the arguments are no JSON object; nothing was called",
  "over-limit": "error: you have called tools as often as you may; answer now",
};

/** Cuts what a tool returned to its bound. A text that is cut says so at its end, and is not changed by another cut. */
export function cutToolResult(text: string): string {
  const most = AGENT_BOUNDS.toolResultCharsMax;
  return text.length <= most ? text : `${text.slice(0, most)}\n[cut after ${most} characters]`;
}

const ALONE = ["task", "prompt", "text", "message", "question"];

/** A task that is one text is told as that. */
export function textOf(task: unknown): string {
  if (typeof task === "string") return task;
  const entries = isRecord(task) ? Object.entries(task) : [];
  const [only] = entries;
  if (only && entries.length === 1 && ALONE.includes(only[0]) && typeof only[1] === "string") return only[1];
  return JSON.stringify(task ?? {});
}
