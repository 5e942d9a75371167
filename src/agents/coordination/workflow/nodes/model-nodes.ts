/** Owns: nodes that ask a model. What it answers is data of the run and decides nothing by itself. */
import type { WorkflowDraft } from "../../contracts/workflow-events.ts";
import {
  of,
  type EffectOutcome,
  type ModelAsk,
  type NodeEffect,
  type NodeType,
  type NodeView,
} from "../node-type.ts";
import { inputsOf, isRecord, type Values } from "../values.ts";
import { sampleOf } from "./sample-of.ts";
import { jsonIn } from "./supervisor-prompt.ts";

const MAX_TOKENS = 4_000;

export const structuredOutput: NodeType = {
  step: (view) => {
    const { config } = view.node.node;
    return config["provider"] === "mock"
      ? { kind: "complete", outputs: { result: sampleOf(config["outputSchema"]), finishReason: "stop" } }
      : { kind: "act", effect: asking(view) };
  },
  settle: (view, _effect, outcome) => {
    if (outcome.kind !== "model_answered") return unanswered(view, outcome);
    const result = outcome.object ?? jsonIn(outcome.text);
    return result === undefined
      ? failed(view, "structured_output_invalid", "the model's answer is no JSON")
      : [...usage(view, outcome), completed(view, { result })];
  },
};

export const callPrompt: NodeType = {
  step: (view) => ({ kind: "act", effect: asking(view) }),
  settle: (view, _effect, outcome) =>
    outcome.kind === "model_answered"
      ? [...usage(view, outcome), completed(view, { text: outcome.text })]
      : unanswered(view, outcome),
};

function asking(view: NodeView): NodeEffect {
  const { config, agent } = view.node.node;
  const { model, temperature, maxTokens }: Values = { ...view.run.started.configurable, ...config };
  const request: ModelAsk = {
    ...(agent && { agentId: agent.agentId }),
    ...(typeof model === "string" && { model }),
    ...(typeof config["systemPrompt"] === "string" && { system: config["systemPrompt"] }),
    messages: messagesOf(view),
    ...(isRecord(config["outputSchema"]) && { schema: config["outputSchema"] }),
    ...(typeof temperature === "number" && { temperature }),
    maxTokens: typeof maxTokens === "number" ? maxTokens : MAX_TOKENS,
  };
  const { nodeId, executions } = view.own;
  return { kind: "ask_model", id: `${nodeId}:${executions}:ask`, nodeId, request };
}

function messagesOf({ run, graph, node }: NodeView): ModelAsk["messages"] {
  const inputs = inputsOf(run, graph, node);
  const given = inputs["messages"];
  const messages = (Array.isArray(given) ? given : [])
    .filter(isRecord)
    .flatMap(({ role, content }) =>
      typeof content === "string" ? [{ role: role === "assistant" ? role : "user", content } as const] : [],
    );
  if (messages.length > 0) return messages;
  const prompt = inputs["prompt"] ?? node.node.config["prompt"] ?? "";
  return [{ role: "user", content: typeof prompt === "string" ? prompt : JSON.stringify(prompt) }];
}

function usage(
  view: NodeView,
  { model, usage: tokens }: EffectOutcome & { kind: "model_answered" },
): WorkflowDraft[] {
  const tokensOf = (key: string): number => (typeof tokens[key] === "number" ? tokens[key] : 0);
  const payload = {
    provider: typeof tokens["provider"] === "string" ? tokens["provider"] : "openai-compatible",
    model,
    inputTokens: tokensOf("inputTokens"),
    outputTokens: tokensOf("outputTokens"),
    nodeId: view.own.nodeId,
  };
  return [of(view, { type: "provider.usage", payload })];
}

function unanswered(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  if (outcome.kind === "model_refused")
    return failed(view, "envelope_refused_by_provider", "the model's provider refused to answer");
  return outcome.kind === "failed" ? failed(view, outcome.error.code, outcome.error.message) : [];
}

function failed({ own: { nodeId } }: NodeView, code: string, message: string): WorkflowDraft[] {
  return [{ type: "node.failed", nodeId, payload: { nodeId, error: { code, message } } }];
}

function completed({ own: { nodeId } }: NodeView, outputs: Values): WorkflowDraft {
  return { type: "node.completed", nodeId, payload: { nodeId, outputs: { ...outputs } } };
}
