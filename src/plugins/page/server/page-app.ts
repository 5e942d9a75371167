/**
 * Owns: putting the page's routes together into something that answers requests, without a socket.
 *
 * P7 Nothing but the page's own files, which are the same for everybody, is answered before somebody signs in. P8 No cookie is read
 * or set. P9 A request is refused before its body is read: by name, origin, size, session and right.
 */
import { Hono, type Context } from "hono";
import { findJsonExcess } from "../../../agents/coordination/std/json-text-excess.ts";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { readBoundedText } from "../../../platform/read-bounded-text.ts";
import type { Rights, SignedIn } from "../contract/session.ts";
import { createLiveChanges, type LiveChanges } from "./live-changes.ts";
import { createLiveStream, type OpenStreams } from "./live-stream.ts";
import { ACTION_ROUTES } from "./page-actions.ts";
import {
  createJsonResponse,
  createLongJsonResponse,
  createRefusalAnswer,
  createLastingRefusal,
  type JsonAnswer,
} from "./page-answer.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageDependencies, PageRequest, PageRoute } from "./page-dependencies.ts";
import type { PageSession } from "./page-sessions.ts";
import { createReadRoutes } from "./read-routes.ts";
import { createRefusalSentences } from "./rights.ts";
import {
  createContentSecurityPolicy,
  isAllowedHost,
  isAllowedOrigin,
  setSecurityHeaders,
} from "./security-headers.ts";
import type { PageFiles } from "./static-files.ts";

export interface PageAppDependencies extends PageDependencies {
  readonly files: PageFiles;
  /** Lets the tab's frame ask, whose origin is opaque. */
  readonly allowsOpaque: boolean;
}

export interface PageApp {
  readonly fetch: (request: Request) => Promise<Response>;
  /** Ends the streams; a request that comes later is refused. */
  close(): void;
}

/**
 * Creates the HTTP application of the operator's page, with its API, live stream and files; requests of foreign hosts
 * or origins are refused before any route.
 */
export function createPageApp(dependencies: PageAppDependencies): PageApp {
  const live = createLiveChanges(dependencies);
  const streams: OpenStreams = new Set();
  const app = new Hono();
  app.post("/api/session", (context) => handleSignIn(context, dependencies));
  app.get("/api/live", (context) => openLiveStream(context, { ...dependencies, live }, streams));
  for (const route of [...createReadRoutes(), ...ACTION_ROUTES])
    app.on(route.method, `/api/${route.path}`, (context) => serveRoute(context, route, dependencies));
  app.all("/api/*", () => createJsonResponse(createRefusalAnswer("not_found", "There is no such address.")));
  app.get("/assets/:name", (context) => serveAsset(context, dependencies));
  app.get("/", () => serveDocument(dependencies));
  app.all("*", () => createJsonResponse(createRefusalAnswer("not_found", "There is nothing here.")));
  app.onError((error) => createJsonResponse(createFailureAnswer(error, dependencies)));
  return {
    fetch: async (request) => {
      const host = request.headers.get("host") ?? undefined;
      const response = refuseForeignRequest(request, host, dependencies) ?? (await app.fetch(request));
      return addHeaders(response, request, dependencies);
    },
    close: () => {
      for (const end of [...streams]) end("stopping");
      live.close();
    },
  };
}

/**
 * Returns the refusal of a request under another host name or from another page; `undefined` where it is allowed. Also
 * answers the preflight requests of the tab's frame.
 */
function refuseForeignRequest(
  request: Request,
  host: string | undefined,
  { places, allowsOpaque }: PageAppDependencies,
): Response | undefined {
  const isAsset = new URL(request.url).pathname.startsWith("/assets/");
  if (!isAllowedHost(host, places))
    return createJsonResponse(
      createRefusalAnswer(
        "wrong_origin",
        "This address has another name here: use the one that was printed.",
      ),
    );
  const origin = request.headers.get("origin") ?? undefined;
  if (isAsset || isAllowedOrigin(origin, { host: host ?? "", allowsOpaque })) {
    if (request.method === "OPTIONS" && origin === "null") return new Response(null, { status: 204 });
    return undefined;
  }
  return createJsonResponse(createRefusalAnswer("wrong_origin", "Only the page itself may ask this."));
}

const CORS_HEADERS = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": "authorization, content-type, last-event-id",
  "access-control-max-age": "600",
} as const;

/** Sets the headers of every answer. The files of the page may be read from its frame, whose origin is opaque. */
function addHeaders(response: Response, request: Request, { allowsOpaque }: PageAppDependencies): Response {
  const { headers } = response;
  setSecurityHeaders(headers, createContentSecurityPolicy("'self'"));
  const isAsset = new URL(request.url).pathname.startsWith("/assets/");
  if (isAsset) {
    headers.set("access-control-allow-origin", "*");
    headers.set("cross-origin-resource-policy", "cross-origin");
  } else if (allowsOpaque && request.headers.get("origin") === "null") {
    headers.set("access-control-allow-origin", "null");
    headers.set("cross-origin-resource-policy", "cross-origin");
    headers.set("vary", "origin");
    for (const [name, value] of Object.entries(CORS_HEADERS)) headers.set(name, value);
  }
  return response;
}

const NOT_BUILT = "The page was not built: run `npm run build`, or install the published package.\n";

function serveDocument({ files }: PageAppDependencies): Response {
  if (files.document === undefined)
    return new Response(NOT_BUILT, {
      status: 503,
      headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
    });
  return new Response(files.document, {
    headers: { "content-type": "text/html; charset=utf-8", "cache-control": "no-cache" },
  });
}

function serveAsset(context: Context, { files }: PageAppDependencies): Response {
  const file = files.assets.get(context.req.param("name") ?? "");
  if (!file) return createJsonResponse(createRefusalAnswer("not_found", "There is no such file."));
  return new Response(file.bytes, {
    headers: { "content-type": file.type, "cache-control": "public, max-age=31536000, immutable" },
  });
}

/**
 * Turns a one-time link into a session, and answers with its token and its rights; refuses a link that was used or is
 * too old, and wrong links that are too many.
 */
async function handleSignIn(context: Context, dependencies: PageAppDependencies): Promise<Response> {
  const body = await readJsonBody(context);
  if (!("value" in body)) return createJsonResponse(body);
  const { link } = (body.value ?? {}) as { readonly link?: unknown };
  if (typeof link !== "string" || link.length > PAGE_BOUNDS.queryCharsMax)
    return createJsonResponse(
      createRefusalAnswer("invalid", "link: expected the link of the address that was printed."),
    );
  const outcome = dependencies.sessions.signIn(link);
  if (outcome.kind === "spent")
    return createJsonResponse(
      createRefusalAnswer(
        "link_spent",
        `This link was used, or is too old. ${ASK_FOR_LINK[dependencies.product.home]}`,
      ),
    );
  if (outcome.kind === "too_many")
    return createJsonResponse(
      createRefusalAnswer(
        "too_many",
        `Too many links that do not count were tried in the last minute. ${ASK_FOR_LINK[dependencies.product.home]}`,
      ),
    );
  const { token, session } = outcome;
  const { rights, expiresAtMs } = session;
  const { product, clock, workflows } = dependencies;
  const signedIn: SignedIn = {
    token,
    expiresAtMs,
    rights,
    refusals: createRefusalSentences(rights, product.home),
    product,
    runsWorkflows: workflows !== undefined,
    nowMs: clock.now(),
  };
  return createJsonResponse({ status: 200, body: signedIn });
}

const ASK_FOR_LINK = {
  gateway: "Get a new one with `openclaw coordination page`.",
  serve: "`openclaw-coordination serve` prints a new one when it is sent SIGUSR2: `kill -USR2 PID`.",
} as const;

function findSession(context: Context, { sessions }: PageAppDependencies): PageSession | undefined {
  const token = /^Bearer ([\w-]{20,200})$/.exec(context.req.header("authorization") ?? "")?.[1];
  return token === undefined ? undefined : sessions.find(token);
}

/** Returns the refusal of somebody who is not signed in or lacks the right; `undefined` where they may do this. */
function refuseSession(
  session: PageSession | undefined,
  right: keyof Rights,
  { product: { home } }: PageAppDependencies,
): JsonAnswer | undefined {
  if (!session) return createRefusalAnswer("unauthenticated", `You are not signed in. ${ASK_FOR_LINK[home]}`);
  if (session.rights[right]) return undefined;
  return createRefusalAnswer(
    "forbidden",
    createRefusalSentences(session.rights, home)[right] ?? "This is not allowed.",
  );
}

const UNAUTHENTICATED = createRefusalAnswer("unauthenticated", "You are not signed in.");

async function serveRoute(
  context: Context,
  route: PageRoute,
  dependencies: PageAppDependencies,
): Promise<Response> {
  const session = findSession(context, dependencies);
  const refused = refuseSession(session, route.right, dependencies);
  if (refused || !session) return createJsonResponse(refused ?? UNAUTHENTICATED);
  const body = route.method === "POST" ? await readJsonBody(context) : { value: {} };
  if (!("value" in body)) return createJsonResponse(body);
  const ids = Object.values(context.req.param() as Record<string, string>);
  if (ids.some((id) => id.length > PAGE_BOUNDS.idCharsMax))
    return createJsonResponse(createRefusalAnswer("not_found", "There is nothing of this name."));
  const request: PageRequest = {
    session,
    param: (name) => context.req.param(name) ?? "",
    query: (name) => context.req.query(name),
    body: body.value,
  };
  try {
    return await createLongJsonResponse(await route.handle(request, dependencies));
  } catch (error) {
    return createJsonResponse(createFailureAnswer(error, dependencies));
  }
}

async function openLiveStream(
  context: Context,
  dependencies: PageAppDependencies & { readonly live: LiveChanges },
  streams: OpenStreams,
): Promise<Response> {
  const session = findSession(context, dependencies);
  const refused = refuseSession(session, "read", dependencies);
  if (refused || !session) return createJsonResponse(refused ?? UNAUTHENTICATED);
  if (streams.size >= PAGE_BOUNDS.streamsMax || session.streams >= PAGE_BOUNDS.streamsOfSessionMax)
    return createJsonResponse(
      createRefusalAnswer("too_many", "Too many pages follow already: close one, and try again."),
    );
  const after = readStreamPosition(context);
  if (Number.isNaN(after))
    return createJsonResponse(
      createRefusalAnswer("invalid", "after: expected the id of an event of this stream."),
    );
  // A ledger that cannot be opened is an answer, not a stream that breaks.
  try {
    await dependencies.reader();
  } catch (error) {
    return createJsonResponse(createFailureAnswer(error, dependencies));
  }
  // Nobody reads the body of its answer, or ends it.
  if (context.req.method === "HEAD") return new Response(null, { headers: STREAM_HEADERS });
  return new Response(createLiveStream(dependencies, session, { after, streams }), {
    headers: STREAM_HEADERS,
  });
}

const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
} as const;

/** Returns after which position a client wants changes: `undefined` is from now on, `NaN` is for no position. */
function readStreamPosition({ req }: Context): number | undefined {
  const text = req.header("last-event-id") ?? req.query("after");
  if (text === undefined) return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

const BODY_EXCESS = { depthMax: PAGE_BOUNDS.bodyDepthMax, valuesMax: PAGE_BOUNDS.bodyValuesMax };

/**
 * Reads a JSON body, an empty object for one without content; a refusal where it is too large, nested too deeply, of
 * another type or no JSON.
 */
async function readJsonBody({ req }: Context): Promise<{ readonly value: unknown } | JsonAnswer> {
  const tooLarge = createRefusalAnswer(
    "too_large",
    `This is more than ${PAGE_BOUNDS.bodyBytesMax} bytes: send less.`,
  );
  if (Number(req.header("content-length") ?? 0) > PAGE_BOUNDS.bodyBytesMax) return tooLarge;
  const text = await readBoundedText(req.raw.body, PAGE_BOUNDS.bodyBytesMax);
  if (text === undefined) return tooLarge;
  if (text.trim() === "") return { value: {} };
  // A form of another page cannot send this type without asking first.
  if (!/^application\/json\s*(;|$)/i.test(req.header("content-type") ?? ""))
    return createRefusalAnswer("not_json", "Send JSON, with the header `content-type: application/json`.");
  if (findJsonExcess(text, BODY_EXCESS))
    return createRefusalAnswer("invalid", "The body is nested too deeply, or has too many values.");
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return createRefusalAnswer("invalid", "The body is not JSON.");
  }
}

const UNAVAILABLE: ReadonlySet<string> = new Set([
  "LEDGER_BUSY",
  "LEDGER_CLOSED",
  "LEDGER_NOT_FOUND",
  "LEDGER_UNAVAILABLE",
  "COORDINATION_OFF",
]);

/** Turns an exception into an answer; what went wrong inside goes to the log alone. */
function createFailureAnswer(error: unknown, { logger }: PageAppDependencies): JsonAnswer {
  if (isCoordinationError(error)) {
    if (error.code === "INPUT_INVALID" || error.code === "CONFIG_INVALID")
      return createRefusalAnswer("invalid", error.message);
    if (error.code === "COORDINATION_NOT_FOUND") return createRefusalAnswer("not_found", error.message);
    const refusal = createLastingRefusal(error);
    if (refusal) return refusal;
    if (UNAVAILABLE.has(error.code))
      return createRefusalAnswer(
        "unavailable",
        "The ledger cannot be read right now: wait a moment, and try again.",
      );
    if (error.code === "EVENT_UNREADABLE")
      return createRefusalAnswer(
        "refused",
        `${error.message}: this log is damaged. Its events show where; run \`verify\`.`,
      );
    logger.error({ code: error.code }, "a request of the page failed");
  } else
    logger.error(
      { error: error instanceof Error ? error.name : typeof error },
      "a request of the page failed",
    );
  return createRefusalAnswer(
    "failed",
    "Something went wrong here; the log of this process says more. Try again.",
  );
}
