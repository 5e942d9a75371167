/** Owns: hearing chat messages that mention an agent of a manifest, where there are such agents. The code is loaded with the first. */
import {
  readSection,
  readWrittenSettings,
} from "../../agents/coordination/contracts/config/written-settings.ts";
import { mayBeginWithMention } from "./chats/mention-in.ts";
import type { OpenClawPluginApi } from "./host/sdk.ts";

/** The handler gives up before, after the time that the operator lets a chat wait. */
const HOST_TIMEOUT_MS = 630_000;

/**
 * Registers the host hook that looks for mentions of agents in chat messages, where the configuration has agents that
 * can be mentioned.
 */
export function registerMentions(api: OpenClawPluginApi): void {
  if (!hasMentionableAgents(api)) return;
  api.on(
    "before_dispatch",
    async (event, ctx) => {
      if (!mayBeginWithMention(event.content)) return undefined;
      return (await import("./chats/agent-mention.ts")).handleMentionMessage(api, event, ctx);
    },
    { timeoutMs: HOST_TIMEOUT_MS },
  );
}

/** True where the configuration has agents of manifests and lets somebody call them. */
function hasMentionableAgents({ pluginConfig }: OpenClawPluginApi): boolean {
  const openwop = readSection(readWrittenSettings(pluginConfig), "openwop");
  const { senders } = readSection(openwop, "mentions");
  return openwop["enabled"] === true && !isEmptyList(openwop["agents"] ?? []) && !isEmptyList(senders);
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
