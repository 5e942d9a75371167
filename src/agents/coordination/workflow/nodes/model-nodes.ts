/** Owns: nodes that ask a model. Its answer is data of the run and decides nothing by itself. */
import { REFUSED, type WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import { findJson } from "../node-contract/json-in.ts";
import type { EffectOutcome, ModelAsk, NodeEffect, NodeType, NodeView } from "../node-contract/node-type.ts";
import type { GraphNode } from "../state/node-graph.ts";
import { readModelOptions } from "../state/model-options.ts";
import { inputsOf } from "../state/values.ts";
import { listSchemaProblems } from "../../plan/output-schema.ts";
import { isRecord } from "../../std/is-record.ts";
import { draftCompleted, draftFailed, draftFailureOf } from "./ends.ts";

const MAX_TOKENS = 4_000;

type Answered = EffectOutcome & { readonly kind: "model_answered" };

/** Lists why no answer of the node's model can be held against the schema that the node asks for. */
export function listModelSchemaProblems({ node: { id, config } }: GraphNode): string[] {
  return listSchemaProblems(config["outputSchema"], `outputSchema of node ${id}`);
}

export const structuredOutput: NodeType = {
  check: listModelSchemaProblems,
  step: (view) => ({ kind: "act", effect: createAskEffect(view) }),
  settle: (view, _effect, outcome) => {
    if (outcome.kind !== "model_answered") return draftUnanswered(view, outcome);
    const result = outcome.object ?? findJson(outcome.text);
    if (result === undefined || outcome.isCutOff) return draftUnusable(view, outcome);
    return outcome.problems?.length
      ? [
          draftFailed(view, {
            code: INVALID,
            message: `the model's answer breaks the schema: ${outcome.problems.join("; ")}`,
          }),
        ]
      : [draftCompleted(view, { result })];
  },
};

export const callPrompt: NodeType = {
  step: (view) => ({ kind: "act", effect: createAskEffect(view) }),
  settle: (view, _effect, outcome) => {
    if (outcome.kind !== "model_answered") return draftUnanswered(view, outcome);
    const { text, isCutOff } = outcome;
    if (text.trim() === "") return draftEmpty(view);
    return isCutOff
      ? [draftFailed(view, { code: "model_answer_incomplete", message: `the model's answer ${CUT_OFF}` })]
      : [draftCompleted(view, { text })];
  },
};

const INVALID = "structured_output_invalid";
const CUT_OFF = "was cut off where the bound of its length is";

function draftUnusable(view: NodeView, { text, isCutOff }: Answered): WorkflowDraft[] {
  if (text.trim() === "") return draftEmpty(view);
  const why = isCutOff ? CUT_OFF : "is no JSON";
  return [draftFailed(view, { code: INVALID, message: `the model's answer ${why}` })];
}

function draftEmpty(view: NodeView): WorkflowDraft[] {
  return [draftFailed(view, { code: "model_answer_empty", message: "the model answered nothing" })];
}

function createAskEffect(view: NodeView): NodeEffect {
  const { config, agent } = view.node.node;
  const request: ModelAsk = {
    ...(view.settings.play?.isModelPlayed(view.node) && { isPlayed: true }),
    ...(agent && { agentId: agent.agentId }),
    ...(typeof config["systemPrompt"] === "string" && { system: config["systemPrompt"] }),
    messages: messagesOf(view),
    ...(isRecord(config["outputSchema"]) && { schema: config["outputSchema"] }),
    ...readModelOptions(view.run.started.configurable, config, MAX_TOKENS),
  };
  const { nodeId, executions } = view.nodeRun;
  return { kind: "ask_model", id: `${nodeId}:${executions}:ask`, nodeId, request };
}

function messagesOf({ run, graph, node }: NodeView): ModelAsk["messages"] {
  const inputs = inputsOf(run, graph, node);
  const givenMessages = inputs["messages"];
  const messages = (Array.isArray(givenMessages) ? givenMessages : [])
    .filter(isRecord)
    .flatMap(({ role, content }) =>
      typeof content === "string" ? [{ role: role === "assistant" ? role : "user", content } as const] : [],
    );
  if (messages.length > 0) return messages;
  const prompt = inputs["prompt"] ?? node.node.config["prompt"] ?? "";
  return [{ role: "user", content: typeof prompt === "string" ? prompt : JSON.stringify(prompt) }];
}

function draftUnanswered(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  if (outcome.kind === "model_refused")
    return [draftFailed(view, { code: REFUSED, message: "the model's provider refused to answer" })];
  return draftFailureOf(view, outcome);
}
