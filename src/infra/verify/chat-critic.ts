/** Owns: a critic's model over chat completions, with the form of a verdict asked for. Its answer is read elsewhere. */
import type { ModelClient } from "../../agents/coordination/ports/model-client.ts";
import type { ChatModel, AnswerMeter } from "../../agents/coordination/ports/outbound.ts";

export interface CriticModel {
  /** Absent: the agent's, or the host's. */
  readonly model?: string;
  readonly traceparent?: string;
  /** Hears of each answer, refusals included. */
  readonly onAnswered?: (answer: AnswerMeter) => void;
}

const MAX_TOKENS = 1_000;
const NAME = "verdict";

const VERDICT = {
  type: "object",
  properties: {
    verdict: { type: "string", enum: ["pass", "fail", "revise"] },
    criteria: { type: "array", items: { type: "string" } },
    confidence: { type: "number" },
  },
  required: ["verdict", "criteria", "confidence"],
  additionalProperties: false,
};

/**
 * Creates the model client through which a critic gives its verdict, by way of a chat model. Its `complete` returns
 * the answer's text and throws where the model refuses or gives no answer.
 */
export function createChatCritic(
  chat: () => Promise<ChatModel>,
  { model, traceparent, onAnswered }: CriticModel,
): ModelClient {
  return {
    complete: async ({ agentId, system, prompt, signal }) => {
      const answer = await (
        await chat()
      ).complete({
        agentId,
        system,
        signal,
        maxTokens: MAX_TOKENS,
        messages: [{ role: "user", content: prompt }],
        schema: { name: NAME, schema: VERDICT },
        ...(model !== undefined && { model }),
        ...(traceparent !== undefined && { traceparent }),
      });
      if (answer.kind !== "answered") throw new Error("the model gave no answer");
      onAnswered?.(answer);
      if (answer.refusal !== undefined || answer.finishReason === "content-filter")
        throw new Error("the model refused");
      return { text: answer.text, model: answer.model };
    },
  };
}
