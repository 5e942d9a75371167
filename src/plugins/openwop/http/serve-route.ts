/**
 * Owns: what every request goes through, in this order: who asks, how often, what exactly, whether it was asked before;
 * then the route's handler, then the answer's shape.
 */
import { hash } from "node:crypto";
import type { Context, HonoRequest } from "hono";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { Caller } from "../../../agents/coordination/runtime/workflow-host/records/workflow-host.ts";
import { TOKEN_HOLDER, type Authenticate } from "./bearer-tokens.ts";
import { errorAnswer, failureOf, refuse, type HttpRefusal } from "./error-map.ts";
import { HTTP_BOUNDS } from "./http-bounds.ts";
import { onceForKey } from "./idempotency.ts";
import { checkBody, readBody } from "./request-body.ts";
import type { Answer, Ask, Route, RouteParts } from "./route.ts";

export interface ServeParts extends RouteParts {
  readonly authenticate: Authenticate;
  readonly newRunId: () => CoordinationId;
}

/** What `@hono/node-server` hands on; absent where a request comes without a socket. */
interface NodeBindings {
  readonly outgoing?: { destroy(): void };
}

const JSON_HEADERS = {
  "content-type": "application/json",
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
};

export function serveRoute(route: Route, parts: ServeParts): (context: Context) => Promise<Response> {
  return async (context) => {
    try {
      return responseOf(await answerTo(route, parts, context));
    } catch (error) {
      return responseOf(failureOf(error, route.operationId, parts.logger));
    }
  };
}

export function responseOf(answer: Answer): Response {
  switch (answer.kind) {
    case "refused":
      return responseOf(errorAnswer(answer));
    case "json": {
      const { status, body, headers } = answer;
      const all = headers ? { ...JSON_HEADERS, ...headers } : JSON_HEADERS;
      return new Response(JSON.stringify(body), { status, headers: all });
    }
    case "text":
      return new Response(answer.text, { status: answer.status, headers: { ...answer.headers } });
    case "stream":
      return new Response(answer.body, { headers: { ...answer.headers } });
  }
}

async function answerTo(route: Route, parts: ServeParts, context: Context): Promise<Answer> {
  const caller = callerOf(route, parts, context);
  if ("kind" in caller) return caller;
  // Whoever has no token of a tenant must not use up what others have.
  const limited = route.auth === "bearer" ? parts.rates.take(caller.tenant) : undefined;
  if (limited) return limited;
  const params = context.req.param() as Readonly<Record<string, string>>;
  if (Object.values(params).some((value) => value.length > HTTP_BOUNDS.tokenCharsMax)) return notFound();
  if (route.method === "GET")
    return await route.handle(askOf(route, context, { caller, body: undefined }), parts);
  return await answerPost(route, parts, { context, caller });
}

function callerOf(
  { auth, isHidden = false }: Route,
  { authenticate }: ServeParts,
  { req }: Context,
): Caller | HttpRefusal {
  if (auth !== "bearer") return TOKEN_HOLDER;
  const caller = authenticate(req.header("authorization"));
  return isHidden && "kind" in caller ? notFound() : caller;
}

async function answerPost(
  route: Route,
  parts: ServeParts,
  { context, caller }: { readonly context: Context; readonly caller: Caller },
): Promise<Answer> {
  const read = await readBody(context.req as HonoRequest);
  if (read.kind === "refused") return read;
  const checked = route.body ? checkBody(route.body, read.value) : read;
  if (checked.kind === "refused") return checked;
  const { value: body } = checked;
  const key = context.req.header("idempotency-key");
  if (key === undefined) return await route.handle(askOf(route, context, { caller, body }), parts);
  const ask = askOf(route, context, { caller, body });
  const refused = await route.admit?.(ask, parts);
  if (refused) return refused;
  const keyed = {
    ...{ tenant: keyspaceOf(route, ask), endpoint: `${route.method} ${route.path}`, key },
    asked: [context.req.param(), body],
  };
  const { host, clock, newRunId } = parts;
  return await onceForKey({ requests: host.requests, clock, newRunId }, keyed, async (runId) =>
    route.handle({ ...ask, runId }, parts),
  );
}

/** Those who hold an interrupt token share no keys with those who hold another. */
function keyspaceOf({ auth }: Route, ask: Ask): string {
  if (auth === "bearer") return ask.caller.tenant;
  return `${ask.caller.tenant}:${hash("sha256", ask.param("token")).slice(0, 32)}`;
}

function askOf(route: Route, context: Context, asked: Pick<Ask, "caller" | "body" | "runId">): Ask {
  const { req } = context;
  const { outgoing } = (context.env ?? {}) as NodeBindings;
  return {
    ...asked,
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

export function notFound(): HttpRefusal {
  return refuse("not_found", "There is nothing here.");
}
