/**
 * Owns: the model of nodes with `provider: "mock"`: it says what a test wrote for the node, one entry for each call, else a
 * sample of the schema. It is the host's and not a run's: a replay that asks again gets the entry that is next then.
 */
import type { ChatAnswer, OutboundFailure } from "../../../ports/outbound.ts";
import type { ModelAsk } from "../../../workflow/node-contract/node-type.ts";
import { findJson } from "../../../workflow/node-contract/json-in.ts";
import { sampleOf } from "../../../workflow/sample-of.ts";

/** One answer. A refusal has a text, or was stopped for safety. */
export interface MockAnswer {
  readonly content?: string | undefined;
  readonly stopReason?: string | undefined;
  readonly refusalText?: string | undefined;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}

export interface MockModel {
  /** In place of what was written for the node before. */
  program(tenant: string, nodeId: string, answers: readonly MockAnswer[]): void;
  /** Forgets what was written for a tenant's nodes. */
  reset(tenant: string): void;
  answer(
    at: { readonly tenant: string; readonly nodeId: string },
    request: ModelAsk,
  ): ChatAnswer | OutboundFailure;
}

const MODEL = "mock";
const PROGRAMS_MAX = 1_000;

export function createMockModel(): MockModel {
  const programs = new Map<string, Map<string, MockAnswer[]>>();
  return {
    program: (tenant, nodeId, answers) => {
      const tenantAnswers = programs.get(tenant) ?? new Map<string, MockAnswer[]>();
      tenantAnswers.delete(nodeId);
      tenantAnswers.set(nodeId, [...answers]);
      const [oldest] = tenantAnswers.keys();
      if (tenantAnswers.size > PROGRAMS_MAX && oldest !== undefined) tenantAnswers.delete(oldest);
      programs.set(tenant, tenantAnswers);
    },
    reset: (tenant) => void programs.delete(tenant),
    answer: ({ tenant, nodeId }, request) => {
      const next = programs.get(tenant)?.get(nodeId)?.shift();
      return next ? createProgrammedAnswer(next, request) : createSampledAnswer(request);
    },
  };
}

function createProgrammedAnswer(
  { content = "", stopReason, refusalText, inputTokens = 0, outputTokens = 0 }: MockAnswer,
  request: ModelAsk,
): ChatAnswer {
  const usage = { inputTokens, outputTokens };
  if (refusalText !== undefined || stopReason === "safety")
    return {
      ...createTextAnswer("", request),
      usage,
      finishReason: "content-filter",
      refusal: refusalText ?? content,
    };
  const isCutOff = stopReason === "max_tokens" || stopReason === "length";
  return { ...createTextAnswer(content, request), usage, finishReason: isCutOff ? "length" : "stop" };
}

function createSampledAnswer(request: ModelAsk): ChatAnswer | OutboundFailure {
  try {
    return createTextAnswer(request.schema ? JSON.stringify(sampleOf(request.schema)) : "{}", request);
  } catch {
    return { kind: "refused", code: "malformed", message: "there is no sample of such a schema" };
  }
}

function createTextAnswer(text: string, { schema, model = MODEL }: ModelAsk): ChatAnswer {
  const object = schema ? (jsonOf(text) ?? findJson(text)) : undefined;
  return {
    kind: "answered",
    text,
    model,
    provider: MODEL,
    finishReason: "stop",
    usage: { inputTokens: 0, outputTokens: 0 },
    ...(object !== undefined && { object }),
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
