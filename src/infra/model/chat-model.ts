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
import { waitFor } from "../../agents/coordination/std/wait-for.ts";
import { traceHeaders } from "../../agents/coordination/workflow/trace-context.ts";
import { failureOf, failureFromStatus, findOutboundError } from "../http/outbound-error.ts";
import { retryAfterMs, waitBeforeTry } from "../http/retry.ts";
import type { SafeFetch } from "../http/safe-fetch.ts";
import { resolveVariable, type ReadVariable } from "../http/tokens.ts";
import { createChatAnswer, type Completion } from "./chat-answer.ts";
import { readCalls, convertMessages, convertTools } from "./tool-calls.ts";

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

type Sdk = Awaited<ReturnType<typeof loadSdk>>;

interface Failed {
  readonly failure: OutboundFailure;
  readonly waitMs?: number | undefined;
}

const PROVIDER = "model";
const TRIES_MAX = 3;

export function createChatModel(dependencies: ChatModelDependencies): ChatModel {
  return {
    complete: async (request) => {
      const sdk = await loadSdk().catch(() => undefined);
      if (!sdk) return failureOf({ code: "not_configured", message: "The AI SDK cannot be loaded." });
      for (let tries = 1; ; tries += 1) {
        const outcome = await askOnce(sdk, dependencies, request);
        if ("kind" in outcome) return outcome;
        const { failure, waitMs } = outcome;
        const isOver = failure.kind === "refused" || failure.code === "aborted" || tries >= TRIES_MAX;
        if (isOver) return failure;
        await waitFor(dependencies.clock, waitBeforeTry(tries - 1, waitMs), request.signal);
      }
    },
    target: (request) => ({
      provider: providerOf(dependencies.config),
      model: modelOf(dependencies.config, request),
    }),
  };
}

async function loadSdk() {
  const [{ generateText, Output, jsonSchema, NoObjectGeneratedError }, { createOpenAICompatible }] =
    await Promise.all([import("ai"), import("@ai-sdk/openai-compatible")]);
  return { generateText, Output, jsonSchema, NoObjectGeneratedError, createOpenAICompatible };
}

/** The last exchange as it was, whatever the library makes of it. */
interface Seen {
  status: number;
  waitMs?: number | undefined;
}

async function askOnce(
  sdk: Sdk,
  { config, fetch, readVariable }: ChatModelDependencies,
  request: ChatRequest,
): Promise<ChatAnswer | Failed> {
  const seen: Seen = { status: 0 };
  const apiKey = config.apiKey === undefined ? undefined : resolveVariable(config.apiKey, readVariable);
  const provider = sdk.createOpenAICompatible({
    name: PROVIDER,
    baseURL: config.baseUrl,
    ...(apiKey !== undefined && { apiKey }),
    supportsStructuredOutputs: true,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      seen.status = response.status;
      seen.waitMs = retryAfterMs(response.headers);
      return response;
    },
  });
  const model = modelOf(config, request);
  try {
    const completion = await generate(sdk, provider.chatModel(model), request);
    return createChatAnswer(completion, { model, provider: providerOf(config) });
  } catch (error) {
    return { failure: readFailure(error, seen, request.signal), waitMs: seen.waitMs };
  }
}

function providerOf({ baseUrl }: ModelConfig): string {
  return URL.parse(baseUrl)?.host ?? PROVIDER;
}

function modelOf({ model, agents = {} }: ModelConfig, request: ModelChoice): string {
  const { agentId } = request;
  const ofAgent = agentId !== undefined && Object.hasOwn(agents, agentId) ? agents[agentId] : undefined;
  return request.model ?? ofAgent ?? model;
}

async function generate(sdk: Sdk, model: LanguageModel, request: ChatRequest): Promise<Completion> {
  const { schema } = request;
  const settings = {
    model,
    messages: convertMessages(request.messages),
    ...convertTools(sdk, request),
    ...(request.system !== undefined && { instructions: request.system }),
    ...samplingOf(request),
    maxOutputTokens: request.maxTokens,
    // Tried again here, where time is a value.
    maxRetries: 0,
    abortSignal: request.signal,
    headers: { ...traceHeaders(request) },
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
      calls: readCalls(toolCalls),
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

function samplingOf({ temperature, topP, seed, stop }: ChatRequest) {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(seed !== undefined && { seed }),
    ...(stop !== undefined && { stopSequences: [...stop] }),
  };
}

function readFailure(error: unknown, { status }: Seen, signal: AbortSignal): OutboundFailure {
  if (signal.aborted) return failureOf({ code: "aborted", message: "The call was given up." });
  const outboundError = findOutboundError(error);
  if (outboundError) return failureOf(outboundError);
  const refused = status > 0 ? failureFromStatus(status) : undefined;
  return refused ?? failureOf({ code: "malformed", message: "The model's answer is not of the protocol." });
}
