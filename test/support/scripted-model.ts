/*
 * A scripted OpenAI-compatible model. It owns what the model says; it knows nothing of the plugin.
 *
 * M1 The answer depends on the request and the rules alone, but for M5 and M6.
 * M2 Only the last message a person (or a spawning agent) wrote can carry a script. Messages which the host
 *    writes itself (internal context, announce and settle turns) never start one and never restart one.
 * M3 The turn index is the number of assistant messages after the message that carries the script.
 * M4 What a request used differs from one to the next, and is counted here as it is told.
 * M5 A rate limit depends on earlier requests, too. A refused request is recorded and answered by no script.
 * M6 Only the model that answered a script's first turn goes on with it where the host steers a result into it. A gateway that
 *    goes from one test file to the next still tells sessions of the file before: a turn of two minutes would hold it up.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createRateLimiter, createRefusedTurn, type RateLimit, type RateLimiter } from "./rate-limit.ts";
import { setTimeout as delay } from "node:timers/promises";
import { writeLongText, type LongText } from "./long-text.ts";
import { countTokens, formatUsage, type TokenCount } from "./token-count.ts";

export type SpawnArgs = { readonly task: string } & Readonly<Record<string, unknown>>;
export type ToolCall = { readonly name: string; readonly args: Readonly<Record<string, unknown>> };

/** One model answer. A turn with tool calls is followed by the next turn; a turn without ends the run. */
export type Turn = {
  readonly delayMs?: number;
  readonly say?: string;
  /** Says a text of this kind, in place of `say`. */
  readonly sayLong?: LongText;
  readonly spawn?: readonly SpawnArgs[];
  readonly call?: readonly ToolCall[];
  /** Answers with this HTTP status instead. The host retries: the same turn is asked again. */
  readonly httpError?: number;
  /** The `retry-after` header of `httpError`. */
  readonly retryAfter?: string;
  /** Refuses, as OpenAI's models do. */
  readonly refuse?: string;
  /** In place of what follows from the turn. */
  readonly finish?: string;
  /** A call whose arguments are this text, whatever that is. */
  readonly callRaw?: { readonly name: string; readonly args: string };
};

export type Script = {
  readonly turns: readonly Turn[];
  /** The answer when the host announces results in a turn of its own; default "ok". */
  readonly onAnnounce?: string;
};

export type ChatMessage = {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly unknown[];
};

export type ChatRequest = {
  readonly model?: string;
  readonly stream?: boolean;
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly { readonly function?: { readonly name?: string } }[];
};

export type Rule = Script & { readonly when: (text: string, request: ChatRequest) => boolean };

/** The reason for an answer. "announce": a turn the host started itself. "summary": the host compacts a history. "limited": refused by the rate limit. */
export type AnswerCause = "rule" | "script" | "announce" | "summary" | "plain" | "limited";

export type RecordedRequest = {
  readonly receivedAt: number;
  /** Absent while the answer is under way, and where there is none. */
  used?: TokenCount;
  readonly body: ChatRequest;
  readonly traceparent: string | undefined;
  /** The message which decided the answer. */
  readonly text: string;
  readonly matched: AnswerCause;
  readonly turnIndex: number;
  readonly turn: Turn;
};

export type ScriptedModel = {
  readonly baseUrl: string;
  readonly requests: RecordedRequest[];
  readonly limiter: RateLimiter;
  close(): Promise<void>;
};

const INTERNAL_CONTEXT = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>";
/** How the host begins the prompt of the model that is to summarise a history. It quotes scripts, and starts none (M2). */
const SUMMARIZER = "You are a context summarization assistant.";
/** How the host lets a run go on after its provider refused a call. The script goes on. */
const CONTINUATION = "Continue the current task from the existing transcript,";
const DIRECTIVE = "SCRIPT:";
const UNQUOTED_SCRIPT = /SCRIPT:(?!\s*\{\\)/u;
const BODY_BYTES_MAX = 32 * 1024 * 1024;

/** Renders the directive for a message or a child's task; nests to any depth. */
export function renderScript(...turns: Turn[]): string {
  return scriptOf({ turns });
}

export function scriptOf(content: Script): string {
  return DIRECTIVE + JSON.stringify(content);
}

export function textOf(message: ChatMessage): string {
  const { content } = message;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part: unknown) => (isRecord(part) && typeof part["text"] === "string" ? part["text"] : ""))
    .join("\n");
}

export async function startScriptedModel(
  options: { readonly rules?: readonly Rule[]; readonly port?: number } = {},
): Promise<ScriptedModel> {
  const requests: RecordedRequest[] = [];
  const rules = options.rules ?? [];
  const limiter = createRateLimiter();
  const begun = new Set<string>();
  const server = createServer((request, response) => {
    serve(request, response, { rules, requests, limiter, begun }).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: { message: String(error), type: "scripted_model" } });
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    limiter,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface ModelState {
  readonly rules: readonly Rule[];
  readonly requests: RecordedRequest[];
  readonly limiter: RateLimiter;
  /** The scripts whose first turn this model has answered (M6). */
  readonly begun: Set<string>;
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  { rules, requests, limiter, begun }: ModelState,
): Promise<void> {
  const path = (request.url ?? "").split("?")[0];
  if (request.method === "GET" && path === "/v1/models") {
    sendJson(response, 200, { object: "list", data: [{ id: "scripted", object: "model" }] });
    return;
  }
  if (request.method !== "POST" || path !== "/v1/chat/completions") {
    sendJson(response, 404, { error: { message: "not found" } });
    return;
  }
  const receivedAt = Date.now();
  const body = JSON.parse(await readBody(request)) as ChatRequest;
  const answer = refuseBeyond(limiter.findBroken(receivedAt), decide(body, { rules, begun }));
  const traceparent = request.headers["traceparent"];
  const recorded: RecordedRequest = { receivedAt, body, traceparent: traceparent?.toString(), ...answer };
  const used = countTokens(requests.push(recorded));
  if (await reply(response, body, { turn: answer.turn, used })) recorded.used = used;
}

function refuseBeyond(limit: RateLimit | undefined, answer: Answer): Answer {
  if (!limit) return answer;
  return { ...answer, matched: "limited", turn: createRefusedTurn(limit) };
}

type Answer = Pick<RecordedRequest, "text" | "matched" | "turnIndex" | "turn">;

function decide(request: ChatRequest, { rules, begun }: Pick<ModelState, "rules" | "begun">): Answer {
  const { messages } = request;
  const last = messages.findLastIndex(isDecisive);
  const lastText = readTextAt(messages, last);
  const rule = rules.find((candidate) => candidate.when(lastText, request));
  if (rule) return answerFrom("rule", rule, messages, last);

  if (textOf(messages[0] ?? { role: "system" }).startsWith(SUMMARIZER))
    return { text: lastText, matched: "summary", turnIndex: 0, turn: { say: "There was work before." } };

  const owner = messages.findLastIndex((message) => isDecisive(message) && !isAnnounce(textOf(message)));
  const text = readTextAt(messages, owner);
  const found = parseScript(text);
  const script = JSON.stringify(found);
  if (owner !== last && !(begun.has(script) && isSteered(messages, owner))) {
    const turn = { say: found?.onAnnounce ?? "ok" };
    return { text: lastText, matched: "announce", turnIndex: countAssistantsAfter(messages, last), turn };
  }
  if (found) {
    begun.add(script);
    return answerFrom("script", found, messages, owner);
  }
  return { text, matched: "plain", turnIndex: countAssistantsAfter(messages, owner), turn: { say: "ok" } };
}

function answerFrom(
  matched: AnswerCause,
  from: Script,
  messages: readonly ChatMessage[],
  at: number,
): Answer {
  const turnIndex = countAssistantsAfter(messages, at);
  return {
    text: readTextAt(messages, at),
    matched,
    turnIndex,
    turn: from.turns[turnIndex] ?? { say: "done" },
  };
}

function isDecisive(message: ChatMessage): boolean {
  if (message.role !== "user") return false;
  const text = textOf(message).trimStart();
  return !text.startsWith(INTERNAL_CONTEXT) && !text.replace(TIMESTAMP, "").startsWith(CONTINUATION);
}

const TIMESTAMP = /^\s*(?:\[[A-Z][a-z]{2} \d{4}-[^\]]*\]\s*)?/u;
const HOST_WRITTEN = [
  "A background task completed.", // a child's result
  "A background task finished.",
  "[Internal task completion event]",
  "[[OPENCLAW_INTERNAL_CONTEXT_BEGIN]]", // a child's result, steered into a run
  "[Subagent Context] Your prior run ended", // a child whose own children settled
  "[Subagent Context] Every subagent spawned", // the settle turn
  "[System] Your previous turn was interrupted", // after a restart
];
const ANNOUNCED = /^\[Inter-session message\].* sourceTool=subagent_(?:announce|settle)\b/mu;

/** Written by the host, mostly to tell a parent about its children (M2). It may quote a child's script. */
export function isAnnounce(text: string): boolean {
  const body = text.replace(TIMESTAMP, "");
  return HOST_WRITTEN.some((start) => body.startsWith(start)) || ANNOUNCED.test(text);
}

/** The host steers a result into a run that still works: the run's last answer asked for a tool. The script goes on. */
function isSteered(messages: readonly ChatMessage[], owner: number): boolean {
  const rest = messages.slice(owner + 1);
  return rest.every((message, index) => {
    if (!isDecisive(message)) return true;
    const before = rest.slice(0, index).findLast((earlier) => earlier.role === "assistant");
    return (before?.tool_calls?.length ?? 0) > 0;
  });
}

function countAssistantsAfter(messages: readonly ChatMessage[], at: number): number {
  return messages.slice(at + 1).filter((message) => message.role === "assistant").length;
}

function readTextAt(messages: readonly ChatMessage[], at: number): string {
  const message = messages[at];
  return message ? textOf(message) : "";
}

/**
 * The first `SCRIPT:` of the text with the JSON object after it; undefined if there is none. Where the host lists the tasks of
 * children, or a script has one in it, the quotes are escaped: that is none.
 */
export function parseScript(text: string): Script | undefined {
  const at = text.search(UNQUOTED_SCRIPT);
  if (at < 0) return undefined;
  const json = findBalancedObject(text.slice(at + DIRECTIVE.length));
  const parsed: unknown = json === undefined ? undefined : JSON.parse(json);
  if (!isRecord(parsed) || !Array.isArray(parsed["turns"])) {
    throw new Error(`unreadable SCRIPT directive: ${text.slice(at, at + 200)}`);
  }
  return parsed as Script;
}

function findBalancedObject(text: string): string | undefined {
  const start = text.search(/\S/u);
  if (text[start] !== "{") return undefined;
  let depth = 0;
  let inString = false;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (inString) {
      if (char === "\\") at += 1;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{") depth += 1;
    else if (char === "}" && --depth === 0) return text.slice(start, at + 1);
  }
  return undefined;
}

type WireToolCall = {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
};

function toolCallsOf(turn: Turn, request: ChatRequest): WireToolCall[] {
  const offered = new Set(request.tools?.map((tool) => tool.function?.name));
  const spawns = turn.spawn?.map((args): ToolCall => ({ name: "sessions_spawn", args })) ?? [];
  const wired = [...spawns, ...(turn.call ?? [])].map(({ name, args }) => {
    // Tool Search hides most tools behind one: the hidden ones are called by id through it.
    const direct = offered.has(name) || !offered.has("tool_call");
    return wireCall(direct ? name : "tool_call", JSON.stringify(direct ? args : { id: name, args }));
  });
  return [...(turn.callRaw ? [wireCall(turn.callRaw.name, turn.callRaw.args)] : []), ...wired];
}

function wireCall(name: string, args: string): WireToolCall {
  const id = `call_${randomUUID().replaceAll("-", "")}`;
  return { id, type: "function", function: { name, arguments: args } };
}

function contentOf({ say, sayLong }: Turn, calls: readonly WireToolCall[]): string | null {
  if (sayLong) return writeLongText(sayLong);
  return say ?? (calls.length > 0 ? null : "");
}

function messageOf(turn: Turn, calls: readonly WireToolCall[]): object {
  return {
    role: "assistant",
    content: contentOf(turn, calls),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(turn.refuse === undefined ? {} : { refusal: turn.refuse }),
  };
}

/** Resolves with whether the model answered. */
async function reply(
  response: ServerResponse,
  request: ChatRequest,
  { turn, used }: { readonly turn: Turn; readonly used: TokenCount },
): Promise<boolean> {
  if (turn.delayMs) {
    const controller = new AbortController();
    response.once("close", () => controller.abort());
    const waited = await delay(turn.delayMs, true, { signal: controller.signal }).catch(() => false);
    if (!waited) return false;
  }
  if (turn.httpError) {
    if (turn.retryAfter !== undefined) response.setHeader("retry-after", turn.retryAfter);
    sendJson(response, turn.httpError, { error: { message: "scripted failure", type: "scripted" } });
    return false;
  }
  const calls = toolCallsOf(turn, request);
  const content = contentOf(turn, calls);
  const finish = turn.finish ?? (calls.length > 0 ? "tool_calls" : "stop");
  const base = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000), model: "scripted" };
  const usage = formatUsage(used);
  if (!request.stream) {
    const message = messageOf(turn, calls);
    const choices = [{ index: 0, message, finish_reason: finish }];
    sendJson(response, 200, { ...base, object: "chat.completion", choices, usage });
    return true;
  }
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const send = (choices: readonly unknown[], more: object = {}): void => {
    const chunk = { ...base, object: "chat.completion.chunk", choices, ...more };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  send([{ index: 0, delta: { role: "assistant", content: content ?? "" }, finish_reason: null }]);
  calls.forEach((call, index) => {
    send([{ index: 0, delta: { tool_calls: [{ index, ...call }] }, finish_reason: null }]);
  });
  send([{ index: 0, delta: {}, finish_reason: finish }]);
  send([], { usage });
  response.end("data: [DONE]\n\n");
  return true;
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) throw new Error(`request body over ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
