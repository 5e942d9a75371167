/** Owns: what a route is. One table of them mounts the handlers and writes the OpenAPI document. */
import type { z } from "zod";
import type { Clock } from "../../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type {
  HostAnswer,
  Caller,
  WorkflowHost,
} from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import type { AdvertisedHost } from "./advertised.ts";
import type { HttpRefusal } from "./error-map.ts";
import type { RateLimiter } from "./rate-limit.ts";
import type { StreamHub } from "./stream-hub.ts";

/** A request that has been let in. */
export interface RouteRequest<Body = unknown> {
  readonly caller: Caller;
  readonly body: Body;
  /** Whether only the headers of the answer are wanted. */
  readonly isHead: boolean;
  /** Stays with the idempotency key of the request: the id of the run to create, or the subject that the route named. */
  readonly subject?: string;
  /** A request with the same key came before, and nobody knows what became of it. */
  readonly isRepeated?: boolean;
  /** Returns a part of the path; empty where the path has none of that name. */
  readonly param: (name: string) => string;
  readonly query: (name: string) => string | undefined;
  readonly header: (name: string) => string | undefined;
  /** Aborted when the client is gone. */
  readonly signal: () => AbortSignal;
  /** Cuts the connection, so that the client does not take what it has for everything. */
  readonly cut?: () => void;
}

export interface JsonAnswer {
  readonly kind: "json";
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Says what an idempotency key keeps in place of this answer. Absent: its status says whether the answer is kept. */
  readonly keep?: "subject" | "nothing";
  /** How deep members of large values are written one by one, where a protocol has outputs deeper than ours. */
  readonly levels?: number;
}

export interface TextAnswer {
  readonly kind: "text";
  readonly status: number;
  readonly text: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** A text that is sent part by part: one of megabytes stops the thread where it is put together. */
export interface PartsAnswer {
  readonly kind: "parts";
  readonly status: number;
  readonly parts: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
}

export interface StreamAnswer {
  readonly kind: "stream";
  readonly body: ReadableStream<Uint8Array> | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** The headers of a stream of server-sent events. */
export const SSE_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff",
};

/** The answer of a route, or its refusal. */
export type RouteAnswer = JsonAnswer | TextAnswer | PartsAnswer | StreamAnswer | HttpRefusal;

/** The collaborators that handlers work with. */
export interface RouteDependencies {
  readonly host: WorkflowHost;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly advertised: AdvertisedHost;
  readonly streams: StreamHub;
  readonly rates: RateLimiter;
  /** The path below which clients reach the protocol's paths. */
  readonly pathPrefix: string;
  /** The discovery document as it is now, with its tag. */
  readonly discovery: () => { readonly text: string; readonly etag: string };
  readonly openapi: () => string;
}

export interface RouteQuery {
  readonly name: string;
  readonly summary: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

/** Describes a route in all but its body and its handler. */
export interface RouteDescription {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** As in OpenAPI: `/v1/runs/{runId}`; `{path}` is all that follows, slashes too. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  /** `token`: a signed token in the path. */
  readonly auth: "bearer" | "token" | "none";
  readonly queries?: readonly RouteQuery[];
  readonly status: number;
  readonly answer: z.ZodType;
  /** The same request of somebody else of the tenant is another one: each person's answer counts. */
  readonly isPersonal?: boolean;
  /** Names the subject of a request with a key, where that is no run to create: the same request sent again is about it, too. */
  readonly nameSubject?: (ask: RouteRequest, dependencies: RouteDependencies) => Promise<string>;
  /** The tag in the body of its answer is a header, too. */
  readonly isTagged?: boolean;
  /** Not found, rather than refused, without a token. */
  readonly isHidden?: boolean;
  /** Statuses of its own refusals, besides those that follow from the rest (`openapi.ts`). */
  readonly refusals?: readonly number[];
  /** Forms the body of a refusal as another protocol has it. Absent: as this one has it. */
  readonly formatRefusal?: (refusal: HttpRefusal, status: number) => unknown;
  /** Streams server-sent events where these are asked for. */
  readonly streams?: boolean;
  /** True of a body that begins something and is answered by a stream: where there is no place for one, nothing is begun. */
  readonly needsStreamPlace?: (body: unknown) => boolean;
  /** Its answer may be as large as a run: it is written as JSON in slices. */
  readonly isLong?: boolean;
  /** Without it the route is always there. */
  readonly when?: (advertised: AdvertisedHost) => boolean;
}

export interface Route extends RouteDescription {
  readonly body?: z.ZodType;
  readonly handle: (ask: RouteRequest, dependencies: RouteDependencies) => Promise<RouteAnswer> | RouteAnswer;
}

/** Routes of another protocol over the same host, which are no part of this one's document. */
export interface ProtocolFace {
  /** Its name in the discovery document. */
  readonly transport: "mcp" | "a2a";
  readonly routes: readonly Route[];
  /** Ends what its clients have open. */
  close(): Promise<void>;
}

/**
 * Returns the definition of a route, typed so that its handler gets the body that its schema describes; the server
 * checks the body before it calls the handler.
 */
export function defineRoute<S extends z.ZodType = z.ZodUnknown>(
  definition: RouteDescription & {
    readonly body?: S;
    readonly handle: (
      ask: RouteRequest<z.output<S>>,
      dependencies: RouteDependencies,
    ) => Promise<RouteAnswer> | RouteAnswer;
  },
): Route {
  // The body was checked against the route's own schema before the handler is called.
  return definition as unknown as Route;
}

/** Returns an HTTP answer with a status and a body that is sent as JSON. */
export function createJsonAnswer(status: number, body: unknown): JsonAnswer {
  return { kind: "json", status, body };
}

/** Returns the HTTP answer that `render` makes of the host's value, or the host's refusal as it is. */
export function answerFromOutcome<T>(outcome: HostAnswer<T>, render: (value: T) => RouteAnswer): RouteAnswer {
  return outcome.kind === "refused" ? outcome : render(outcome.value);
}
