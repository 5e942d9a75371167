/** Owns: the critics' `ModelClient` over chat completions. */
import type { ModelClient } from "../../agents/coordination/ports/model-client.ts";
import type { ChatModel } from "../../agents/coordination/ports/outbound.ts";

/** A token is rarely less than two characters. */
const TOKENS_PER_CHAR = 0.5;

export function modelClientOf(chat: ChatModel): ModelClient {
  return {
    complete: async ({ agentId, system, prompt, charsMax, signal }) => {
      const answer = await chat.complete({
        agentId,
        system,
        messages: [{ role: "user", content: prompt }],
        maxTokens: Math.ceil(charsMax * TOKENS_PER_CHAR),
        signal,
      });
      if (answer.kind !== "answered") throw new Error(answer.message);
      if (answer.finishReason !== "stop" || answer.refusal !== undefined)
        throw new Error(`the model gave no whole answer (${answer.finishReason})`);
      return { text: answer.text.slice(0, charsMax), model: answer.model };
    },
  };
}
