/** Owns: offering the address for signed answers to the host, where a webhook is configured. Its code is loaded with the first one. */
import {
  readSection,
  readWrittenSettings,
} from "../../agents/coordination/contracts/config/written-settings.ts";
import { ANSWER_PATH } from "../answer-path.ts";
import { planAccess } from "./runtime-access/plan-access.ts";
import type { OpenClawPluginApi } from "./host/sdk.ts";

export function registerAnswerRoute(api: OpenClawPluginApi): void {
  if (!hasWebhooks(api)) return;
  api.registerHttpRoute({
    path: ANSWER_PATH,
    match: "prefix",
    // The signature is the authority, not the gateway's token.
    auth: "plugin",
    handler: async (request, response) => {
      const [{ takeSignedAnswer }, { createHostLogger: hostLogger }] = await Promise.all([
        import("./questions/signed-answer.ts"),
        import("./host/host-logger.ts"),
      ]);
      const dependencies = { use: planAccess(api), logger: hostLogger(api.logger) };
      await takeSignedAnswer(dependencies, request, response);
      return true;
    },
  });
}

function hasWebhooks({ pluginConfig }: OpenClawPluginApi): boolean {
  const escalations = readSection(readWrittenSettings(pluginConfig), "escalations");
  return Object.keys(readSection(escalations, "webhooks")).length > 0;
}
