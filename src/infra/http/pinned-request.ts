/**
 * Owns: one HTTP request to addresses that were checked: the name is not resolved again by the connection, no proxy is
 * used, nothing is decompressed, and redirects are not followed.
 */
import { request as requestHttp, type ClientRequest } from "node:http";
import { request as requestHttps, type RequestOptions } from "node:https";
import { isIP, type LookupFunction } from "node:net";

export interface PinnedRequest {
  readonly method: string;
  readonly url: URL;
  readonly addresses: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** Its length in bytes. */
  readonly bodyBytes: number;
}

const HEADER_BYTES_MAX = 16_384;

/**
 * Opens an HTTP request that connects to the given addresses only, which were checked before. Its body is still to be
 * sent.
 */
export function openPinnedRequest({
  method,
  url,
  addresses,
  headers,
  bodyBytes,
}: PinnedRequest): ClientRequest {
  const options: RequestOptions = {
    method,
    headers: { ...headers, "content-length": String(bodyBytes), "accept-encoding": "identity" },
    // An agent of its own: one that is shared may be set to go through a proxy, and keeps connections to other addresses.
    agent: false,
    lookup: createPinnedLookup(addresses),
    maxHeaderSize: HEADER_BYTES_MAX,
  };
  return url.protocol === "https:"
    ? requestHttps(url, { ...options, rejectUnauthorized: true })
    : requestHttp(url, options);
}

/**
 * Returns the code of an error where it has the form of a system's, such as `ECONNRESET`; else `UNKNOWN`, because it
 * may be a text of somebody else's.
 */
export function readSafeErrorCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : "UNKNOWN";
}

/** Creates a DNS lookup that answers with the checked addresses, whatever name is asked for. */
function createPinnedLookup(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_hostname, options, callback) => {
    const [first] = all;
    if (!first) callback(Object.assign(new Error("no address"), { code: "ENOTFOUND" }), []);
    else if (options.all === true) callback(null, all);
    else callback(null, first.address, first.family);
  };
}
