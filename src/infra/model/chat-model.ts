/**
 * Owns: chat completions of OpenAI-compatible servers, through the AI SDK, which is loaded when it is first needed. Does not
 * own: what is asked, or whether an answer is of its schema.
 */
import type { LanguageModel } from "ai";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type {
  ChatAnswer,
  ChatModel,
  ChatRequest,
  OutboundFailure,
  ModelChoice,
} from "../../agents/coordination/ports/outbound.ts";
import { waitForDuration } from "../../agents/coordination/std/wait-for.ts";
import { createTraceHeaders } from "../../agents/coordination/workflow/trace-context.ts";
import { classifyThrown, createOutboundFailure } from "../http/outbound-error.ts";
import { readRetrySecondsAsMs, computeRetryWaitMs } from "../http/retry.ts";
import type { SafeFetch } from "../http/safe-fetch.ts";
import { resolveVariable, type ReadVariable } from "../http/tokens.ts";
import { createChatAnswer, type Completion } from "./chat-answer.ts";
import { readToolCalls, convertChatMessages, convertTools } from "./tool-calls.ts";

export interface ModelConfig {
  /** Such as `https://api.example/v1`. */
  readonly baseUrl: string;
  /** `${VARIABLE}` stands for a variable of the environment. */
  readonly apiKey?: string;
  /** Where a request names none. */
  readonly model: string;
  /** Models of agents, by agent id. */
  readonly agents?: Readonly<Record<string, string>>;
}

export interface ChatModelDependencies {
  readonly config: ModelConfig;
  readonly fetch: SafeFetch;
  readonly clock: Clock;
  readonly readVariable: ReadVariable;
}

/** The AI SDK as it was loaded. */
type AiSdk = Awaited<ReturnType<typeof loadAiSdk>>;

/** Why a call of a model failed, and how long to wait before another one. */
interface FailedCall {
  readonly failure: OutboundFailure;
  readonly waitMs?: number | undefined;
}

const PROVIDER = "model";
const TRIES_MAX = 3;

/**
 * Creates the client of a chat model. A request that failed is sent again after a wait, `TRIES_MAX` tries in all,
 * unless it was refused or given up; the last failure is returned and not thrown.
 */
export function createChatModel(dependencies: ChatModelDependencies): ChatModel {
  return {
    complete: async (request) => {
      const sdk = await loadAiSdk().catch(() => undefined);
      if (!sdk)
        return createOutboundFailure({ code: "not_configured", message: "The AI SDK cannot be loaded." });
      for (let tries = 1; ; tries += 1) {
        const outcome = await askOnce(sdk, dependencies, request);
        if ("kind" in outcome) return outcome;
        const { failure, waitMs } = outcome;
        const isOver = failure.kind === "refused" || failure.code === "aborted" || tries >= TRIES_MAX;
        if (isOver) return failure;
        await waitForDuration(dependencies.clock, computeRetryWaitMs(tries - 1, waitMs), request.signal);
      }
    },
    target: (request) => ({
      provider: nameProvider(dependencies.config),
      model: chooseModel(dependencies.config, request),
    }),
  };
}

async function loadAiSdk() {
  const [{ generateText, Output, jsonSchema, NoObjectGeneratedError }, { createOpenAICompatible }] =
    await Promise.all([import("ai"), import("@ai-sdk/openai-compatible")]);
  return { generateText, Output, jsonSchema, NoObjectGeneratedError, createOpenAICompatible };
}

/** The last exchange as it was, whatever the library makes of it. */
interface LastExchange {
  status: number;
  waitMs?: number | undefined;
}

/** Sends a request once. Returns the answer, or the failure with the wait that the server asks for. */
async function askOnce(
  sdk: AiSdk,
  { config, fetch, readVariable }: ChatModelDependencies,
  request: ChatRequest,
): Promise<ChatAnswer | FailedCall> {
  const lastExchange: LastExchange = { status: 0 };
  const apiKey = config.apiKey === undefined ? undefined : resolveVariable(config.apiKey, readVariable);
  const provider = sdk.createOpenAICompatible({
    name: PROVIDER,
    baseURL: config.baseUrl,
    ...(apiKey !== undefined && { apiKey }),
    supportsStructuredOutputs: true,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      lastExchange.status = response.status;
      lastExchange.waitMs = readRetrySecondsAsMs(response.headers);
      return response;
    },
  });
  const model = chooseModel(config, request);
  try {
    const completion = await generateCompletion(sdk, provider.chatModel(model), request);
    return createChatAnswer(completion, { model, provider: nameProvider(config) });
  } catch (error) {
    return { failure: classifyModelError(error, lastExchange, request.signal), waitMs: lastExchange.waitMs };
  }
}

/** Names the provider by the host of its URL. */
function nameProvider({ baseUrl }: ModelConfig): string {
  return URL.parse(baseUrl)?.host ?? PROVIDER;
}

/** Returns the model that a request names, else that of its agent, else that of the configuration. */
function chooseModel({ model, agents = {} }: ModelConfig, request: ModelChoice): string {
  const { agentId } = request;
  const ofAgent = agentId !== undefined && Object.hasOwn(agents, agentId) ? agents[agentId] : undefined;
  return request.model ?? ofAgent ?? model;
}

/**
 * Lets the SDK generate an answer, of a schema where the request has one. An answer that does not fit it is returned,
 * too.
 */
async function generateCompletion(
  sdk: AiSdk,
  model: LanguageModel,
  request: ChatRequest,
): Promise<Completion> {
  const { schema } = request;
  const settings = {
    model,
    messages: convertChatMessages(request.messages),
    ...convertTools(sdk, request),
    ...(request.system !== undefined && { instructions: request.system }),
    ...pickSampling(request),
    maxOutputTokens: request.maxTokens,
    // Tried again here, where time is a value.
    maxRetries: 0,
    abortSignal: request.signal,
    headers: { ...createTraceHeaders(request) },
    include: { responseBody: true },
    providerOptions: { [PROVIDER]: { strictJsonSchema: false } },
  };
  if (!schema) {
    const { text, finishReason, usage, finalStep } = await sdk.generateText(settings);
    const { response, toolCalls, reasoningText: reasoning } = finalStep;
    return {
      text,
      finishReason,
      usage,
      response,
      reasoning,
      isObject: false,
      calls: readToolCalls(toolCalls),
    };
  }
  const output = sdk.Output.object({ schema: sdk.jsonSchema({ ...schema.schema }), name: schema.name });
  try {
    const { text, finishReason, usage, finalStep } = await sdk.generateText({ ...settings, output });
    return { text, finishReason, usage, response: finalStep.response, isObject: true };
  } catch (error) {
    // An answer that is no JSON is an answer: whoever asked rules on it.
    if (!sdk.NoObjectGeneratedError.isInstance(error)) throw error;
    const { text = "", finishReason = "other", usage, response } = error;
    return { text, finishReason, usage, response, isObject: true };
  }
}

function pickSampling({ temperature, topP, seed, stop }: ChatRequest) {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(seed !== undefined && { seed }),
    ...(stop !== undefined && { stopSequences: [...stop] }),
  };
}

/** Returns an error as a failure: given up, else what the fetch threw, else by the last HTTP status. */
function classifyModelError(error: unknown, { status }: LastExchange, signal: AbortSignal): OutboundFailure {
  if (signal.aborted) return createOutboundFailure({ code: "aborted", message: "The call was given up." });
  return (
    classifyThrown(error, status) ??
    createOutboundFailure({ code: "malformed", message: "The model's answer is not of the protocol." })
  );
}
