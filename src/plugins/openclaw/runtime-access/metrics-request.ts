/** Owns: one request for metrics that reached the gateway, on its way to those of this process. */
import type { ServerResponse } from "node:http";
import { readErrorCode } from "../../../agents/coordination/contracts/errors.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { withRuntime } from "./shared-runtime.ts";

export async function takeMetricsRequest(
  api: OpenClawPluginApi,
  method: string | undefined,
  response: ServerResponse,
): Promise<void> {
  if (method !== "GET" && method !== "HEAD") {
    answer(response, { status: 405, text: "Only GET is possible here.\n", headers: { allow: "GET, HEAD" } });
    return;
  }
  const make = async () => (await import("./make-runtime.ts")).makeRuntime(api);
  try {
    const scraped = await withRuntime(make, ({ metrics }) => metrics?.scrape() ?? Promise.resolve(undefined));
    // A stopped plugin, or one of whose configuration this was switched off, leaves its route for a moment.
    if (!scraped) answer(response, UNAVAILABLE);
    else {
      const text = method === "HEAD" ? "" : scraped.text;
      answer(response, { status: 200, text, headers: { "content-type": scraped.contentType } });
    }
  } catch (error) {
    const code = readErrorCode(error);
    if (code !== "LEDGER_CLOSED") api.logger.error(`coordination: a request for metrics failed: ${code}`);
    if (!response.headersSent) answer(response, UNAVAILABLE);
  }
}

interface MetricsAnswer {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

const UNAVAILABLE: MetricsAnswer = {
  status: 503,
  text: "The ledger cannot be read now: wait a moment, and try again.\n",
  headers: { "retry-after": "2" },
};

function answer(response: ServerResponse, { status, text, headers }: MetricsAnswer): void {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...headers,
  });
  response.end(text);
}
