/**
 * Owns: the fetch that every library here is given. Does not own: who is called, or what an answer means.
 *
 * H1: only HTTPS to public addresses, unless the operator allows private ones for this origin.
 * H2: what is connected to is what was checked: the name is resolved once, here.
 * H3: redirects are not followed: an answer that is one is an error.
 * H4: an exchange ends in bounded time and size, the body included, however slowly it comes.
 */
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { createBoundedBody, type BodyBounds } from "./bounded-body.ts";
import { startCallBounds, type CallBounds } from "./call-bounds.ts";
import { OutboundError } from "./outbound-error.ts";
import { readSafeErrorCode, openPinnedRequest } from "./pinned-request.ts";
import { resolveAddressesOfUrl, resolveAllAddresses, type ResolveName } from "./resolve-name.ts";
import { raceWithAbort } from "./waiting.ts";

/** Origins that may be private and without TLS, or whether all may. */
export type AllowPrivate = boolean | readonly string[];

export interface SafeFetchDependencies {
  readonly clock: Clock;
  readonly allowPrivate: AllowPrivate;
  /** For a whole exchange. */
  readonly timeoutMs: number;
  /** The size of an answer's body. */
  readonly bytesMax: number;
  readonly resolve?: ResolveName;
}

export interface SafeInit extends RequestInit {
  /** Told when the body breaks off after the answer began: libraries tend to keep that to themselves. */
  readonly onBroken?: (error: OutboundError) => void;
}

/** A drop-in for `fetch`. Rejects with `OutboundError`, also while the body is read. */
export type SafeFetch = (input: string | URL | Request, init?: SafeInit) => Promise<Response>;

/** A request with its whole body, ready to be sent. */
interface OutgoingRequest {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

interface Exchange {
  readonly dependencies: SafeFetchDependencies;
  readonly sent: OutgoingRequest;
  readonly ending: CallBounds;
  readonly onBroken: (error: OutboundError) => void;
  /** Set once the connection stands: what fails before was delivered to nobody. */
  isConnected: boolean;
}

const NO_BODY: readonly number[] = [204, 205, 304];
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
/** Set by the connection. */
const OWN_HEADERS: readonly string[] = [
  "accept-encoding",
  "connection",
  "content-length",
  "host",
  "transfer-encoding",
];

/**
 * Creates a fetch that keeps to H1 to H4 for each request, and ends it at its timeout. It throws an `OutboundError`
 * where the request fails.
 */
export function createSafeFetch(dependencies: SafeFetchDependencies): SafeFetch {
  return async (input, { signal: callerSignal, onBroken = () => undefined, ...init } = {}) => {
    const sent = await readWholeRequest(input, init);
    const caller = callerSignal ?? (input instanceof Request ? input.signal : undefined);
    const ending = startCallBounds(dependencies.clock, dependencies.timeoutMs, caller);
    const exchange: Exchange = { dependencies, sent, ending, onBroken, isConnected: false };
    try {
      return await sendRequest(exchange);
    } catch (error) {
      ending.release();
      throw createExchangeError(ending.error() ?? error, exchange);
    }
  };
}

/**
 * Reads a whole request: the URL without its fragment, the body, and the headers that are not the connection's. Throws
 * OutboundError where the address or a header cannot be read.
 */
async function readWholeRequest(input: string | URL | Request, init: RequestInit): Promise<OutgoingRequest> {
  // The error does not quote the request: a URL may hold a secret.
  const request = tryCreateRequest(input, init);
  if (!request) throw new OutboundError("address_not_allowed", "The address or a header cannot be read.");
  const url = new URL(request.url);
  url.hash = "";
  const headers = Object.fromEntries([...request.headers].filter(([name]) => !OWN_HEADERS.includes(name)));
  return { url, method: request.method, headers, body: new Uint8Array(await request.arrayBuffer()) };
}

/** Returns the request; `undefined` where its address or a header cannot be read. */
function tryCreateRequest(input: string | URL | Request, init: RequestInit): Request | undefined {
  try {
    return new Request(input, init);
  } catch {
    return undefined;
  }
}

/** Sends the request to addresses that were checked, and resolves with the answer once its head has come. */
async function sendRequest(exchange: Exchange): Promise<Response> {
  const { dependencies, sent, ending, onBroken } = exchange;
  ending.signal.throwIfAborted();
  const addresses = await raceWithAbort(resolveAllowedAddresses(dependencies, sent.url), ending.signal);
  const request = openPinnedRequest({ ...sent, addresses, bodyBytes: sent.body.length });
  watchConnection(request, exchange);
  const stop = (): void => void request.destroy();
  ending.signal.addEventListener("abort", stop, { once: true });
  // Comes last, whatever happened, and after the whole body.
  request.once("close", () => {
    ending.signal.removeEventListener("abort", stop);
    ending.release();
  });
  if (ending.signal.aborted) stop();
  const response = await sendBodyAndAwaitHead(request, sent.body);
  return toResponse(response, { bytesMax: dependencies.bytesMax, endedBy: () => ending.error(), onBroken });
}

/**
 * Sets `isConnected` once the connection stands, with TLS once the certificate is accepted. The request is not sent
 * before.
 */
function watchConnection(request: ClientRequest, exchange: Exchange): void {
  const connected = exchange.sent.url.protocol === "https:" ? "secureConnect" : "connect";
  request.once("socket", (socket) => {
    socket.once(connected, () => {
      exchange.isConnected = true;
    });
  });
}

/** @throws OutboundError `address_not_allowed`, and what resolving throws */
async function resolveAllowedAddresses(
  { allowPrivate, resolve = resolveAllAddresses }: SafeFetchDependencies,
  url: URL,
): Promise<readonly string[]> {
  const isAllowed = typeof allowPrivate === "boolean" ? allowPrivate : allowPrivate.includes(url.origin);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isAllowed))
    throw new OutboundError("address_not_allowed", "The address is not of HTTPS, and not allowed without.");
  const addresses = await resolveAddressesOfUrl(url, isAllowed, resolve);
  if (!addresses)
    throw new OutboundError(
      "address_not_allowed",
      "The address is not public, and not allowed to be private.",
    );
  return addresses;
}

/** Sends the body and resolves with the answer once its head has come. */
function sendBodyAndAwaitHead(request: ClientRequest, body: Uint8Array): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // Stays: a peer may go on after its answer.
    request.on("error", reject);
    request.once("response", resolve);
    request.once("close", () => reject(new Error("The connection was closed.")));
    request.end(body);
  });
}

/**
 * Returns the answer as a `Response` whose body is bounded. Throws OutboundError for a redirect, no status of HTTP or
 * a stated length beyond the bound.
 */
function toResponse(response: IncomingMessage, bounds: BodyBounds): Response {
  const { bytesMax } = bounds;
  const { statusCode: status = 0 } = response;
  const refuse = (error: OutboundError): never => {
    response.destroy();
    throw error;
  };
  if (REDIRECTS.includes(status))
    return refuse(new OutboundError("redirected", "The other side redirects, which is not followed."));
  if (status < 200 || status > 599)
    return refuse(new OutboundError("malformed", "The answer has no status of HTTP."));
  if (Number(response.headers["content-length"] ?? 0) > bytesMax)
    return refuse(new OutboundError("too_large", `The answer is larger than ${bytesMax} bytes.`));
  const headers = headersOf(response);
  if (!NO_BODY.includes(status))
    return new Response(createBoundedBody(response, bounds), { status, headers });
  response.resume();
  return new Response(null, { status, headers });
}

function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct))
    for (const value of values) headers.append(name, value);
  return headers;
}

/** Returns an error as an `OutboundError`, which says whether the other side may have got the request. */
function createExchangeError(error: unknown, { isConnected }: Exchange): OutboundError {
  const { code, message } = error instanceof OutboundError ? error : createUnreachableError(error);
  return new OutboundError(code, message, { isUndelivered: !isConnected });
}

function createUnreachableError(error: unknown): OutboundError {
  return new OutboundError(
    "unreachable",
    `The other side could not be reached: ${readSafeErrorCode(error)}.`,
  );
}
