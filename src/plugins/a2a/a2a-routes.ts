/**
 * Owns: the A2A server as routes of the HTTP host: the agent card for everybody, and JSON-RPC for whoever has a token, in
 * the protocol's revisions 1.0 and 0.3.
 */
import { A2A_VERSION_HEADER, formatSSEEvent } from "@a2a-js/sdk";
import { LegacyJsonRpcTransportHandler } from "@a2a-js/sdk/compat/v0_3/server";
import { VersionNotSupportedError } from "@a2a-js/sdk/errors";
import { JsonRpcTransportHandler, ServerCallContext, type A2ARequestHandler } from "@a2a-js/sdk/server";
import { z } from "zod";
import { addMs } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { PARENT_HEADER, readParentHeader } from "../../agents/coordination/workflow/parent-header.ts";
import { readTraceHeaders } from "../../agents/coordination/workflow/trace-context.ts";
import type { HttpRefusal } from "../openwop/http/error-map.ts";
import { HTTP_BOUNDS } from "../openwop/http/http-bounds.ts";
import {
  createJsonAnswer,
  defineRoute,
  SSE_HEADERS,
  type RouteAnswer,
  type RouteRequest,
  type JsonAnswer,
  type ProtocolFace,
} from "../openwop/http/route.ts";
import { anySchema } from "../openwop/http/schemas.ts";
import { A2A_PATH, type A2aParts, type A2aRequest } from "./a2a-parts.ts";
import { createCardSource, PROTOCOL_VERSIONS, type CardJson } from "./agent-card.ts";
import { createTaskHandler, FAULT_MESSAGE, type HandlerDependencies } from "./task-handler.ts";

const CARD_SECONDS = 60;
/** An answer, its result, tasks, a task, its artifacts, one of them, its parts, one of them, outputs, one of them. */
const ANSWER_LEVELS = 10;

const messageSchema = z.looseObject({ jsonrpc: z.literal("2.0"), method: z.string().max(200) });
type RpcMessage = z.output<typeof messageSchema>;
type RpcAnswer = Awaited<ReturnType<JsonRpcTransportHandler["handle"]>>;
type RpcStream = Extract<RpcAnswer, AsyncGenerator>;

/** Methods that begin a task and stream it, in revisions 1.0 and 0.3. */
const STREAMED_MESSAGES: ReadonlySet<string> = new Set(["SendStreamingMessage", "message/stream"]);

/**
 * Creates the routes by which a workflow host serves the Agent2Agent protocol: the agent card, and its methods over
 * JSON-RPC and streams.
 */
export function createA2aFace(dependencies: A2aParts): ProtocolFace {
  const streams = new Set<AbortController>();
  const readWrittenCard = createCardSource(dependencies);
  const readCard = async (): Promise<CardJson> => (await readWrittenCard()).card;
  return {
    transport: "a2a",
    routes: [
      defineRoute({
        method: "GET",
        path: "/.well-known/agent-card.json",
        operationId: "getAgentCard",
        auth: "none",
        summary: "The agent card of the Agent2Agent protocol.",
        status: 200,
        answer: anySchema,
        handle: async () => ({
          kind: "text",
          status: 200,
          text: (await readWrittenCard()).text,
          headers: {
            "content-type": "application/json",
            "cache-control": `public, max-age=${CARD_SECONDS}`,
            "x-content-type-options": "nosniff",
          },
        }),
      }),
      defineRoute({
        method: "POST",
        path: A2A_PATH,
        operationId: "sendA2aMessage",
        auth: "bearer",
        summary: "A message of the Agent2Agent protocol.",
        // A message may be a person's answer.
        isPersonal: true,
        isLong: true,
        needsStreamPlace: (body) => STREAMED_MESSAGES.has((body as RpcMessage).method),
        status: 200,
        body: messageSchema,
        formatRefusal,
        answer: anySchema,
        handle: (ask) => answerRpcMessage({ ...dependencies, readCard, streams }, ask),
      }),
    ],
    close: () => {
      for (const stream of streams) stream.abort();
      return Promise.resolve();
    },
  };
}

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
const REFUSED = -32_000;
/** Statuses of what is no request of JSON-RPC. */
const NO_REQUEST: ReadonlySet<number> = new Set([400, 413, 415]);

/**
 * Returns the refusal of a request that reaches no method as a JSON-RPC error; its id is null, because the id of the
 * request is not known.
 */
function formatRefusal({ message, isUnparsed }: HttpRefusal, status: number): unknown {
  return { jsonrpc: "2.0", id: null, error: { code: chooseErrorCode(status, isUnparsed), message } };
}

function chooseErrorCode(status: number, isUnparsed = false): number {
  if (isUnparsed) return PARSE_ERROR;
  if (NO_REQUEST.has(status)) return INVALID_REQUEST;
  return status === 500 ? INTERNAL_ERROR : REFUSED;
}

interface FaceDependencies extends HandlerDependencies {
  readonly streams: Set<AbortController>;
}

async function answerRpcMessage(
  dependencies: FaceDependencies,
  ask: RouteRequest<RpcMessage>,
): Promise<RouteAnswer> {
  const { streams, clock } = dependencies;
  const leaving = new AbortController();
  const handler = createTaskHandler(dependencies, createA2aRequest(ask, leaving.signal));
  const stated = ask.header(A2A_VERSION_HEADER) ?? "";
  const version = stated === "" ? PROTOCOL_VERSIONS.legacy : stated;
  const { id = null } = ask.body as { readonly id?: string | number | null };
  const createError = (error: unknown): unknown => ({
    jsonrpc: "2.0",
    id,
    error: formatRpcError(error, version),
  });
  const dispatched = await callProtocolHandler(handler, version, ask.body);
  const answer = dispatched && correctParamsError(dispatched, ask.body);
  if (!answer) return { ...createJsonAnswer(200, createError(createVersionError())), keep: "nothing" };
  if (!isRpcStream(answer))
    return { ...createJsonAnswer(200, answer), levels: ANSWER_LEVELS, ...chooseKept(answer) };
  streams.add(leaving);
  const end = (): void => {
    streams.delete(leaving);
    leaving.abort();
  };
  return {
    kind: "stream",
    body: createAnswerStream(answer, { clock, createError, end }),
    headers: SSE_HEADERS,
  };
}

/** Has the revision's own handler answer the message; `undefined` for a revision that is not spoken here. */
async function callProtocolHandler(
  handler: A2ARequestHandler,
  version: string,
  message: RpcMessage,
): Promise<RpcAnswer | undefined> {
  const context = new ServerCallContext({ requestedVersion: version });
  switch (version) {
    case PROTOCOL_VERSIONS.current:
      return await new JsonRpcTransportHandler(handler).handle(message, context);
    case PROTOCOL_VERSIONS.legacy:
      return await new LegacyJsonRpcTransportHandler(handler).handle(message, context);
    default:
      return undefined;
  }
}

const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;

/**
 * Returns an answer as it is, except an internal error that is none of ours: the library reports wrong params so, and
 * it becomes an error of the client.
 */
function correctParamsError(answer: RpcAnswer, { method }: RpcMessage): RpcAnswer {
  if (isRpcStream(answer) || !("error" in answer)) return answer;
  const { code, message } = answer.error as { readonly code?: unknown; readonly message?: unknown };
  if (code !== INTERNAL_ERROR || message === FAULT_MESSAGE) return answer;
  const problem = `params: they are not of the form that ${method} takes`;
  return { ...answer, error: { code: INVALID_PARAMS, message: problem } };
}

/**
 * Returns what an idempotency key keeps of an answer: all of a result, the subject alone after an internal error, and
 * nothing of any other error.
 */
function chooseKept(answer: Exclude<RpcAnswer, RpcStream>): Pick<JsonAnswer, "keep"> {
  if (!("error" in answer)) return {};
  const { code } = answer.error as { readonly code?: unknown };
  return { keep: code === INTERNAL_ERROR ? "subject" : "nothing" };
}

function createVersionError(): Error {
  const versions = Object.values(PROTOCOL_VERSIONS).join(" and ");
  return new VersionNotSupportedError(`${A2A_VERSION_HEADER}: this host speaks ${versions}.`);
}

function formatRpcError(error: unknown, version: string): unknown {
  return version === PROTOCOL_VERSIONS.legacy
    ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
    : JsonRpcTransportHandler.mapToJSONRPCError(error);
}

function createA2aRequest({ caller, header, signal }: RouteRequest, leaving: AbortSignal): A2aRequest {
  const parent = readParentHeader(header(PARENT_HEADER));
  return {
    caller,
    signal: AbortSignal.any([signal(), leaving]),
    ...readTraceHeaders({ traceparent: header("traceparent"), tracestate: header("tracestate") }),
    ...(parent && { parent }),
  };
}

function isRpcStream(answer: RpcAnswer): answer is RpcStream {
  return Symbol.asyncIterator in answer;
}

interface StreamDependencies {
  readonly clock: Clock;
  /** Forms the answer that ends a stream which failed. */
  readonly createError: (error: unknown) => unknown;
  readonly end: () => void;
}

const KEEP_ALIVE = ": keep-alive\n\n";

/**
 * Returns a stream of events that sends as much as the client reads. A client that leaves ends the stream, and not the
 * run.
 */
function createAnswerStream(
  answers: RpcStream,
  { clock, createError, end }: StreamDependencies,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let stopBeating: () => void = () => undefined;
  const keepAlive = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    stopBeating = clock.wakeAt(addMs(clock.now(), HTTP_BOUNDS.keepAliveMs), () => {
      if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(KEEP_ALIVE));
      keepAlive(controller);
    });
  };
  return new ReadableStream<Uint8Array>({
    start: keepAlive,
    pull: async (controller) => {
      try {
        const next = await answers.next();
        if (next.done !== true) {
          controller.enqueue(encoder.encode(formatSSEEvent(next.value)));
          return;
        }
      } catch (error) {
        controller.enqueue(encoder.encode(formatSSEEvent(createError(error))));
      }
      stopBeating();
      end();
      controller.close();
    },
    cancel: async () => {
      stopBeating();
      end();
      await answers.return(undefined);
    },
  });
}
