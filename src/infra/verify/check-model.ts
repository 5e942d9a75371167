/** Owns: asking a critic about a result. Does not own: reaching its model (`ModelClient`). */
import { createNoVerdict } from "../../agents/coordination/contracts/verification.ts";
import { parseHostAgentId } from "../../agents/coordination/contracts/host-agent-id.ts";
import type { AgentId } from "../../agents/coordination/contracts/ids.ts";
import type { ModelClient } from "../../agents/coordination/ports/model-client.ts";
import type { CheckAnswer, CheckRequest } from "../../agents/coordination/ports/verifier.ts";
import type { CheckOf } from "./check-answer.ts";
import { createCriticPrompt, type CriticPrompt } from "./critic-prompt.ts";
import { readCriticAnswer } from "./read-answer.ts";
import { VERIFY_LIMITS } from "./verify-limits.ts";

/** The model that is asked, and the signal to stop asking. */
export interface ModelAccess {
  readonly model?: ModelClient;
  readonly signal: AbortSignal;
}

/**
 * Asks the critic of a check for a verdict on a step's result and returns it; no verdict without a critic, or where it
 * is the agent itself and that is not allowed.
 */
export async function checkModel(
  check: CheckOf<"model">,
  { result, critic, allowSelf }: CheckRequest,
  { model, signal }: ModelAccess,
): Promise<CheckAnswer> {
  const criticId = (check.agent as AgentId | undefined) ?? critic;
  if (!model || criticId === undefined) return createNoVerdict("unavailable", "there is no critic to ask");
  // The host takes several spellings for one agent: a plan must not name its agent as its critic by another one.
  const isSelf = parseHostAgentId(criticId) === parseHostAgentId(result.agentId);
  if (isSelf && !allowSelf)
    return createNoVerdict("self_not_allowed", "the critic is the agent that did the work");
  // Under the name of whoever did the work, so that everybody sees that they are the same.
  const agentId = isSelf ? result.agentId : criticId;
  return askCritic(
    model,
    { agentId, signal },
    (isRepeated) => createCriticPrompt(check, result, isRepeated),
    check.criteria,
  );
}

/** Asks a critic until its answer can be read, at most `asksMax` times. */
async function askCritic(
  model: ModelClient,
  whom: Pick<ModelQuestion, "agentId" | "signal">,
  promptOf: (isRepeated: boolean) => CriticPrompt,
  criteria: readonly string[],
): Promise<CheckAnswer> {
  for (let asks = 0; asks < VERIFY_LIMITS.asksMax && !whom.signal.aborted; asks += 1) {
    const { system, prompt } = promptOf(asks > 0);
    if (system.length + prompt.length > VERIFY_LIMITS.promptCharsMax)
      return createNoVerdict("failed", "the result is too large for a critic");
    const text = await askModelForText(model, { ...whom, system, prompt });
    if (text === undefined) return createNoVerdict("failed", "the critic's model gave no answer");
    const answer = text.length <= CHARS_MAX ? readCriticAnswer(text, criteria) : undefined;
    if (answer) return { kind: "verdict", ...answer, agentId: `agent:${whom.agentId}` };
  }
  return createNoVerdict("malformed", "the critic's answer could not be read");
}

const CHARS_MAX = VERIFY_LIMITS.answerCharsMax;

/** A request to a model, without a limit on its answer. */
type ModelQuestion = Omit<Parameters<ModelClient["complete"]>[0], "charsMax">;

/** Returns the text of the model's answer; `undefined` where it gave none. */
async function askModelForText(model: ModelClient, ask: ModelQuestion): Promise<string | undefined> {
  try {
    const { text } = await model.complete({ ...ask, charsMax: CHARS_MAX });
    return text;
  } catch {
    // The model client's error may quote the provider.
    return undefined;
  }
}
