/** Owns: what a chat is told of an agent's run: one clear sentence, or the agent's answer under its name. */
import { REFUSED } from "../../../agents/coordination/contracts/workflows/workflow-events.ts";
import type { ChatRefusal, ChatRun } from "../../chat-agents.ts";
import { formatChatText, formatChatLine } from "./chat-text.ts";

/** Channels cut what is longer, or send it in many parts. */
const ANSWER_CHARS_MAX = 3_500;

/**
 * Returns the chat reply for a run that a chat began: the agent's answer, what it waits for, how it ended, or why it
 * was refused.
 */
export function formatRunReply(run: ChatRun | ChatRefusal): string {
  switch (run.kind) {
    case "answered":
      return describeAnswer(run);
    case "waits":
      return describeWaitingRun(run);
    case "failed":
      return describeFailedRun(run);
    case "cancelled":
      return `${run.agentId} was stopped (${run.runId}).`;
    case "working":
      return `${run.agentId} is still at work. What comes of it: /coordination run ${run.runId}`;
    case "refused":
      return `That did not work: ${formatChatLine(run.message)}.`;
    case "busy":
      return "Too many agents are at work already. Try again when one has answered.";
    case "unknown_run":
      return "No run of yours has that id.";
    case "same_session":
      return "It must be answered in another session than the one that asked.";
    case "not_waiting":
      return "The run waits for nobody any more.";
  }
}

/** Describes an agent's answer under its name, so that no word passes for the host's or for somebody else's. */
function describeAnswer({ agentId, runId, result }: ChatRun & { readonly kind: "answered" }): string {
  const text = typeof result === "string" ? result : JSON.stringify(result ?? null, null, 2);
  const shown = formatChatText(text, ANSWER_CHARS_MAX);
  // Shown, a text may be longer or shorter than it is.
  const isCut = formatChatText(text, ANSWER_CHARS_MAX + 1) !== shown;
  return `${agentId}: ${shown}${isCut ? `\n(The rest is in ${runId}.)` : ""}`;
}

function describeWaitingRun({
  agentId,
  runId,
  doubt,
  isAnswerable,
}: ChatRun & { readonly kind: "waits" }): string {
  const why = doubt
    ? `${agentId} is not sure of its answer (${formatShare(doubt.observed)}; ${formatShare(doubt.threshold)} is asked for): a person must decide.`
    : `${agentId} waits for a person.`;
  return isAnswerable
    ? `${why} Answer with /coordination approve ${runId}, or /coordination deny ${runId}.`
    : `${why} It cannot be answered here (${runId}).`;
}

/** Formats a share with three decimals, rounded down so that it never reaches what the gate asked for. */
function formatShare(value: number): string {
  return String(Math.floor(value * 1_000) / 1_000);
}

const REFUSALS: Readonly<Record<string, string>> = {
  [REFUSED]: "its model refused to answer",
  low_confidence_rejected: "its answer was not approved",
};

function describeFailedRun({ agentId, runId, code, message }: ChatRun & { readonly kind: "failed" }): string {
  const why =
    REFUSALS[code] ??
    `${formatChatLine(message).replace(/\.$/u, "") || "it failed"} (${formatChatLine(code)})`;
  return `${agentId} did not do it: ${why}. Its run is ${runId}.`;
}
