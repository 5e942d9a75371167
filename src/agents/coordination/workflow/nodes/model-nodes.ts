/** Owns: nodes that ask a model. Its answer is data of the run and decides nothing by itself. */
import { REFUSED, type WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import { findJson } from "../node-contract/json-in.ts";
import type { EffectOutcome, ModelAsk, NodeEffect, NodeType, NodeView } from "../node-contract/node-type.ts";
import type { GraphNode } from "../state/node-graph.ts";
import { readModelOptions } from "../state/model-options.ts";
import { readNodeInputs } from "../state/values.ts";
import { listSchemaProblems } from "../../plan/output-schema.ts";
import { isRecord } from "../../std/is-record.ts";
import { draftNodeCompleted, draftNodeFailed, draftFailedOutcome } from "./ends.ts";

const MAX_TOKENS = 4_000;

/** The outcome of a call that a model answered. */
type ModelAnsweredOutcome = EffectOutcome & { readonly kind: "model_answered" };

/**
 * Lists what is wrong with the schema that a node's configuration wants the model's answer to have; empty where it is
 * fine or there is none.
 */
export function listOutputSchemaProblems({ node: { id, config } }: GraphNode): string[] {
  return listSchemaProblems(config["outputSchema"], `outputSchema of node ${id}`);
}

export const structuredOutput: NodeType = {
  check: listOutputSchemaProblems,
  step: (view) => ({ kind: "act", effect: createModelEffect(view) }),
  settle: (view, _effect, outcome) => {
    if (outcome.kind !== "model_answered") return draftModelFailure(view, outcome);
    const result = outcome.object ?? findJson(outcome.text);
    if (result === undefined || outcome.isCutOff) return draftUnusableAnswer(view, outcome);
    return outcome.problems?.length
      ? [
          draftNodeFailed(view, {
            code: INVALID,
            message: `the model's answer breaks the schema: ${outcome.problems.join("; ")}`,
          }),
        ]
      : [draftNodeCompleted(view, { result })];
  },
};

export const callPrompt: NodeType = {
  step: (view) => ({ kind: "act", effect: createModelEffect(view) }),
  settle: (view, _effect, outcome) => {
    if (outcome.kind !== "model_answered") return draftModelFailure(view, outcome);
    const { text, isCutOff } = outcome;
    if (text.trim() === "") return draftEmptyAnswer(view);
    return isCutOff
      ? [draftNodeFailed(view, { code: "model_answer_incomplete", message: `the model's answer ${CUT_OFF}` })]
      : [draftNodeCompleted(view, { text })];
  },
};

const INVALID = "structured_output_invalid";
const CUT_OFF = "was cut off where the bound of its length is";

function draftUnusableAnswer(view: NodeView, { text, isCutOff }: ModelAnsweredOutcome): WorkflowDraft[] {
  if (text.trim() === "") return draftEmptyAnswer(view);
  const why = isCutOff ? CUT_OFF : "is no JSON";
  return [draftNodeFailed(view, { code: INVALID, message: `the model's answer ${why}` })];
}

function draftEmptyAnswer(view: NodeView): WorkflowDraft[] {
  return [draftNodeFailed(view, { code: "model_answer_empty", message: "the model answered nothing" })];
}

function createModelEffect(view: NodeView): NodeEffect {
  const { config, agent } = view.node.node;
  const request: ModelAsk = {
    ...(view.settings.play?.isModelPlayed(view.node) && { isPlayed: true }),
    ...(agent && { agentId: agent.agentId }),
    ...(typeof config["systemPrompt"] === "string" && { system: config["systemPrompt"] }),
    messages: readModelMessages(view),
    ...(isRecord(config["outputSchema"]) && { schema: config["outputSchema"] }),
    ...readModelOptions(view.run.started.configurable, config, MAX_TOKENS),
  };
  const { nodeId, executions } = view.nodeRun;
  return { kind: "ask_model", id: `${nodeId}:${executions}:ask`, nodeId, request };
}

/** Returns the messages that a port brings, else the prompt as the only one. */
function readModelMessages({ run, graph, node }: NodeView): ModelAsk["messages"] {
  const inputs = readNodeInputs(run, graph, node);
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

function draftModelFailure(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  if (outcome.kind === "model_refused")
    return [draftNodeFailed(view, { code: REFUSED, message: "the model's provider refused to answer" })];
  return draftFailedOutcome(view, outcome);
}
