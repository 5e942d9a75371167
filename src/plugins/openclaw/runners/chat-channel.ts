/**
 * Owns: telling people of a question in their chat, by a turn of the session that they talk to. The model's reaction is no answer:
 * people answer with the command.
 */
import { hash } from "node:crypto";
import { canNumberOptions } from "../../../agents/coordination/contracts/escalation.ts";
import { isChildSessionKey } from "../../../agents/coordination/contracts/host-agent-id.ts";
import { addMs, type EpochMs, type IdempotencyKey } from "../../../agents/coordination/contracts/ids.ts";
import type { AgentRunner } from "../../../agents/coordination/ports/agent-runner.ts";
import type {
  HumanChannel,
  NoticeOutcome,
  Question,
} from "../../../agents/coordination/ports/human-channel.ts";
import { replaceHiddenCharacters } from "../../../agents/coordination/std/hidden-characters.ts";
import { readSessionAgent } from "../host/session-entry.ts";

const TURN_MS = 600_000;

/**
 * Creates the channel that notifies people of a question by starting an agent's turn in the session that they chat
 * with; the notice fails where that session is a child's.
 */
export function createChatChannel(owner: AgentRunner, now: () => number): HumanChannel {
  return {
    notify: async ({ noticeId, question, chatSession }) => {
      if (isChildSessionKey(chatSession)) return createNoChatOutcome(chatSession);
      const atMs = now() as EpochMs;
      const digest = hash("sha256", noticeId);
      const { coordinationId, stepId } = question;
      const started = await owner.start({
        idempotencyKey: `${noticeId}:told` as IdempotencyKey,
        agentId: readSessionAgent(chatSession) as never,
        childSessionKey: chatSession,
        dispatchedAtMs: atMs,
        envelope: {
          coordinationId,
          sourceSession: chatSession,
          targetSession: chatSession,
          stepId: stepId ?? (question.escalationId as never),
          intent: "escalate",
          priority: "high",
          deliveryMode: "best_effort",
          createdAtMs: atMs,
          trace: {},
        },
        lane: "escalation",
        message: formatQuestionMessage(question),
        deadlineAtMs: addMs(atMs, TURN_MS),
        traceparent: `00-${digest.slice(0, 32)}-${digest.slice(32, 48)}-01`,
      });
      return started.kind === "started"
        ? { kind: "delivered", tries: 1 }
        : { kind: "failed", tries: 1, message: started.message };
    },
  };
}

/** Returns that the notice failed: the session is a subagent's. A turn would disturb it at work, and reach nobody. */
function createNoChatOutcome(session: string): NoticeOutcome {
  const message = `${session} is the session of a subagent, which has no chat, and no spawn of it is recorded`;
  return { kind: "failed", tries: 1, message };
}

function formatQuestionMessage({
  questionId,
  title,
  text,
  options = [],
  answers,
  deadlineAtMs,
  onExpiry,
}: Question): string {
  // An older release took ids with any characters.
  const id = replaceHiddenCharacters(questionId, () => " ");
  const commands = answers
    .map((answer) =>
      answer === "answer" ? `/coordination answer ${id} TEXT` : `/coordination ${answer} ${id}`,
    )
    .join(", or ");
  const quotedText = text === undefined ? "" : `\nThe agent wrote, as data: ${JSON.stringify(text)}`;
  const choice = options.length === 0 ? "" : `; ${describeOptions(options)}`;
  const otherwise = onExpiry === "deny" ? "it counts as denied" : "the agent's own default counts";
  return [
    `[Coordination] A person must decide: ${title}${quotedText}${choice}`,
    `Pass this on to the person you work for, and decide nothing yourself: only a command of theirs counts. They answer with ${commands}.`,
    `Without an answer until ${new Date(deadlineAtMs).toISOString()}, ${otherwise}.`,
  ].join("\n");
}

function describeOptions(options: readonly string[]): string {
  const offered = options.map((option) => JSON.stringify(option));
  return canNumberOptions(options)
    ? `the answer is one of these, or its number: ${offered.map((option, index) => `${index + 1} ${option}`).join(", ")}`
    : `the answer is exactly one of ${offered.join(", ")}`;
}
