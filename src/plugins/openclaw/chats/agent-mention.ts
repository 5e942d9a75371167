/**
 * Owns: a chat message that mentions an agent of a manifest, in place of the host's own agent: its run, and the reply.
 *
 * H2 It never throws into the host. A message that is for no agent of ours is left to the host, untouched.
 */
import { AGENT_ID } from "../../../agents/coordination/contracts/workflows/agent-manifest.ts";
import { readErrorCode } from "../../../agents/coordination/contracts/errors.ts";
import {
  createChatSender,
  logRefusedSender,
  mayCallAgents,
  NOT_ALLOWED,
  type ChannelSender,
} from "./chat-senders.ts";
import { formatFailure, formatChatLine } from "./chat-text.ts";
import { findMention, type Mention } from "./mention-in.ts";
import { formatRunReply } from "./mention-reply.ts";
import type { HookContext, HookEvent, HookResult, OpenClawPluginApi } from "../host/sdk.ts";
import { createChatAccess, type OpenChats } from "../runtime-access/use-chats.ts";

/** The event of the hook before a message is dispatched. */
type DispatchEvent = HookEvent<"before_dispatch">;
/** The host's context of the hook before a message is dispatched. */
type DispatchContext = HookContext<"before_dispatch">;
/** The result of the hook before a message is dispatched. */
type DispatchResult = HookResult<"before_dispatch">;

/** Longer tasks are for the API. */
const TASK_CHARS_MAX = 50_000;

/**
 * Runs the agent that a chat message begins by naming and returns the reply, also to a failure; `undefined`, which
 * leaves the message to the host, where it names no agent of a manifest. Never rejects.
 */
export async function handleMentionMessage(
  api: OpenClawPluginApi,
  event: DispatchEvent,
  ctx: DispatchContext,
): Promise<DispatchResult> {
  // Until the agents are known, a whole id is taken for one.
  let isOurs = hasLeadingAgentId(event.content);
  try {
    return await createChatAccess(api)(async ({ chats, ...open }) => {
      if (!chats)
        return isOurs && open.runtime.config.openwop.enabled
          ? { handled: true, text: NOT_SERVED }
          : undefined;
      const mention = findMention(event.content, chats.agentIds());
      isOurs = mention !== undefined;
      if (!mention) return undefined;
      return { handled: true, text: await answerMention({ chats, ...open }, mention, { event, ctx }) };
    });
  } catch (error) {
    const code = readErrorCode(error);
    if (code !== "LEDGER_CLOSED")
      api.logger.error(`coordination: an agent could not be called by chat: ${code}`);
    return isOurs ? { handled: true, text: formatFailure(error) } : undefined;
  }
}

export const NOT_SERVED = "Agents cannot be called now: OpenWOP is starting, stopping, or not set up right.";

/** True where the first word has the form of a whole agent id, with or without an `@`. */
function hasLeadingAgentId(text: string): boolean {
  const [firstWord = ""] = text.trimStart().split(/\s/u, 1);
  return AGENT_ID.test(firstWord.replace(/^@/u, "").replace(/[.,:;!?]+$/u, ""));
}

/** A message of a chat, as the host hands it to the hook. */
interface DispatchedMessage {
  readonly event: DispatchEvent;
  readonly ctx: DispatchContext;
}

/** Asks the mentioned agent where the sender may call agents; else logs the sender and returns the refusal. */
async function answerMention(
  open: Required<OpenChats>,
  mention: Mention,
  message: DispatchedMessage,
): Promise<string> {
  const sender = readSender(message);
  const { mentions } = open.runtime.config.openwop;
  if (!sender || !mayCallAgents(mentions, { ...sender, isVouchedFor: false })) {
    logRefusedSender(open.runtime.logger, sender ?? { channel: "" });
    return NOT_ALLOWED;
  }
  return askMentionedAgent(open, mention, sender, readMessageIdentity(message));
}

/**
 * Runs the mentioned agent on the text behind its name and returns the chat reply: what came of the run within the
 * wait, or why nobody is asked, as where the text is empty, too long, or several agents are meant.
 */
export async function askMentionedAgent(
  { chats, runtime, tellIn }: Required<OpenChats>,
  mention: Mention,
  sender: ChannelSender,
  message?: readonly string[],
): Promise<string> {
  if (mention.kind === "several")
    return `Several agents are called so: ${formatChatLine(mention.agentIds.join(", "))}. Name one of them.`;
  const { agentId, text } = mention;
  if (text === "") return `What is ${agentId} to do? Write it behind the name.`;
  if (text.length > TASK_CHARS_MAX) return `The text is longer than ${TASK_CHARS_MAX} characters.`;
  const { mentions } = runtime.config.openwop;
  const wait = { ms: mentions.waitSeconds * 1_000, late: tellIn(sender.sessionKey) };
  const request = { sender: createChatSender(mentions, sender), agentId, text, wait };
  return formatRunReply(await chats.ask({ ...request, ...(message && { message }) }));
}

/** Returns who wrote the message; `undefined` where the host names no channel. */
function readSender({ event, ctx }: DispatchedMessage): ChannelSender | undefined {
  const channel = event.channel ?? ctx.channelId;
  if (channel === undefined || channel === "") return undefined;
  const { senderId = ctx.senderId, sessionKey = ctx.sessionKey } = event;
  return { channel, senderId, sessionKey };
}

/** Returns account, conversation and id of the message; `undefined` where the channel gives it no id. */
function readMessageIdentity({ event, ctx }: DispatchedMessage): string[] | undefined {
  const messageId = event.messageId ?? ctx.messageId;
  return messageId === undefined ? undefined : [ctx.accountId ?? "", ctx.conversationId ?? "", messageId];
}
