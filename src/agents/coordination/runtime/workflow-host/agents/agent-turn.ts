/** Owns: one turn of an agent's model: what it is asked, and what its answer is: calls of tools, a result, or nothing usable. */
import { AGENT_BOUNDS, type InstalledAgent } from "../../../contracts/workflows/agent-manifest.ts";
import { formatCanonicalJson } from "../../../std/canonical-json.ts";
import type { AskedCall, BoundTool } from "../../../contracts/workflows/agent-events.ts";
import { createLlmCacheKeyText } from "../../../openwop/llm-cache-key.ts";
import type {
  ChatAnswer,
  ChatCallAsked,
  ChatMessage,
  ChatRequest,
  OutboundFailure,
  TraceContext,
} from "../../../ports/outbound.ts";
import type {
  AgentEffect,
  AgentMessage,
  AgentOutcome,
  ModelAsked,
} from "../../../workflow/node-contract/agent-effects.ts";
import { findCalledTool } from "../../../workflow/node-contract/agent-tools.ts";
import type { EffectOutcome } from "../../../workflow/node-contract/node-type.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import type { Values } from "../../../workflow/state/values.ts";
import { isRecord } from "../../../std/is-record.ts";
import type { AgentBook } from "./agent-book.ts";
import { readAgentResult } from "./agent-result.ts";
import { formatAgentPrompt, type BoundAgent } from "./agent-rules.ts";
import { maskText, maskValue } from "../records/mask-secrets.ts";
import { shortenName } from "../models/model-request.ts";
import { convertToFailedOutcome } from "../models/outbound-outcome.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

export interface TurnDependencies extends Pick<
  WorkflowHostDependencies,
  "chat" | "contract" | "sha256" | "secrets" | "conformance"
> {
  readonly agentBook: AgentBook;
}

/** The effect that asks an agent's model once, with its run. */
export interface AgentTurn {
  readonly run: WorkflowRun;
  readonly effect: AgentEffect & { readonly kind: "ask_agent" };
  readonly signal: AbortSignal;
  readonly trace: TraceContext;
}

/** The outcome of a turn that the agent's model answered. */
type AgentTurnOutcome = AgentOutcome & { readonly kind: "agent_turned" };

/**
 * Asks the agent's model once, and returns the outcome: its tool calls or its result, a refusal, why its answer cannot
 * be used, or a failure. It does not call the tools.
 */
export async function runAgentTurn(
  dependencies: TurnDependencies,
  turning: AgentTurn,
): Promise<EffectOutcome> {
  const { effect, run } = turning;
  const agent = await dependencies.agentBook.load(effect.manifest);
  const bound = run.nodes.get(effect.nodeId)?.invocation?.bound;
  if (!agent || !bound)
    return { kind: "failed", error: { code: "agent_not_installed", message: "the agent cannot be read" } };
  const request = createTurnRequest(agent, bound, effect);
  const answer = await askAgentModel(dependencies, turning, { agent, bound, request });
  const digest = createModelDigest(dependencies, request, readAnsweringModel(bound, answer));
  if (answer.kind !== "answered") return convertToFailedOutcome(answer, digest && { asked: digest });
  const modelEvent = describeAnsweringModel(answer, digest);
  if (answer.refusal !== undefined || answer.finishReason === "content-filter")
    return { kind: "model_refused", ...modelEvent };
  const answeredTurn = await readAnsweredTurn(dependencies, {
    agent,
    bound,
    answer,
    callsLeft: effect.callsLeft,
    turn: effect.turn,
  });
  return {
    kind: "agent_turned",
    ...modelEvent,
    ...answeredTurn,
    reasoning: isReasoningOff(run) ? "" : answeredTurn.reasoning,
  };
}

/** A request to an agent's model, and the agent that it is made for. */
interface AgentModelRequest {
  readonly agent: InstalledAgent;
  readonly bound: BoundAgent;
  readonly request: TurnRequest;
}

/** Sends the request to the model, or to the conformance play where that plays the bound provider. */
async function askAgentModel(
  { chat, conformance }: TurnDependencies,
  { run, effect, signal, trace: { traceparent } }: AgentTurn,
  { agent, bound, request }: AgentModelRequest,
): Promise<ChatAnswer | OutboundFailure> {
  const played = conformance?.agentOf(run.started.configurable);
  if (played && bound.provider === played.model.provider) return played.answer(agent, effect.turn);
  const traced = { ...request, signal, ...(traceparent !== undefined && { traceparent }) };
  return (await chat()).complete(traced);
}

/** A model by the names of its provider and itself, as far as they are known. */
interface NamedModel {
  readonly provider?: string | undefined;
  readonly model?: string | undefined;
}

/** Returns provider and model as the invocation is bound to them, else as the answer names them. */
function readAnsweringModel(
  { provider, model }: BoundAgent,
  answer: ChatAnswer | OutboundFailure,
): NamedModel {
  const namedAnswer: NamedModel = answer.kind === "answered" ? answer : {};
  return { provider: provider ?? namedAnswer.provider, model: model ?? namedAnswer.model };
}

/** True where the run's options ask for no reasoning in the log. */
function isReasoningOff({ started }: WorkflowRun): boolean {
  return started.configurable?.["reasoningVerbosity"] === "off";
}

/** A request to a model for one turn of an agent. */
type TurnRequest = Omit<ChatRequest, "signal">;

function createTurnRequest(
  agent: InstalledAgent,
  bound: BoundAgent,
  { messages }: AgentTurn["effect"],
): TurnRequest {
  const { model, temperature, maxTokens, tools } = bound;
  return {
    system: formatAgentPrompt(agent, bound),
    messages: messages.map(convertAgentMessage),
    maxTokens: Math.min(maxTokens ?? AGENT_BOUNDS.answerTokensMax, AGENT_BOUNDS.tokensMax),
    ...(model !== undefined && { model }),
    ...(temperature !== undefined && { temperature }),
    ...(tools.length > 0 && {
      tools: tools.map(({ call: name, description, parameters }) => ({
        name,
        parameters,
        ...(description !== undefined && { description }),
      })),
    }),
  };
}

function convertAgentMessage(message: AgentMessage): ChatMessage {
  switch (message.role) {
    case "user":
      return message;
    case "tool":
      return { role: "tool", callId: message.callId, name: message.call, content: message.content };
    case "assistant": {
      const toolCalls = message.calls.map(({ callId, call: name, args }) => ({ callId, name, args }));
      return { role: "assistant", content: message.content, ...(toolCalls.length > 0 && { toolCalls }) };
    }
  }
}

/**
 * Returns provider and model with the request's hash by recipe v2; `undefined` where one of them is not known, or the
 * recipe does not take the request.
 */
function createModelDigest(
  { sha256 }: TurnDependencies,
  { system, messages, tools, temperature, maxTokens }: TurnRequest,
  { provider, model }: NamedModel,
): ModelAsked | undefined {
  if (provider === undefined || model === undefined) return undefined;
  const named = { provider: shortenName(provider), model: shortenName(model) };
  const made = createLlmCacheKeyText({
    ...named,
    maxOutputTokens: maxTokens,
    messages: [{ role: "system", content: system }, ...messages],
    ...(tools && { tools }),
    ...(temperature !== undefined && { temperature }),
  });
  return made.ok ? { ...named, digest: sha256(made.text) } : undefined;
}

/** Returns what the turn's event says of the model: its name, its usage and the hash of the request. */
function describeAnsweringModel({ usage, provider, model }: ChatAnswer, modelAsked: ModelAsked | undefined) {
  const modelEvent = { ...usage, provider: shortenName(provider) };
  return { model: shortenName(model), usage: modelEvent as Values, ...(modelAsked && { asked: modelAsked }) };
}

/** So much of an answer that is not used is kept: enough to see what it was. */
const UNUSED_CHARS_MAX = 2_000;

/** An answer of an agent's model, and what it takes to read it. */
interface AgentModelAnswer {
  readonly agent: InstalledAgent;
  readonly bound: BoundAgent;
  readonly answer: ChatAnswer;
  readonly callsLeft: number;
  readonly turn: number;
}

type AnsweredTurn = Pick<AgentTurnOutcome, "turn" | "reasoning" | "refusal">;

/** Reads a model's answer as tool calls, as a result, or as refused. Secrets in its text are masked. */
async function readAnsweredTurn(
  dependencies: TurnDependencies,
  answered: AgentModelAnswer,
): Promise<AnsweredTurn> {
  const { answer, agent } = answered;
  const { usage, toolCalls = [], reasoning = "" } = answer;
  const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0);
  const clean = (text: string): string => maskText(text.toWellFormed(), dependencies.secrets);
  const text = clean(answer.text);
  const thought = clean(reasoning).slice(0, AGENT_BOUNDS.answerCharsMax);
  if (toolCalls.length > 0) {
    const calls = toolCalls.map((call, at) => resolveToolCall(dependencies, answered, { call, at }));
    const aloud = text.slice(0, AGENT_BOUNDS.answerCharsMax);
    return { turn: { text: aloud, calls, tokens }, reasoning: thought === "" ? aloud : thought };
  }
  const result = readAgentResult(await dependencies.contract(), agent.returnSchema, {
    text,
    finish: answer.finishReason,
  });
  if (result.kind === "result")
    return { turn: { text: "", calls: [], tokens, final: result.final }, reasoning: thought };
  return {
    turn: { text: text.slice(0, UNUSED_CHARS_MAX), calls: [], tokens },
    reasoning: thought,
    refusal: result.error,
  };
}

interface CallPlace {
  readonly call: ChatCallAsked;
  readonly at: number;
}

/**
 * Resolves a tool call that the model wrote: its tool, its masked arguments and why it may not be made. Only tools on
 * the agent's surface can be called.
 */
function resolveToolCall(
  { sha256, secrets }: TurnDependencies,
  { bound, callsLeft, turn }: AgentModelAnswer,
  { call, at }: CallPlace,
): AskedCall {
  const tool = findCalledTool(bound.tools, call.name);
  const maskedArgs = call.args && maskValue(call.args, secrets);
  const isReadable =
    maskedArgs !== undefined && JSON.stringify(maskedArgs).length <= AGENT_BOUNDS.argsCharsMax;
  const args: Values = isReadable ? maskedArgs : {};
  const problem = findCallProblem(tool, { isReadable, isLeft: at < callsLeft });
  return {
    callId: `${bound.invocationId}:${turn}:${at}`,
    toolName: tool?.id ?? shortenName(call.name.toWellFormed()),
    call: tool?.call ?? shortenName(call.name.toWellFormed()),
    args,
    argsHash: sha256(formatCanonicalJson(redactNamedSecrets(args))),
    ...(problem !== undefined && { problem }),
  };
}

const SECRET_NAME = /(api[-_]?key|secret|token|passw|credential|authorization)/i;

/**
 * Copies a value with "[REDACTED]" in members that are named like secrets. A short secret could be guessed from its
 * hash (SR-1).
 */
function redactNamedSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redactNamedSecrets);
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).map(([name, each]) => [
    name,
    SECRET_NAME.test(name) ? "[REDACTED]" : redactNamedSecrets(each),
  ]);
  return Object.fromEntries(entries) as Values;
}

function findCallProblem(
  tool: BoundTool | undefined,
  { isReadable, isLeft }: { readonly isReadable: boolean; readonly isLeft: boolean },
): AskedCall["problem"] {
  if (!tool) return "forbidden";
  if (!isReadable) return "malformed";
  return isLeft ? undefined : "over-limit";
}
