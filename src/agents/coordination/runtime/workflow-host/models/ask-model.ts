/** Owns: asking a model for a node: the host's, or the one that plays it; and holding what it answers against the schema that was asked for. */
import { findCanonicalProblem } from "../../../std/canonical-json.ts";
import type { ChatAnswer, ChatModel, OutboundFailure } from "../../../ports/outbound.ts";
import { listJsonCandidates } from "../../../workflow/node-contract/json-in.ts";
import type { EffectOutcome, ModelAsk, NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import type { ModelAsked } from "../../../workflow/node-contract/agent-effects.ts";
import type { Values } from "../../../workflow/state/values.ts";
import {
  describeOtherProvider,
  hashModelRequest,
  MAX_TOKENS,
  chooseModelName,
  shortenName,
  type AskedModel,
} from "./model-request.ts";
import { convertToFailedOutcome } from "./outbound-outcome.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

export type AskDependencies = Pick<WorkflowHostDependencies, "chat" | "contract" | "sha256" | "conformance">;

export interface ModelCall {
  readonly effect: NodeEffect & { readonly kind: "ask_model" };
  readonly tenant: string;
  readonly signal: AbortSignal;
  readonly traceparent?: string | undefined;
}

/**
 * Asks the model for a node, and returns the outcome. A refusal, a failure, a request that cannot be sent and an
 * answer that is not of the schema are outcomes, too.
 */
export async function askModel(dependencies: AskDependencies, call: ModelCall): Promise<EffectOutcome> {
  const { request } = call.effect;
  if (findCanonicalProblem(request) !== undefined) return UNSENDABLE;
  const played = request.isPlayed ? dependencies.conformance?.modelOf(createPlayPlace(call)) : undefined;
  const chat = played ?? (await dependencies.chat());
  const target = findTargetModel(chat, request);
  const refusal = findProviderRefusal(request, target);
  if (refusal !== undefined) return { kind: "failed", error: { code: "not_configured", message: refusal } };
  const answer = await sendModelRequest(chat, call, target);
  if (answer.kind !== "answered") {
    const modelAsked = target && hashModelRequest(dependencies, request, target);
    return convertToFailedOutcome(answer, modelAsked && { asked: modelAsked });
  }
  const answering = { provider: shortenName(answer.provider), model: chooseModelName(request, answer.model) };
  const modelAsked = hashModelRequest(dependencies, request, target ?? answering);
  return createModelOutcome(dependencies, request, answer, modelAsked);
}

const UNSENDABLE: EffectOutcome = {
  kind: "failed",
  error: { code: "model_request_malformed", message: "the question to the model is not valid Unicode text" },
};

/** Says why the provider that the run names would not be asked. A host that routes to several needs the model's name, too. */
function findProviderRefusal(
  { provider, routedModel, isPlayed }: ModelAsk,
  target: AskedModel | undefined,
): string | undefined {
  if (provider === undefined || isPlayed || provider === target?.provider) return undefined;
  if (target) return describeOtherProvider(provider, target.provider);
  const unrouted = "neither the run nor the node names a model of the provider that the run names";
  return routedModel === undefined ? unrouted : undefined;
}

/** Returns the model that will be asked, if the host can tell, so that a failed call can name it too. */
function findTargetModel(chat: ChatModel, request: ModelAsk): AskedModel | undefined {
  const target = chat.target?.(request);
  return target && { provider: shortenName(target.provider), model: shortenName(target.model) };
}

function createPlayPlace({ effect: { nodeId }, tenant }: ModelCall) {
  return { tenant, nodeId };
}

function sendModelRequest(
  chat: ChatModel,
  { effect: { request }, signal, traceparent }: ModelCall,
  target: AskedModel | undefined,
): Promise<ChatAnswer | OutboundFailure> {
  const { schema, maxTokens = MAX_TOKENS, isPlayed, provider: _, model, routedModel, ...rest } = request;
  const name = target || isPlayed ? model : (routedModel ?? model);
  return chat.complete({
    ...rest,
    maxTokens,
    signal,
    ...(name !== undefined && { model: name }),
    ...(schema && { schema: { name: "answer", schema } }),
    ...(traceparent !== undefined && { traceparent }),
  });
}

/**
 * Creates the outcome of an answer: a refusal, or the text with the first object that fits the schema, else the first
 * one with its problems.
 */
async function createModelOutcome(
  dependencies: AskDependencies,
  { schema }: ModelAsk,
  { text, object: objectGiven, refusal, finishReason, ...answer }: ChatAnswer,
  modelAsked: ModelAsked | undefined,
): Promise<EffectOutcome> {
  const modelEvent = {
    model: shortenName(answer.model),
    usage: { ...answer.usage, provider: shortenName(answer.provider) },
    ...(modelAsked && { asked: modelAsked }),
  };
  if (refusal !== undefined || finishReason === "content-filter")
    return { kind: "model_refused", ...modelEvent };
  const candidates = objectGiven === undefined && schema ? listJsonCandidates(text) : [objectGiven];
  const { object, problems } = await chooseObject(dependencies, schema, candidates);
  return {
    kind: "model_answered",
    text,
    problems,
    isCutOff: finishReason === "length",
    ...modelEvent,
    ...(object !== undefined && { object }),
  };
}

/** Chooses the first candidate that satisfies the schema, else the first one, with its problems. */
async function chooseObject(
  dependencies: AskDependencies,
  schema: Values | undefined,
  candidates: readonly unknown[],
): Promise<{ readonly object: unknown; readonly problems: readonly string[] }> {
  const [first] = candidates;
  if (!schema || first === undefined) return { object: first, problems: [] };
  const problems = await listObjectProblems(dependencies, schema, first);
  if (problems.length > 0)
    for (const object of candidates.slice(1))
      if ((await listObjectProblems(dependencies, schema, object)).length === 0)
        return { object, problems: [] };
  return { object: first, problems };
}

async function listObjectProblems(
  dependencies: AskDependencies,
  schema: Values,
  object: unknown,
): Promise<string[]> {
  const problems = (await dependencies.contract()).check(schema, object);
  return problems.map(({ path, message }) => `${path}: ${message}`);
}
