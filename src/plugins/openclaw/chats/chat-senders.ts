/** Owns: who a sender is to the agents that a chat can call, and whether that sender may. The host vouches for both. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import type { MentionsConfig } from "../../../agents/coordination/contracts/config/openwop-config.ts";
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import type { ChatSender } from "../../chat-agents.ts";

/** The sender of a message, as the host names them in a channel. */
export interface ChannelSender {
  readonly channel: string;
  /** The channel's name for the sender; clients of the gateway may have none. */
  readonly senderId?: string | undefined;
  readonly sessionKey?: string | undefined;
}

/** The host's name for clients of the gateway: it lets only those with `operator.write` write there. */
const OWN_CHANNEL = "webchat";

/**
 * True where the configuration lets the sender call agents. `isVouchedFor`: the channel says that the sender may
 * command the agent; it says so of commands alone.
 */
export function mayCallAgents(
  { senders }: MentionsConfig,
  { channel, senderId, isVouchedFor }: ChannelSender & { readonly isVouchedFor: boolean },
): boolean {
  if (!senders) return isVouchedFor || channel === OWN_CHANNEL;
  if (senders.includes(`${channel}:*`)) return true;
  return senderId !== undefined && senderId !== "" && senders.includes(`${channel}:${senderId}`);
}

/**
 * Returns the sender of a chat message as a caller of agents, with a principal made of channel and sender and the
 * configured scopes.
 */
export function createChatSender({ scopes }: MentionsConfig, sender: ChannelSender): ChatSender {
  const { sessionKey } = sender;
  return { principal: formatPrincipal(sender), scopes, ...(sessionKey !== undefined && { sessionKey }) };
}

/** Formats a sender as `channel:senderId`, or as the channel alone, cut to the length of an id. */
function formatPrincipal({ channel, senderId }: ChannelSender): string {
  const named = senderId === undefined || senderId === "" ? channel : `${channel}:${senderId}`;
  return named.slice(0, BOUNDS.idCharsMax).toWellFormed();
}

export const NOT_ALLOWED = "You may not call agents here.";
const LOGGED_CHARS_MAX = 100;

/**
 * Logs a warning that names the channel and the sender who was not allowed to call an agent, without what they wrote.
 */
export function logRefusedSender(logger: Logger, { channel, senderId }: ChannelSender): void {
  logger.warn(
    {
      channel: channel.slice(0, LOGGED_CHARS_MAX),
      ...(senderId && { sender: senderId.slice(0, LOGGED_CHARS_MAX) }),
    },
    "a sender who may not call agents by chat was refused",
  );
}
