/** Owns: how an attempt counts as ended, by the reason that its agent program gives for stopping. */
import type { StopReason } from "@agentclientprotocol/sdk";
import type { ChildEnding } from "../../agents/coordination/contracts/observation.ts";
import type { LastWords } from "./last-words.ts";

/** The end of a child that a stop reason means. */
type StopMeaning = Pick<ChildEnding, "outcome" | "message">;

const VERDICTS: Readonly<Record<StopReason, StopMeaning>> = {
  end_turn: { outcome: "completed" },
  cancelled: { outcome: "cancelled", message: "The agent stopped because it was cancelled." },
  max_tokens: { outcome: "failed", message: "The agent reached its limit of tokens." },
  max_turn_requests: { outcome: "failed", message: "The agent reached its limit of model requests." },
  refusal: { outcome: "failed", message: "The agent refused to go on." },
};

const UNKNOWN: StopMeaning = {
  outcome: "failed",
  message: "The agent stopped for a reason that the protocol does not know.",
};

/**
 * Returns how an attempt ended by the stop reason that its agent gave, with the agent's last message and usage. An
 * unknown reason counts as a failure.
 */
export function judgeStopReason(stopReason: unknown, words: LastWords): ChildEnding {
  const verdict = isStopReason(stopReason) ? VERDICTS[stopReason] : UNKNOWN;
  const reply = words.reply();
  const replyEnd = words.replyEnd();
  const usage = words.usage();
  return {
    ...verdict,
    ...(reply !== undefined && { reply }),
    ...(replyEnd !== undefined && { replyEnd }),
    ...(usage && { usage }),
  };
}

function isStopReason(value: unknown): value is StopReason {
  return typeof value === "string" && Object.hasOwn(VERDICTS, value);
}
