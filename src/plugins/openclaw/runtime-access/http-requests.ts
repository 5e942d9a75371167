/**
 * Owns: HTTP requests for OpenWOP, the page and metrics that reached the gateway, on their way to the runtime of this
 * process.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { readErrorCode } from "../../../agents/coordination/contracts/errors.ts";
import { answerUnavailable as answerWithoutOpenWop } from "../openwop/openwop-face.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import type { PageFace } from "../page/page-face.ts";
import { withRuntime } from "./shared-runtime.ts";

interface GatewayRequest {
  /** Names the request in the log. */
  readonly subject: string;
  readonly response: ServerResponse;
  readonly answerUnavailable: (response: ServerResponse) => void;
}

/**
 * Runs `handle`; answers that nothing is served now where it fails, or returns false without an answer. A failure is
 * logged, unless the plugin is stopped (`LEDGER_CLOSED`).
 */
async function handleOrRefuse(
  api: OpenClawPluginApi,
  { subject, response, answerUnavailable }: GatewayRequest,
  handle: () => Promise<boolean>,
): Promise<void> {
  try {
    // A stopped plugin, or one of whose configuration this was switched off, leaves its routes for a moment.
    if (!(await handle())) answerUnavailable(response);
  } catch (error) {
    const code = readErrorCode(error);
    if (code !== "LEDGER_CLOSED") api.logger.error(`coordination: ${subject} failed: ${code}`);
    if (!response.headersSent) answerUnavailable(response);
  }
}

/** Passes an HTTP request to the OpenWOP host of the open runtime, or answers itself that there is none now. */
export function takeOpenWopRequest(
  api: OpenClawPluginApi,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gatewayRequest = { subject: "an OpenWOP request", response, answerUnavailable: answerWithoutOpenWop };
  return handleOrRefuse(api, gatewayRequest, async () => {
    const { openwop } = await withRuntime(api, (runtime) => Promise.resolve(runtime));
    await openwop?.handle(request, response);
    return openwop !== undefined;
  });
}

/** Runs `handle` with the page of the open runtime to answer a request, or answers itself that there is no page now. */
export function takePageRequest(
  api: OpenClawPluginApi,
  response: ServerResponse,
  handle: (page: PageFace) => Promise<void>,
): Promise<void> {
  const gatewayRequest = {
    subject: "a request for the page",
    response,
    answerUnavailable: answerPageUnavailable,
  };
  return handleOrRefuse(api, gatewayRequest, async () => {
    const { page } = await withRuntime(api, (runtime) => Promise.resolve(runtime));
    if (page) await handle(page);
    return page !== undefined;
  });
}

/**
 * Answers an HTTP request for the metrics of the open runtime; with 405 for any method but GET and HEAD, and with a
 * refusal where there are no metrics now.
 */
export async function takeMetricsRequest(
  api: OpenClawPluginApi,
  method: string | undefined,
  response: ServerResponse,
): Promise<void> {
  if (method !== "GET" && method !== "HEAD") {
    sendText(response, 405, "Only GET is possible here.\n", { allow: "GET, HEAD" });
    return;
  }
  const gatewayRequest = {
    subject: "a request for metrics",
    response,
    answerUnavailable: answerMetricsUnavailable,
  };
  await handleOrRefuse(api, gatewayRequest, async () => {
    const scraped = await withRuntime(api, ({ metrics }) => metrics?.scrape() ?? Promise.resolve(undefined));
    if (!scraped) return false;
    const text = method === "HEAD" ? "" : scraped.text;
    sendText(response, 200, text, { "content-type": scraped.contentType });
    return true;
  });
}

const NO_PAGE = JSON.stringify({
  error: "unavailable",
  message: "Coordination is starting or stopping here: wait a moment, and try again.",
});

function answerPageUnavailable(response: ServerResponse): void {
  response.writeHead(503, {
    "content-type": "application/json",
    "cache-control": "no-store",
    "retry-after": "2",
  });
  response.end(NO_PAGE);
}

function answerMetricsUnavailable(response: ServerResponse): void {
  const text = "The ledger cannot be read now: wait a moment, and try again.\n";
  sendText(response, 503, text, { "retry-after": "2" });
}

function sendText(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>>,
): void {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...headers,
  });
  response.end(text);
}
