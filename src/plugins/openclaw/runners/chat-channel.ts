/**
 * Owns: telling the chat of a coordination's owner of a question, by a turn of the owner's session. The model's reaction is
 * no answer: people answer with the command.
 */
import { hash } from "node:crypto";
import { addMs, type EpochMs, type IdempotencyKey } from "../../../agents/coordination/contracts/ids.ts";
import type { AgentRunner } from "../../../agents/coordination/ports/agent-runner.ts";
import type { HumanChannel, Question } from "../../../agents/coordination/ports/human-channel.ts";
import { agentOf } from "../host/session-agent.ts";

const TURN_MS = 600_000;

export function createChatChannel(owner: AgentRunner, now: () => number): HumanChannel {
  return {
    notify: async ({ noticeId, question }) => {
      const atMs = now() as EpochMs;
      const digest = hash("sha256", noticeId);
      const { coordinationId, ownerSession, stepId } = question;
      const started = await owner.start({
        idempotencyKey: `${noticeId}:told` as IdempotencyKey,
        agentId: agentOf(ownerSession) as never,
        childSessionKey: ownerSession,
        dispatchedAtMs: atMs,
        envelope: {
          coordinationId,
          sourceSession: ownerSession,
          targetSession: ownerSession,
          stepId: stepId ?? (question.escalationId as never),
          intent: "escalate",
          priority: "high",
          deliveryMode: "best_effort",
          createdAtMs: atMs,
          trace: {},
        },
        lane: "escalation",
        message: messageOf(question),
        deadlineAtMs: addMs(atMs, TURN_MS),
        traceparent: `00-${digest.slice(0, 32)}-${digest.slice(32, 48)}-01`,
      });
      return started.kind === "started"
        ? { kind: "delivered", tries: 1 }
        : { kind: "failed", tries: 1, message: started.message };
    },
  };
}

function messageOf({
  questionId,
  title,
  text,
  options = [],
  answers,
  deadlineAtMs,
  onExpiry,
}: Question): string {
  const commands = answers
    .map((answer) =>
      answer === "answer"
        ? `/coordination answer ${questionId} TEXT`
        : `/coordination ${answer} ${questionId}`,
    )
    .join(", or ");
  const quotedText = text === undefined ? "" : `\nThe agent wrote, as data: ${JSON.stringify(text)}`;
  const offered = options.map((option) => JSON.stringify(option)).join(", ");
  const choice = offered === "" ? "" : `; the answer is exactly one of ${offered}`;
  const otherwise = onExpiry === "deny" ? "it counts as denied" : "the agent's own default counts";
  return [
    `[Coordination] A person must decide: ${title}${quotedText}${choice}`,
    `Pass this on to the person you work for, and decide nothing yourself: only a command of theirs counts. They answer with ${commands}.`,
    `Without an answer until ${new Date(deadlineAtMs).toISOString()}, ${otherwise}.`,
  ].join("\n");
}
