/**
 * Owns: what every request goes through, in this order: who asks, how often, of what, what exactly, whether it was asked
 * before; then the route's handler, then the answer's shape.
 *
 * O1 No byte of a body is read for whoever has no token that is known here, and none for more requests than are allowed.
 * O2 Refusals come in the order 401, 429, 404, 400: what is not there is said before what is wrong with the body.
 * O3 What may be large is parsed, checked and written in turns of the event loop of its own.
 */
import { hash } from "node:crypto";
import type { Context, HonoRequest } from "hono";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { Caller } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { TOKEN_HOLDER, type TokenAuthenticator } from "./bearer-tokens.ts";
import { giveWay, runInSlices } from "../../../platform/give-way.ts";
import { countBytes, streamParts } from "../../../platform/text-parts.ts";
import { writeJsonInParts } from "../../../platform/write-json.ts";
import type { QuotaRefusal, Quotas } from "../../../agents/coordination/contracts/workflows/quotas.ts";
import { createQuotaRefusal } from "../../../agents/coordination/contracts/workflows/quotas.ts";
import type { AtOnce } from "./at-once.ts";
import { watchStreamEnd } from "./follow-stream.ts";
import {
  createErrorAnswer,
  createFailureRefusal,
  refuse,
  findErrorStatus,
  type HttpRefusal,
  type RequestKind,
} from "./error-map.ts";
import { HTTP_BOUNDS } from "./http-bounds.ts";
import { runOnceForKey, type BegunRequest, type KeyedAsk } from "./idempotency.ts";
import type { RateLimiter } from "./rate-limit.ts";
import { validateBody, readJsonBody } from "./request-body.ts";
import type {
  RouteAnswer,
  RouteRequest,
  JsonAnswer,
  Route,
  RouteDependencies,
  StreamAnswer,
  PartsAnswer,
} from "./route.ts";
import { findClientAddress, readNodeBindings } from "./node-bindings.ts";

export interface ServeDependencies extends RouteDependencies {
  readonly authenticate: TokenAuthenticator;
  /** Counts, by address, requests without a token that is known. */
  readonly strangers: RateLimiter;
  readonly newRunId: () => CoordinationId;
  readonly quotas: Quotas;
  readonly tenantStreams: AtOnce;
  readonly addressStreams: AtOnce;
  /** Counts, by address, requests that are not answered. */
  readonly addressRequests: AtOnce;
}

const JSON_HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
};

export function createRouteHandler(
  route: Route,
  dependencies: ServeDependencies,
): (context: Context) => Promise<Response> {
  return async (context) => {
    try {
      return createRouteResponse(route, await answerWithinQuotas(route, dependencies, context));
    } catch (error) {
      const { operationId } = route;
      return createRouteResponse(
        route,
        createFailureRefusal(error, operationId, dependencies.logger, classifyRequest(route, context)),
      );
    }
  };
}

function classifyRequest({ method }: Route, { req }: Context): RequestKind {
  if (method === "GET") return "read";
  return req.header("idempotency-key") === undefined ? "change" : "keyed change";
}

/** Returns the response of a route's answer: a refusal in the form that the route's protocol has for them. */
export function createRouteResponse({ formatRefusal }: Route, answer: RouteAnswer): Response {
  if (answer.kind !== "refused" || !formatRefusal) return createHttpResponse(answer);
  const made = createErrorAnswer(answer);
  return createHttpResponse({ ...made, body: formatRefusal(answer, made.status) });
}

export function createHttpResponse(answer: RouteAnswer): Response {
  switch (answer.kind) {
    case "refused":
      return createHttpResponse(createErrorAnswer(answer));
    case "json": {
      const { status, body, headers } = answer;
      const all = headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS;
      return new Response(JSON.stringify(body), { status, headers: all });
    }
    case "text":
      return new Response(answer.text, { status: answer.status, headers: { ...answer.headers } });
    case "parts":
      return createPartsResponse(answer);
    case "stream":
      return new Response(answer.body, { headers: { ...answer.headers } });
  }
}

function createPartsResponse({ status, parts, headers }: PartsAnswer): Response {
  const [whole] = parts;
  if (parts.length === 1 && whole !== undefined)
    return new Response(whole, { status, headers: { ...headers } });
  return new Response(streamParts(parts), {
    status,
    headers: { ...headers, "content-length": String(countBytes(parts)) },
  });
}

const NO_ADDRESS = (): void => undefined;

async function answerWithinQuotas(
  route: Route,
  dependencies: ServeDependencies,
  context: Context,
): Promise<RouteAnswer> {
  const address = findClientAddress(context);
  const leave = address === undefined ? NO_ADDRESS : dependencies.addressRequests.enter(address);
  if (!leave) return createQuotaRefusal(dependencies.quotas, "addressRequests");
  try {
    return await answerRequest(route, dependencies, context);
  } finally {
    leave();
  }
}

interface LetIn {
  readonly context: Context;
  readonly ask: RouteRequest;
}

async function callRouteHandler(
  route: Route,
  dependencies: ServeDependencies,
  request: LetIn,
): Promise<RouteAnswer> {
  const early = route.needsStreamPlace?.(request.ask.body)
    ? takeStreamPlace(dependencies, request)
    : undefined;
  if (early?.kind === "refused") return early;
  let isStreaming = false;
  try {
    const answer = await route.handle(request.ask, dependencies);
    if (answer.kind !== "stream" || !answer.body) return answer;
    isStreaming = true;
    return holdStreamPlace(answer, answer.body, early ?? takeStreamPlace(dependencies, request));
  } finally {
    if (!isStreaming) early?.leave();
  }
}

/** Keeps the stream's place until it ends; without a place, cancels the stream and returns the refusal. */
function holdStreamPlace(
  answer: StreamAnswer,
  body: NonNullable<StreamAnswer["body"]>,
  place: StreamPlace | QuotaRefusal,
): RouteAnswer {
  if (place.kind === "taken") return { ...answer, body: watchStreamEnd(body, place.leave) };
  void body.cancel();
  return place;
}

interface StreamPlace {
  readonly kind: "taken";
  readonly leave: () => void;
}

function takeStreamPlace(
  { addressStreams, tenantStreams, quotas }: ServeDependencies,
  { context, ask }: LetIn,
): StreamPlace | QuotaRefusal {
  const address = findClientAddress(context);
  const ofAddress = address === undefined ? NO_ADDRESS : addressStreams.enter(address);
  const ofTenant = tenantStreams.enter(ask.caller.tenant);
  const leave = (): void => {
    ofAddress?.();
    ofTenant?.();
  };
  if (ofAddress && ofTenant) return { kind: "taken", leave };
  leave();
  return createQuotaRefusal(quotas, ofAddress ? "streams" : "addressStreams");
}

async function answerRequest(
  route: Route,
  dependencies: ServeDependencies,
  context: Context,
): Promise<RouteAnswer> {
  const caller = authenticateCaller(route, dependencies, context);
  if ("kind" in caller) return refuseStranger(dependencies, context, caller);
  const params = context.req.param() as Readonly<Record<string, string>>;
  if (Object.values(params).some((value) => value.length > HTTP_BOUNDS.tokenCharsMax))
    return refuseNotFound();
  const ask = createAsk(route, context, { caller, body: undefined });
  const refused = await refuseBeforeBody(route, dependencies, { context, ask });
  if (refused) return refused;
  const answer =
    route.method === "GET"
      ? await callRouteHandler(route, dependencies, { context, ask })
      : await answerRequestWithBody(route, dependencies, { context, caller });
  return route.isLong && answer.kind === "json" ? await createPartsAnswer(answer) : answer;
}

function authenticateCaller(
  { auth, isHidden = false }: Route,
  { authenticate }: ServeDependencies,
  { req }: Context,
): Caller | HttpRefusal {
  if (auth !== "bearer") return TOKEN_HOLDER;
  const caller = authenticate(req.header("authorization"));
  return isHidden && "kind" in caller ? refuseNotFound() : caller;
}

/** Counts a refused request for its address; returns its refusal, or another one where the address made too many. */
function refuseStranger(
  dependencies: ServeDependencies,
  context: Context,
  refusal: HttpRefusal,
): HttpRefusal {
  return countStrangerRequest(dependencies, context) ?? refusal;
}

/** Counts a request without a token that is known. Refuses it where its address has made too many. */
function countStrangerRequest({ strangers }: ServeDependencies, context: Context): HttpRefusal | undefined {
  const address = findClientAddress(context);
  return address === undefined ? undefined : strangers.take(address);
}

/** Returns why a request is refused before its body is read (O1, O2); `undefined` where it is not. */
async function refuseBeforeBody(
  route: Route,
  dependencies: ServeDependencies,
  { context, ask }: { readonly context: Context; readonly ask: RouteRequest },
): Promise<HttpRefusal | undefined> {
  switch (route.auth) {
    case "none": {
      const caller = dependencies.authenticate(context.req.header("authorization"));
      return "kind" in caller
        ? countStrangerRequest(dependencies, context)
        : dependencies.rates.take(caller.tenant);
    }
    case "token":
      return await refuseInterruptToken(dependencies, context, ask);
    case "bearer":
      // Whoever has no token of a tenant must not use up what others have.
      return (
        dependencies.rates.take(ask.caller.tenant) ??
        (await refuseChangeOfMissingRun(route, dependencies, ask))
      );
  }
}

/**
 * Refuses an interrupt token that is not known, and too many requests with a known one. A token that is not known
 * costs the host no more than checking a signature.
 */
async function refuseInterruptToken(
  dependencies: ServeDependencies,
  context: Context,
  ask: RouteRequest,
): Promise<HttpRefusal | undefined> {
  const inspected = await dependencies.host.inspectToken(ask.param("token"));
  if (inspected.kind === "refused" && findErrorStatus(inspected.code) === 404)
    return refuseStranger(dependencies, context, inspected);
  return dependencies.rates.take(nameTokenKeyspace(ask));
}

/** Refuses a change of a run that does not exist, before the body is read. */
async function refuseChangeOfMissingRun(
  { method, path }: Route,
  { host }: ServeDependencies,
  ask: RouteRequest,
): Promise<HttpRefusal | undefined> {
  if (method === "GET" || !path.includes("{runId}")) return undefined;
  const found = await host.ancestry(ask.caller, ask.param("runId"));
  return found.kind === "refused" ? found : undefined;
}

/** Writes a large answer as JSON in slices, so that other requests are answered meanwhile. */
async function createPartsAnswer({ status, body, headers, levels }: JsonAnswer): Promise<PartsAnswer> {
  const parts = await runInSlices(writeJsonInParts(body, levels));
  return { kind: "parts", status, parts, headers: { ...JSON_HEADERS, ...headers } };
}

async function answerRequestWithBody(
  route: Route,
  dependencies: ServeDependencies,
  { context, caller }: { readonly context: Context; readonly caller: Caller },
): Promise<RouteAnswer> {
  const read = await readJsonBody(context.req as HonoRequest);
  if (read.kind === "refused") return read;
  await giveWay();
  const checked = route.body ? validateBody(route.body, read.value) : read;
  if (checked.kind === "refused") return checked;
  await giveWay();
  const { value: body } = checked;
  const key = context.req.header("idempotency-key");
  const ask = createAsk(route, context, { caller, body });
  if (key === undefined) return await callRouteHandler(route, dependencies, { context, ask });
  const keyed = {
    tenant: nameKeyspace(route, ask),
    endpoint: `${route.method} ${route.path}`,
    key,
    asked: [context.req.param(), body, ...listConditions(ask)],
    nameSubject: () => route.nameSubject?.(ask, dependencies) ?? dependencies.newRunId(),
    ...(route.isTagged && { headersOf: createTagHeader }),
  };
  return await answerOnceForKey(dependencies, keyed, async (again) =>
    callRouteHandler(route, dependencies, { context, ask: { ...ask, ...again } }),
  );
}

/** Answers once for the key. A stream that is not given to anybody, because the ledger failed behind it, is ended. */
async function answerOnceForKey(
  { host: { requests }, clock }: ServeDependencies,
  keyed: KeyedAsk,
  work: (again: BegunRequest) => Promise<RouteAnswer>,
): Promise<RouteAnswer> {
  const made: { answer?: RouteAnswer } = {};
  try {
    return await runOnceForKey(
      { requests, clock },
      keyed,
      async (again) => (made.answer = await work(again)),
    );
  } catch (error) {
    if (made.answer?.kind === "stream") void made.answer.body?.cancel().catch(() => undefined);
    throw error;
  }
}

/**
 * Lists the condition of a request (`If-Match`), which its key counts for; none without one, so that keys of processes
 * before this one stay good.
 */
function listConditions({ header }: RouteRequest): readonly string[] {
  const ifMatch = header("if-match");
  return ifMatch === undefined ? [] : [ifMatch];
}

function createTagHeader(body: unknown): Readonly<Record<string, string>> {
  const { etag } = body as { readonly etag?: unknown };
  return typeof etag === "string" ? { etag } : {};
}

/** Returns the keyspace of a request: holders of different interrupt tokens, and people who answer, share no keys. */
function nameKeyspace({ auth, isPersonal = false }: Route, ask: RouteRequest): string {
  if (auth !== "bearer") return nameTokenKeyspace(ask);
  const { tenant, principal } = ask.caller;
  // No tenant has an "@" in its name.
  return isPersonal ? `${tenant}@${hash("sha256", principal).slice(0, 32)}` : tenant;
}

function nameTokenKeyspace({ caller, param }: RouteRequest): string {
  return `${caller.tenant}:${hash("sha256", param("token")).slice(0, 32)}`;
}

interface ReadRequest {
  readonly caller: Caller;
  readonly body: unknown;
}

function createAsk(route: Route, context: Context, readRequest: ReadRequest): RouteRequest {
  const { req } = context;
  const { outgoing } = readNodeBindings(context);
  return {
    ...readRequest,
    isHead: req.method === "HEAD",
    param: (name) => removeVerb(req.param(name) ?? "", route.path),
    query: (name) => req.query(name),
    header: (name) => req.header(name),
    signal: () => req.raw.signal,
    ...(outgoing && {
      cut: () => {
        outgoing.destroy();
      },
    }),
  };
}

/** Returns a path parameter without the verb behind it: the router takes `{runId}:pause` for one word. */
function removeVerb(value: string, path: string): string {
  const verb = /\}(:[a-z-]+)$/.exec(path)?.[1];
  return verb !== undefined && value.endsWith(verb) ? value.slice(0, -verb.length) : value;
}

export function refuseNotFound(): HttpRefusal {
  return refuse("not_found", "There is nothing here.");
}
