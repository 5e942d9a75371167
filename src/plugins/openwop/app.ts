/** Owns: putting the routes of the OpenWOP host together into something that answers requests, without a socket. */
import { randomUUID } from "node:crypto";
import { Hono, type Context } from "hono";
import { cors } from "hono/cors";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { Quotas } from "../../agents/coordination/contracts/workflows/quotas.ts";
import { createQuotaCounts } from "./http/quota-counts.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import type { WorkflowHost } from "../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { createDiscoveryDocument, type AdvertisedHost, type DiscoveryDocument } from "./http/advertised.ts";
import { createTokenAuthenticator, type BearerToken } from "./http/bearer-tokens.ts";
import { createFailureRefusal, refuse } from "./http/error-map.ts";
import { createMetricsRoute, type MetricsSource } from "./http/metrics-route.ts";
import { createOpenApiDocument } from "./http/openapi.ts";
import { createRateLimiter, type RateLimit } from "./http/rate-limit.ts";
import type { ProtocolFace, Route } from "./http/route.ts";
import { listRoutes } from "./route-table.ts";
import {
  refuseNotFound,
  createHttpResponse,
  createRouteHandler,
  createRouteResponse,
  type ServeDependencies,
} from "./http/serve-route.ts";
import type { SuiteFace } from "./http/suite-face.ts";
import { createStreamHub } from "./http/stream-hub.ts";
import { createOnceLoader } from "../../agents/coordination/std/load-once.ts";

export interface OpenWopDependencies {
  readonly host: WorkflowHost;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly advertised: AdvertisedHost;
  /** Without any, nobody is let in. */
  readonly tokens: readonly BearerToken[];
  /** Bounds the requests of each tenant; absent: nothing does. */
  readonly rateLimit?: RateLimit;
  /** Web pages of these origins may ask; absent: of none. */
  readonly allowedOrigins?: readonly string[];
  /** Shows the protocol's conformance suite more; absent: nothing. */
  readonly suite?: SuiteFace;
  /** Answers Prometheus at `/metrics`; absent: nothing is there. */
  readonly metrics?: MetricsSource;
  /** Other protocols over the same host. */
  readonly faces?: readonly ProtocolFace[];
  /** The path below which clients reach the app, without a slash at its end. */
  readonly pathPrefix?: string;
  readonly streamsMax?: number;
  /** Absent, or absent in it: the usual ones. */
  readonly quotas?: Partial<Quotas>;
  readonly newRunId?: () => CoordinationId;
}

export interface OpenWopApp {
  readonly fetch: Hono["fetch"];
  readonly request: Hono["request"];
  /** Streams that are open now. */
  readonly openStreams: () => number;
  /** Ends all streams; their clients resume with the next process. */
  closeStreams(): void;
}

/** Requests of one address without a token that is known, whatever else is limited. */
const STRANGERS_RATE: RateLimit = { requestsPerSecond: 50, burst: 200 };

/** Paths under which a client that forgot the version looks. */
const UNVERSIONED = /^\/(runs|workflows|interrupts|agents|webhooks|openapi\.json)([/:]|$)/;

/**
 * Creates the HTTP application of an OpenWOP host, with its routes, those of the other faces, its rate limits and its
 * streams; it listens nowhere by itself. @throws RangeError for tokens, tenants or limits that make no sense.
 */
export function createOpenWopApp(options: OpenWopDependencies): OpenWopApp {
  const { host, clock, logger, advertised, faces = [] } = options;
  const routes = listRoutes(advertised, options.suite);
  const streams = createStreamHub(clock, options.streamsMax);
  const { name: title, version } = advertised.implementation;
  const dependencies: ServeDependencies = {
    host,
    clock,
    logger,
    advertised,
    streams,
    pathPrefix: options.pathPrefix ?? "",
    authenticate: createTokenAuthenticator(options.tokens),
    rates: createRateLimiter(options.rateLimit, clock),
    strangers: createRateLimiter(STRANGERS_RATE, clock, "global"),
    ...createQuotaCounts(options.quotas),
    newRunId: options.newRunId ?? (() => `run-${randomUUID()}` as CoordinationId),
    discovery: createDiscoverySource(options),
    openapi: createOnceLoader(() => JSON.stringify(createOpenApiDocument(routes, { title, version }))),
  };
  const app = new Hono();
  if (options.allowedOrigins?.length) app.use("*", createCors(options.allowedOrigins));
  const served = [...routes, ...listMetricsRoutes(options), ...faces.flatMap((face) => face.routes)];
  for (const route of served)
    app.on(route.method, formatRouterPath(route.path), createRouteHandler(route, dependencies));
  const methods = listMethodsByPath(served);
  app.notFound((context) => answerUnroutedRequest(context, methods));
  app.onError((error) => createHttpResponse(createFailureRefusal(error, "the router", logger, "read")));
  return {
    fetch: app.fetch,
    request: app.request,
    openStreams: () => streams.size,
    closeStreams: () => {
      streams.close();
      for (const face of faces) void face.close();
    },
  };
}

/**
 * Returns the route of metrics where they are wanted. It is no part of the protocol, so no part of its document
 * either.
 */
function listMetricsRoutes({ metrics, tokens }: OpenWopDependencies): readonly Route[] {
  if (!metrics) return [];
  return [createMetricsRoute(metrics, { isShared: new Set(tokens.map(({ tenant }) => tenant)).size > 1 })];
}

function createCors(origins: readonly string[]): ReturnType<typeof cors> {
  return cors({
    origin: [...origins],
    allowMethods: ["GET", "POST", "PUT", "DELETE"],
    allowHeaders: [
      "a2a-version",
      "authorization",
      "content-type",
      "idempotency-key",
      "if-match",
      "if-none-match",
      "last-event-id",
      "mcp-protocol-version",
      "mcp-session-id",
      "openwop-parent",
      "traceparent",
      "tracestate",
      "x-dedup",
    ],
    exposeHeaders: [
      "capabilities-etag",
      "etag",
      "mcp-session-id",
      "openwop-idempotent-replay",
      "retry-after",
      "www-authenticate",
    ],
    maxAge: 600,
  });
}

/** Returns a function that gives the discovery document, made anew when the suite's workflows change. */
function createDiscoverySource({
  advertised,
  host,
  suite,
  faces = [],
}: OpenWopDependencies): () => DiscoveryDocument {
  const transports = faces.map(({ transport }) => transport);
  let made: { readonly of: string; readonly document: DiscoveryDocument } | undefined;
  return () => {
    const fixtures = host.workflowIds().filter((id) => suite?.isFixture(id));
    const of = fixtures.join(" ");
    if (made?.of !== of)
      made = { of, document: createDiscoveryDocument(advertised, host.hostId, fixtures, transports) };
    return made.document;
  };
}

/** Returns a path in the router's syntax: `/v1/runs/{runId}:pause` as `/v1/runs/:runId{[^/]+:pause}`. */
function formatRouterPath(path: string): string {
  if (path.endsWith("/{path}")) return path.replace("{path}", ":path{.+}");
  return path.replace(/\{(\w+)\}(:[a-z-]+)?/g, (_all, name: string, verb?: string) =>
    verb === undefined ? `:${name}` : `:${name}{[^/]+${verb}}`,
  );
}

interface PathMethods {
  readonly pattern: RegExp;
  /** One of its routes: it forms refusals as its protocol has them. */
  readonly route: Route;
  readonly methods: Set<string>;
}

function listMethodsByPath(routes: readonly Route[]): readonly PathMethods[] {
  const methodsByPath = new Map<string, PathMethods>();
  for (const route of routes) {
    const { path, method } = route;
    const escapedPath = path.replace(/[.]/g, "\\.").replace("{path}", ".+");
    const pattern = new RegExp(`^${escapedPath.replace(/\{\w+\}/g, "[^/:]+")}$`);
    const entry = methodsByPath.get(path) ?? { pattern, route, methods: new Set() };
    entry.methods.add(method);
    methodsByPath.set(path, entry);
  }
  return [...methodsByPath.values()];
}

/** Refuses a request that no route takes: without the version, with another method, or of an unknown path. */
function answerUnroutedRequest({ req }: Context, paths: readonly PathMethods[]): Response {
  if (UNVERSIONED.test(req.path))
    return createHttpResponse(
      refuse("unversioned_path", `The paths of this host begin with /v1: try /v1${req.path.slice(0, 100)}.`),
    );
  const found = paths.filter(({ pattern }) => pattern.test(req.path));
  const [first] = found;
  if (!first) return createHttpResponse(refuseNotFound());
  const allow = [...new Set(found.flatMap(({ methods }) => [...methods]))].toSorted().join(", ");
  const refusal = refuse("method_not_allowed", `Only ${allow} is possible here.`);
  return createRouteResponse(first.route, { ...refusal, headers: { allow } });
}
