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
import { TOKEN_HOLDER, type Authenticate } from "./bearer-tokens.ts";
import { giveWay, runInSlices } from "../../../platform/give-way.ts";
import { countBytes, streamParts } from "../../../platform/text-parts.ts";
import { writeJson } from "../../../platform/write-json.ts";
import type { QuotaRefusal, Quotas } from "../../../agents/coordination/contracts/workflows/quotas.ts";
import { refuseQuota } from "../../../agents/coordination/contracts/workflows/quotas.ts";
import type { AtOnce } from "./at-once.ts";
import { followStream } from "./follow-stream.ts";
import {
  createErrorAnswer,
  failureOf,
  refuse,
  statusOf,
  type HttpRefusal,
  type RequestKind,
} from "./error-map.ts";
import { HTTP_BOUNDS } from "./http-bounds.ts";
import { runOnceForKey, type BegunRequest, type KeyedAsk } from "./idempotency.ts";
import type { RateLimiter } from "./rate-limit.ts";
import { checkBody, readBody } from "./request-body.ts";
import type {
  Answer,
  Ask,
  JsonAnswer,
  Route,
  RouteDependencies,
  StreamAnswer,
  PartsAnswer,
} from "./route.ts";
import { addressOf, bindingsOf } from "./node-bindings.ts";

export interface ServeDependencies extends RouteDependencies {
  readonly authenticate: Authenticate;
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

export function serveRoute(
  route: Route,
  dependencies: ServeDependencies,
): (context: Context) => Promise<Response> {
  return async (context) => {
    try {
      return respond(route, await answerWithinQuotas(route, dependencies, context));
    } catch (error) {
      const { operationId } = route;
      return respond(route, failureOf(error, operationId, dependencies.logger, kindOf(route, context)));
    }
  };
}

function kindOf({ method }: Route, { req }: Context): RequestKind {
  if (method === "GET") return "read";
  return req.header("idempotency-key") === undefined ? "change" : "keyed change";
}

function respond({ formatRefusal }: Route, answer: Answer): Response {
  if (answer.kind !== "refused" || !formatRefusal) return responseOf(answer);
  const made = createErrorAnswer(answer);
  return responseOf({ ...made, body: formatRefusal(answer, made.status) });
}

export function responseOf(answer: Answer): Response {
  switch (answer.kind) {
    case "refused":
      return responseOf(createErrorAnswer(answer));
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

/** A text of one part is sent with its headers in one write; opening a stream for it would take longer than the rest. */
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

/** A stream counts as a stream only, as long as it is open. */
async function answerWithinQuotas(
  route: Route,
  dependencies: ServeDependencies,
  context: Context,
): Promise<Answer> {
  const address = addressOf(context);
  const leave = address === undefined ? NO_ADDRESS : dependencies.addressRequests.enter(address);
  if (!leave) return refuseQuota(dependencies.quotas, "addressRequests");
  try {
    return await answerTo(route, dependencies, context);
  } finally {
    leave();
  }
}

interface LetIn {
  readonly context: Context;
  readonly ask: Ask;
}

/** Handles a request. One that begins something and is answered by a stream needs a place for the stream first. */
async function handleAsk(route: Route, dependencies: ServeDependencies, request: LetIn): Promise<Answer> {
  const early = route.needsStreamPlace?.(request.ask.body)
    ? takeStreamPlace(dependencies, request)
    : undefined;
  if (early?.kind === "refused") return early;
  let isStreaming = false;
  try {
    const answer = await route.handle(request.ask, dependencies);
    if (answer.kind !== "stream" || !answer.body) return answer;
    isStreaming = true;
    return countStream(answer, answer.body, early ?? takeStreamPlace(dependencies, request));
  } finally {
    if (!isStreaming) early?.leave();
  }
}

function countStream(
  answer: StreamAnswer,
  body: NonNullable<StreamAnswer["body"]>,
  place: StreamPlace | QuotaRefusal,
): Answer {
  if (place.kind === "taken") return { ...answer, body: followStream(body, place.leave) };
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
  const address = addressOf(context);
  const ofAddress = address === undefined ? NO_ADDRESS : addressStreams.enter(address);
  const ofTenant = tenantStreams.enter(ask.caller.tenant);
  const leave = (): void => {
    ofAddress?.();
    ofTenant?.();
  };
  if (ofAddress && ofTenant) return { kind: "taken", leave };
  leave();
  return refuseQuota(quotas, ofAddress ? "streams" : "addressStreams");
}

async function answerTo(route: Route, dependencies: ServeDependencies, context: Context): Promise<Answer> {
  const caller = callerOf(route, dependencies, context);
  if ("kind" in caller) return refuseStranger(dependencies, context, caller);
  const params = context.req.param() as Readonly<Record<string, string>>;
  if (Object.values(params).some((value) => value.length > HTTP_BOUNDS.tokenCharsMax))
    return refuseNotFound();
  const ask = askOf(route, context, { caller, body: undefined });
  const refused = await refuseBeforeBody(route, dependencies, { context, ask });
  if (refused) return refused;
  const answer =
    route.method === "GET"
      ? await handleAsk(route, dependencies, { context, ask })
      : await answerPost(route, dependencies, { context, caller });
  return route.isLong && answer.kind === "json" ? await writeInSlices(answer) : answer;
}

function callerOf(
  { auth, isHidden = false }: Route,
  { authenticate }: ServeDependencies,
  { req }: Context,
): Caller | HttpRefusal {
  if (auth !== "bearer") return TOKEN_HOLDER;
  const caller = authenticate(req.header("authorization"));
  return isHidden && "kind" in caller ? refuseNotFound() : caller;
}

/** An address that is refused often is not looked at more closely for a while. */
function refuseStranger(
  dependencies: ServeDependencies,
  context: Context,
  refusal: HttpRefusal,
): HttpRefusal {
  return countStranger(dependencies, context) ?? refusal;
}

/** Counts a request without a token that is known. Refuses it where its address has made too many. */
function countStranger({ strangers }: ServeDependencies, context: Context): HttpRefusal | undefined {
  const address = addressOf(context);
  return address === undefined ? undefined : strangers.take(address);
}

/** O1, O2. */
async function refuseBeforeBody(
  route: Route,
  dependencies: ServeDependencies,
  { context, ask }: { readonly context: Context; readonly ask: Ask },
): Promise<HttpRefusal | undefined> {
  switch (route.auth) {
    case "none": {
      const caller = dependencies.authenticate(context.req.header("authorization"));
      return "kind" in caller ? countStranger(dependencies, context) : dependencies.rates.take(caller.tenant);
    }
    case "token":
      return await refuseToken(dependencies, context, ask);
    case "bearer":
      // Whoever has no token of a tenant must not use up what others have.
      return dependencies.rates.take(ask.caller.tenant) ?? (await refuseRun(route, dependencies, ask));
  }
}

/** A token that is not known here costs its holder no more than a signature to check. */
async function refuseToken(
  dependencies: ServeDependencies,
  context: Context,
  ask: Ask,
): Promise<HttpRefusal | undefined> {
  const inspected = await dependencies.host.inspectToken(ask.param("token"));
  if (inspected.kind === "refused" && statusOf(inspected.code) === 404)
    return refuseStranger(dependencies, context, inspected);
  return dependencies.rates.take(createTokenKeyspace(ask));
}

/** Refuses a change of a run that does not exist, before the body is read. */
async function refuseRun(
  { method, path }: Route,
  { host }: ServeDependencies,
  ask: Ask,
): Promise<HttpRefusal | undefined> {
  if (method === "GET" || !path.includes("{runId}")) return undefined;
  const found = await host.ancestry(ask.caller, ask.param("runId"));
  return found.kind === "refused" ? found : undefined;
}

async function writeInSlices({ status, body, headers, levels }: JsonAnswer): Promise<PartsAnswer> {
  const parts = await runInSlices(writeJson(body, levels));
  return { kind: "parts", status, parts, headers: { ...JSON_HEADERS, ...headers } };
}

async function answerPost(
  route: Route,
  dependencies: ServeDependencies,
  { context, caller }: { readonly context: Context; readonly caller: Caller },
): Promise<Answer> {
  const read = await readBody(context.req as HonoRequest);
  if (read.kind === "refused") return read;
  await giveWay();
  const checked = route.body ? checkBody(route.body, read.value) : read;
  if (checked.kind === "refused") return checked;
  await giveWay();
  const { value: body } = checked;
  const key = context.req.header("idempotency-key");
  const ask = askOf(route, context, { caller, body });
  if (key === undefined) return await handleAsk(route, dependencies, { context, ask });
  const keyed = {
    tenant: keyspaceOf(route, ask),
    endpoint: `${route.method} ${route.path}`,
    key,
    asked: [context.req.param(), body, ...listConditions(ask)],
    nameSubject: () => route.nameSubject?.(ask, dependencies) ?? dependencies.newRunId(),
    ...(route.isTagged && { headersOf: readTagHeader }),
  };
  return await answerKeyed(dependencies, keyed, async (again) =>
    handleAsk(route, dependencies, { context, ask: { ...ask, ...again } }),
  );
}

/** Answers once for the key. A stream that is not given to anybody, because the ledger failed behind it, is ended. */
async function answerKeyed(
  { host: { requests }, clock }: ServeDependencies,
  keyed: KeyedAsk,
  work: (again: BegunRequest) => Promise<Answer>,
): Promise<Answer> {
  const made: { answer?: Answer } = {};
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

/** Without a condition there is nothing in its place: keys of processes before this one stay good. */
function listConditions({ header }: Ask): readonly string[] {
  const ifMatch = header("if-match");
  return ifMatch === undefined ? [] : [ifMatch];
}

function readTagHeader(body: unknown): Readonly<Record<string, string>> {
  const { etag } = body as { readonly etag?: unknown };
  return typeof etag === "string" ? { etag } : {};
}

/** Returns the keyspace, so that holders of different interrupt tokens, and people who answer, share no keys. */
function keyspaceOf({ auth, isPersonal = false }: Route, ask: Ask): string {
  if (auth !== "bearer") return createTokenKeyspace(ask);
  const { tenant, principal } = ask.caller;
  // No tenant has an "@" in its name.
  return isPersonal ? `${tenant}@${hash("sha256", principal).slice(0, 32)}` : tenant;
}

function createTokenKeyspace({ caller, param }: Ask): string {
  return `${caller.tenant}:${hash("sha256", param("token")).slice(0, 32)}`;
}

interface ReadRequest {
  readonly caller: Caller;
  readonly body: unknown;
}

function askOf(route: Route, context: Context, readRequest: ReadRequest): Ask {
  const { req } = context;
  const { outgoing } = bindingsOf(context);
  return {
    ...readRequest,
    isHead: req.method === "HEAD",
    param: (name) => withoutVerb(req.param(name) ?? "", route.path),
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

/** The router takes `{runId}:pause` for one word. */
function withoutVerb(value: string, path: string): string {
  const verb = /\}(:[a-z-]+)$/.exec(path)?.[1];
  return verb !== undefined && value.endsWith(verb) ? value.slice(0, -verb.length) : value;
}

export function refuseNotFound(): HttpRefusal {
  return refuse("not_found", "There is nothing here.");
}
