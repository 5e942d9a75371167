/** Owns: hearing chat messages that mention an agent of a manifest, where there are such agents. The code is loaded with the first. */
import {
  readSection,
  readWrittenSettings,
} from "../../agents/coordination/contracts/config/written-settings.ts";
import { mayMention } from "./chats/mention-in.ts";
import type { OpenClawPluginApi } from "./host/sdk.ts";

/** The handler gives up before, after the time that the operator lets a chat wait. */
const HOST_TIMEOUT_MS = 630_000;

export function registerMentions(api: OpenClawPluginApi): void {
  if (!isWanted(api)) return;
  api.on(
    "before_dispatch",
    async (event, ctx) => {
      if (!mayMention(event.content)) return undefined;
      return (await import("./chats/agent-mention.ts")).takeMention(api, event, ctx);
    },
    { timeoutMs: HOST_TIMEOUT_MS },
  );
}

function isWanted({ pluginConfig }: OpenClawPluginApi): boolean {
  const openwop = readSection(readWrittenSettings(pluginConfig), "openwop");
  const { senders } = readSection(openwop, "mentions");
  return openwop["enabled"] === true && !isEmptyList(openwop["agents"] ?? []) && !isEmptyList(senders);
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
