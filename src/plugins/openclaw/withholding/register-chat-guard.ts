/** Owns: listening to what goes to chats, unless the operator lets children say what they like there. */
import {
  readSection,
  readWrittenSettings,
} from "../../../agents/coordination/contracts/config/written-settings.ts";
import type { OpenClawPluginApi } from "../host/sdk.ts";
import type { ChatGuard } from "./chat-guard.ts";

/** More than it takes to find out whose words they are and to record that they were stopped, both at their budgets. */
const HOST_TIMEOUT_MS = 12_000;
/** Before other plugins: they need not work on what is not sent. */
const FIRST = 1_000;

/**
 * Registers the host hooks that keep children's words out of chats, unless the configuration lets children's texts
 * through.
 */
export function registerChatGuard(api: OpenClawPluginApi, guard: () => Promise<ChatGuard>): void {
  if (isChildTextAllowed(api)) return;
  const options = { priority: FIRST, timeoutMs: HOST_TIMEOUT_MS };
  api.on("message_sending", async (event, ctx) => (await guard()).messageSending(event, ctx), options);
  api.on("reply_payload_sending", async (event, ctx) => (await guard()).replySending(event, ctx), options);
  api.on("message_received", async (_, ctx) => (await guard()).messageReceived(ctx));
}

function isChildTextAllowed({ pluginConfig }: OpenClawPluginApi): boolean {
  return readSection(readWrittenSettings(pluginConfig), "chat")["childText"] === "allow";
}
