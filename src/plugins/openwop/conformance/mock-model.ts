/**
 * Owns: the model of nodes with `provider: "mock"`: it says what a test wrote for the node, one entry for each call, else a
 * sample of the schema. It is the host's and not a run's: a replay that asks again gets the entry that is next then.
 */
import type {
  ChatAnswer,
  ChatModel,
  ChatRequest,
  OutboundFailure,
} from "../../../agents/coordination/ports/outbound.ts";
import type { PlayedNode } from "../../../agents/coordination/runtime/workflow-host/records/conformance-play.ts";
import type { ProgrammedAnswer } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { rememberNewest } from "../../../agents/coordination/std/remember-newest.ts";
import { PLAYED_PROVIDER } from "../../../agents/coordination/workflow/node-contract/conformance-parts.ts";
import { createSchemaSample } from "./sample-of.ts";

export interface MockModel {
  /** In place of what was written for the node before. */
  program(tenant: string, nodeId: string, answers: readonly ProgrammedAnswer[]): void;
  /** Forgets what was written for a tenant's nodes. */
  reset(tenant: string): void;
  /** The model as one node sees it. */
  modelOf(node: PlayedNode): ChatModel;
}

const MODEL = PLAYED_PROVIDER;
const PROGRAMS_MAX = 1_000;

/**
 * Creates the model that gives each node of a tenant the answers programmed for it, in order, and then samples of the
 * schema that is asked for.
 */
export function createMockModel(): MockModel {
  const programs = new Map<string, Map<string, ProgrammedAnswer[]>>();
  return {
    program: (tenant, nodeId, answers) => {
      const tenantAnswers = programs.get(tenant) ?? new Map<string, ProgrammedAnswer[]>();
      rememberNewest(tenantAnswers, nodeId, [...answers], PROGRAMS_MAX);
      programs.set(tenant, tenantAnswers);
    },
    reset: (tenant) => void programs.delete(tenant),
    modelOf: ({ tenant, nodeId }) => ({
      target: ({ model = MODEL }) => ({ provider: MODEL, model }),
      complete: (request) => {
        const next = programs.get(tenant)?.get(nodeId)?.shift();
        return Promise.resolve(next ? createProgrammedAnswer(next, request) : createSampledAnswer(request));
      },
    }),
  };
}

function createProgrammedAnswer(
  { content = "", stopReason, refusalText, inputTokens = 0, outputTokens = 0 }: ProgrammedAnswer,
  request: ChatRequest,
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

/** Returns a sample of the schema that is asked for, `{}` without one; a failure where making it throws. */
function createSampledAnswer(request: ChatRequest): ChatAnswer | OutboundFailure {
  try {
    return createTextAnswer(
      request.schema ? JSON.stringify(createSchemaSample(request.schema.schema)) : "{}",
      request,
    );
  } catch {
    return { kind: "refused", code: "malformed", message: "there is no sample of such a schema" };
  }
}

function createTextAnswer(text: string, { model = MODEL }: ChatRequest): ChatAnswer {
  return {
    kind: "answered",
    text,
    model,
    provider: MODEL,
    finishReason: "stop",
    usage: { inputTokens: 0, outputTokens: 0 },
  };
}
