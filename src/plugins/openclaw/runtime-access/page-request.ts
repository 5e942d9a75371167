/** Owns: one request for the operator's page that reached the gateway, on its way to the page of this process. */
import type { ServerResponse } from "node:http";
import { readErrorCode } from "../../../agents/coordination/contracts/errors.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import type { PageFace } from "../page/page-face.ts";
import { withRuntime } from "./shared-runtime.ts";

/** Lets `handle` answer, or answers itself that there is no page now. */
export async function takePageRequest(
  api: OpenClawPluginApi,
  response: ServerResponse,
  handle: (page: PageFace) => Promise<void>,
): Promise<void> {
  const make = async () => (await import("./make-runtime.ts")).makeRuntime(api);
  try {
    const { page } = await withRuntime(make, (runtime) => Promise.resolve(runtime));
    // A stopped plugin, or one of whose configuration this was switched off, leaves its routes for a moment.
    if (page) await handle(page);
    else answerUnavailable(response);
  } catch (error) {
    const code = readErrorCode(error);
    if (code !== "LEDGER_CLOSED") api.logger.error(`coordination: a request for the page failed: ${code}`);
    if (!response.headersSent) answerUnavailable(response);
  }
}

const UNAVAILABLE = JSON.stringify({
  error: "unavailable",
  message: "Coordination is starting or stopping here: wait a moment, and try again.",
});

function answerUnavailable(response: ServerResponse): void {
  response.writeHead(503, {
    "content-type": "application/json",
    "cache-control": "no-store",
    "retry-after": "2",
  });
  response.end(UNAVAILABLE);
}
