/** Owns: one request of OpenWOP that reached the gateway, on its way to the host of this process. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { readErrorCode } from "../../../agents/coordination/contracts/errors.ts";
import { answerUnavailable } from "../openwop/openwop-face.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import { withRuntime } from "./shared-runtime.ts";

export async function takeOpenWopRequest(
  api: OpenClawPluginApi,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const make = async () => (await import("./make-runtime.ts")).makeRuntime(api);
  try {
    const { openwop } = await withRuntime(make, (runtime) => Promise.resolve(runtime));
    // A stopped plugin, or one of whose configuration this was switched off, leaves its routes for a moment.
    if (openwop) await openwop.handle(request, response);
    else answerUnavailable(response);
  } catch (error) {
    const code = readErrorCode(error);
    if (code !== "LEDGER_CLOSED") api.logger.error(`coordination: an OpenWOP request failed: ${code}`);
    if (!response.headersSent) answerUnavailable(response);
  }
}
