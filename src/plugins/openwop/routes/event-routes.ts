/** Owns: reading a run's events: as a stream, as one answer, by polling. */
import { refuse, createFailureRefusal, type HttpRefusal } from "../http/error-map.ts";
import { createEventStream } from "./event-stream.ts";
import { HTTP_BOUNDS } from "../http/http-bounds.ts";
import {
  answerFromOutcome,
  createJsonAnswer,
  defineRoute,
  SSE_HEADERS,
  type RouteAnswer,
  type RouteRequest,
  type Route,
  type RouteDependencies,
} from "../http/route.ts";
import { eventPageSchema } from "../http/schemas.ts";
import { EVENTS_PER_PAGE, readRunLog } from "./read-run-log.ts";
import { readStreamRequest, type StreamRequest } from "./stream-modes.ts";
import { waitForEvents } from "./wait-for-events.ts";

const declareInteger = (minimum: number, maximum?: number): Readonly<Record<string, unknown>> => ({
  type: "integer",
  minimum,
  ...(maximum !== undefined && { maximum }),
});

export const eventRoutes: readonly Route[] = [
  defineRoute({
    method: "GET",
    path: "/v1/runs/{runId}/events",
    operationId: "streamRunEvents",
    auth: "bearer",
    summary: "The events of a run, as a stream that can be resumed, or as JSON.",
    status: 200,
    answer: eventPageSchema,
    streams: true,
    isLong: true,
    queries: [
      { name: "streamMode", summary: "Which events, with commas between.", schema: { type: "string" } },
      {
        name: "bufferMs",
        summary: "For how long events may wait to be sent together.",
        schema: declareInteger(0, HTTP_BOUNDS.bufferMsMax),
      },
    ],
    handle: serveEvents,
  }),
  defineRoute({
    method: "GET",
    path: "/v1/runs/{runId}/events/poll",
    operationId: "pollRunEvents",
    auth: "bearer",
    summary: "The events after a sequence, as soon as there are any.",
    status: 200,
    answer: eventPageSchema,
    isLong: true,
    queries: [
      { name: "lastSequence", summary: "0: from the first event on.", schema: declareInteger(0) },
      {
        name: "timeout",
        summary: "For how many seconds to wait for an event.",
        schema: declareInteger(0, HTTP_BOUNDS.pollSecondsMax),
      },
    ],
    handle: pollEvents,
  }),
];

/** Answers with a stream of events, or with the log as JSON where only that is accepted. */
async function serveEvents(ask: RouteRequest, dependencies: RouteDependencies): Promise<RouteAnswer> {
  // Before the choice of a format: a bad mode is refused in either (stream-modes.md).
  const request = readStreamRequest(ask.query("streamMode"), ask.query("bufferMs"));
  if ("kind" in request) return request;
  const from = readFirstSequence(ask.header("last-event-id"));
  if (typeof from !== "number") return from;
  if (!isJsonWanted(ask.header("accept")))
    return await startEventStream(ask, dependencies, { request, from });
  const log = await readRunLog(ask, dependencies, ask.param("runId"), from);
  return answerFromOutcome(log, (page) => createJsonAnswer(200, page));
}

function isJsonWanted(accept: string | undefined): boolean {
  if (accept === undefined || accept.includes("text/event-stream")) return false;
  return accept.includes("application/json");
}

/**
 * Returns the first sequence to send: the one behind `Last-Event-ID`, or 0 without one; a refusal where that is no
 * whole number.
 */
function readFirstSequence(lastEventId: string | undefined): number | HttpRefusal {
  const text = lastEventId?.trim() ?? "";
  if (text === "") return 0;
  if (/^\d{1,15}$/.test(text)) return Number(text) + 1;
  return refuse("validation_error", "`Last-Event-ID` is the id of an event of this stream: a whole number.");
}

async function startEventStream(
  ask: RouteRequest,
  dependencies: RouteDependencies,
  { request, from }: { readonly request: StreamRequest; readonly from: number },
): Promise<RouteAnswer> {
  const { host, streams } = dependencies;
  if (streams.isFull)
    return refuse("rate_limited", "There are as many streams as this host keeps open. Poll, or try later.", {
      scope: "global",
      retryAfter: 5,
      retryAfterMs: 5_000,
    });
  const { caller } = ask;
  const runId = ask.param("runId");
  const first = await host.events(caller, runId, { from, limit: HTTP_BOUNDS.pageEvents });
  if (first.kind === "refused") return first;
  if (ask.isHead) return { kind: "stream", body: null, headers: SSE_HEADERS };
  const onFailure = (error: unknown): void => {
    createFailureRefusal(error, "an event stream", dependencies.logger, "read");
  };
  const body = createEventStream(
    { ...dependencies, failed: onFailure, ...(ask.cut && { cut: ask.cut }) },
    { caller, runId, request, from, first: first.value },
  );
  return { kind: "stream", body, headers: SSE_HEADERS };
}

async function pollEvents(ask: RouteRequest, { host, clock }: RouteDependencies): Promise<RouteAnswer> {
  const last = parseWholeNumber(ask.query("lastSequence"), 0);
  const seconds = parseWholeNumber(ask.query("timeout"), HTTP_BOUNDS.pollSecondsDefault);
  if (last === undefined || seconds === undefined)
    return refuse(
      "validation_error",
      "`lastSequence` and `timeout` are whole numbers, of events and of seconds.",
    );
  const page = await waitForEvents(host, clock, {
    caller: ask.caller,
    runId: ask.param("runId"),
    // 0 is also what a client says that has read nothing yet.
    from: last === 0 ? 0 : last + 1,
    limit: EVENTS_PER_PAGE,
    waitMs: Math.min(seconds, HTTP_BOUNDS.pollSecondsMax) * 1_000,
    signal: () => ask.signal(),
  });
  return answerFromOutcome(page, ({ events, isComplete }) =>
    createJsonAnswer(200, { events, isComplete: isComplete && events.length < EVENTS_PER_PAGE }),
  );
}

/** Returns the number, `otherwise` where there is no text, and `undefined` where the text is no whole number. */
function parseWholeNumber(text: string | undefined, otherwise: number): number | undefined {
  if (text === undefined) return otherwise;
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
