/**
 * Owns: the socket of an OpenWOP host that runs by itself.
 *
 * W1 It listens on a loopback address only, unless it is told that others may reach it. Where they may, also through a
 *    proxy, tokens are long, and every tenant has a limit.
 * W2 A client that sends slowly is cut off after bounded times; streams are not, for they only receive.
 * W3 A stop ends the streams, lets what is under way finish for a bounded time, and cuts the rest.
 */
import { getRequestListener } from "@hono/node-server";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { BlockList, isIP, type AddressInfo, type Socket } from "node:net";
import { createOpenWopApp, type OpenWopApp, type OpenWopDependencies } from "./app.ts";
import { HTTP_BOUNDS } from "./http/http-bounds.ts";
import type { RateLimit } from "./http/rate-limit.ts";

export interface ServeOptions extends Omit<OpenWopDependencies, "rateLimit"> {
  /** An IP address, or `localhost`. */
  readonly hostname?: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Lets others than this machine reach it. */
  readonly allowRemote?: boolean;
  /** Under which clients reach it, as through a proxy; absent: where it listens. */
  readonly baseUrl?: string;
  /** Absent: none where only this machine reaches it, the usual one elsewhere. */
  readonly rateLimit?: RateLimit | "none";
  /** Absent: the usual ones. */
  readonly timeouts?: RequestTimeouts;
  /** Answers what is below `/`, `/assets` and `/api`; absent: nothing is there. */
  readonly page?: PageFace;
}

/** The operator's page, beside the protocol's paths. */
export interface PageFace {
  readonly fetch: (request: Request) => Promise<Response>;
  close(): void;
}

/** How long a request may take to arrive, and how often that is looked at. */
export interface RequestTimeouts {
  readonly headersMs: number;
  readonly requestMs: number;
  readonly checkMs: number;
}

export interface OpenWopServer {
  /** Such as `http://127.0.0.1:4096`. */
  readonly baseUrl: string;
  readonly port: number;
  readonly app: OpenWopApp;
  stop(): Promise<void>;
}

const REMOTE_RATE: RateLimit = { requestsPerSecond: 200, burst: 400 };
const REMOTE_TOKEN_CHARS_MIN = 16;

/** Thrown where others than this machine could reach a host that is not made for them. */
export class RemoteAccessError extends RangeError {}

/**
 * Starts the HTTP server of an OpenWOP host and resolves to it once it listens; an address that others can reach must
 * be allowed and needs safe tokens. @throws RangeError where the options are unsafe or make no sense; the error of the
 * socket where it cannot listen.
 */
export async function startOpenWopServer(options: ServeOptions): Promise<OpenWopServer> {
  const hostname = options.hostname ?? "127.0.0.1";
  if (!isLoopback(hostname) && !options.allowRemote)
    throw new RemoteAccessError(
      `${hostname} can be reached by others than this machine, which must be allowed`,
    );
  const isLocal = isLoopback(hostname) && !isForOthers(options);
  if (!isLocal) assertRemoteTokens(options);
  const app = createOpenWopApp(createAppDependencies(options, isLocal));
  const { headersMs, requestMs, checkMs } = options.timeouts ?? TIMEOUTS;
  const server = createServer(
    {
      maxHeaderSize: HTTP_BOUNDS.headerBytesMax,
      connectionsCheckingInterval: checkMs,
      headersTimeout: headersMs,
      requestTimeout: requestMs,
    },
    createOpenWopListener(combineAppWithPage(app, options.page), { fast: true }),
  );
  server.keepAliveTimeout = HTTP_BOUNDS.keepAliveTimeoutMs;
  server.maxConnections = HTTP_BOUNDS.connectionsMax;
  server.on("clientError", answerBrokenRequest);
  const { port } = await listenOn(server, options.port, hostname);
  const host = isIP(hostname) === 6 ? `[${hostname}]` : hostname;
  return { baseUrl: `http://${host}:${port}`, port, app, stop: () => stopServer(server, app, options.page) };
}

/** Answers requests: the protocol's, the page's, or both. */
interface RequestAnswerer {
  readonly fetch: OpenWopApp["fetch"];
}

const PAGE_PATH = /^\/(?:$|assets\/|api\/)/;

/** Returns what answers the page's paths by the page, and all others by the app. */
function combineAppWithPage(app: OpenWopApp, page: PageFace | undefined): RequestAnswerer {
  if (!page) return app;
  return {
    fetch: (request, env) =>
      PAGE_PATH.test(new URL(request.url).pathname) ? page.fetch(request) : app.fetch(request, env),
  };
}

/**
 * Creates the listener that passes the requests of a Node server, which may be somebody else's, to the application; a
 * request with an invalid host is answered at once. `fast` replaces the global `Request` and `Response`, which only a
 * process of its own may do.
 */
export function createOpenWopListener(
  app: RequestAnswerer,
  { fast = false }: { readonly fast?: boolean } = {},
): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  // The library lets names pass that are no name of a host, such as a number of 400 digits.
  const answer: typeof app.fetch = (request, env) =>
    URL.canParse(request.url) ? app.fetch(request, env) : Promise.resolve(createInvalidHostResponse());
  const listener = getRequestListener((request, env) => answer(request, env), {
    overrideGlobalObjects: fast,
  });
  return (incoming, outgoing) => void listener(incoming, outgoing);
}

function createInvalidHostResponse(): Response {
  const refusal = { error: "validation_error", message: "Host: expected the name or address of a host" };
  return new Response(JSON.stringify(refusal), {
    status: 400,
    headers: { "content-type": "application/json" },
  });
}

const TIMEOUTS: RequestTimeouts = {
  headersMs: HTTP_BOUNDS.headersTimeoutMs,
  requestMs: HTTP_BOUNDS.requestTimeoutMs,
  checkMs: HTTP_BOUNDS.timeoutCheckMs,
};

function createAppDependencies(
  { rateLimit, page: _, ...options }: ServeOptions,
  isLocal: boolean,
): OpenWopDependencies {
  const limit = rateLimit ?? (isLocal ? "none" : REMOTE_RATE);
  return limit === "none" ? options : { ...options, rateLimit: limit };
}

/** True where the operator expects other machines, which a proxy may let in to a loopback address. */
function isForOthers({ allowRemote, baseUrl }: ServeOptions): boolean {
  if (allowRemote) return true;
  return baseUrl !== undefined && !isLoopback(new URL(baseUrl).hostname.replace(/^\[|\]$/g, ""));
}

/** Throws a RangeError where a token is too short for a host that other machines reach. */
function assertRemoteTokens({ tokens }: ServeOptions): void {
  if (tokens.some(({ token }) => token.length < REMOTE_TOKEN_CHARS_MIN))
    throw new RemoteAccessError(
      `tokens that other machines can try, as through the base URL, have at least ${REMOTE_TOKEN_CHARS_MIN} characters`,
    );
}

function isLoopback(hostname: string): boolean {
  if (hostname === "localhost") return true;
  const loopback = new BlockList();
  loopback.addSubnet("127.0.0.0", 8, "ipv4");
  loopback.addAddress("::1", "ipv6");
  const family = isIP(hostname);
  return family !== 0 && loopback.check(hostname, family === 6 ? "ipv6" : "ipv4");
}

function listenOn(server: Server, port: number, hostname: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, hostname, () => {
      server.off("error", reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** Answers what is no HTTP, or came too slowly or with too long headers, in the shape of every other answer. */
function answerBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const { status, message } = describeBrokenRequest(error.code);
  const body = JSON.stringify({ error: "validation_error", message });
  socket.write(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  // Not `end`: the other side may keep its half open for ever.
  socket.destroySoon();
}

function describeBrokenRequest(code: string | undefined): {
  readonly status: string;
  readonly message: string;
} {
  if (code === "HPE_HEADER_OVERFLOW")
    return { status: "431 Request Header Fields Too Large", message: "The headers are too long." };
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return { status: "408 Request Timeout", message: "The request came too slowly." };
  return { status: "400 Bad Request", message: "This is not an HTTP request." };
}

/** Ends the streams, lets what is under way finish for a bounded time, and cuts the rest. */
async function stopServer(server: Server, app: OpenWopApp, page: PageFace | undefined): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  app.closeStreams();
  page?.close();
  // A connection becomes idle when its last answer is out, which may be after the first look.
  const look = setInterval(() => {
    server.closeIdleConnections();
  }, HTTP_BOUNDS.stopCheckMs);
  const cut = setTimeout(() => {
    server.closeAllConnections();
  }, HTTP_BOUNDS.stopMs);
  await closed;
  clearInterval(look);
  clearTimeout(cut);
}
