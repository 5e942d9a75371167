/**
 * Owns: a chat message that mentions an agent of a manifest, in place of the host's own agent: its run, and the reply.
 *
 * H2 It never throws into the host. A message that is for no agent of ours is left to the host, untouched.
 */
import { AGENT_ID } from "../../../agents/coordination/contracts/workflows/agent-manifest.ts";
import { readErrorCode } from "../../../agents/coordination/contracts/errors.ts";
import { createChatSender, logRefused, mayCallAgents, NOT_ALLOWED, type Sender } from "./chat-senders.ts";
import { formatFailure, formatLine } from "./chat-text.ts";
import { findMention, type Mention } from "./mention-in.ts";
import { replyOf } from "./mention-reply.ts";
import type { HookContext, HookEvent, HookResult, OpenClawPluginApi } from "../host/sdk.ts";
import { createChatAccess, type OpenChats } from "../runtime-access/use-chats.ts";

type Event = HookEvent<"before_dispatch">;
type Context = HookContext<"before_dispatch">;
type Result = HookResult<"before_dispatch">;

/** Longer tasks are for the API. */
const TASK_CHARS_MAX = 50_000;

export async function takeMention(api: OpenClawPluginApi, event: Event, ctx: Context): Promise<Result> {
  // Until the agents are known, a whole id is taken for one.
  let isOurs = isAgentNamed(event.content);
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

function isAgentNamed(text: string): boolean {
  const [firstWord = ""] = text.trimStart().split(/\s/u, 1);
  return AGENT_ID.test(firstWord.replace(/^@/u, "").replace(/[.,:;!?]+$/u, ""));
}

interface Message {
  readonly event: Event;
  readonly ctx: Context;
}

async function answerMention(open: Required<OpenChats>, mention: Mention, message: Message): Promise<string> {
  const sender = senderOf(message);
  const { mentions } = open.runtime.config.openwop;
  if (!sender || !mayCallAgents(mentions, { ...sender, isVouchedFor: false })) {
    logRefused(open.runtime.logger, sender ?? { channel: "" });
    return NOT_ALLOWED;
  }
  return askMentioned(open, mention, sender, messageOf(message));
}

/** Has the agent do what is written behind its name. Returns the reply: what came of it, or why nobody is asked. */
export async function askMentioned(
  { chats, runtime, tellIn }: Required<OpenChats>,
  mention: Mention,
  sender: Sender,
  message?: readonly string[],
): Promise<string> {
  if (mention.kind === "several")
    return `Several agents are called so: ${formatLine(mention.agentIds.join(", "))}. Name one of them.`;
  const { agentId, text } = mention;
  if (text === "") return `What is ${agentId} to do? Write it behind the name.`;
  if (text.length > TASK_CHARS_MAX) return `The text is longer than ${TASK_CHARS_MAX} characters.`;
  const { mentions } = runtime.config.openwop;
  const wait = { ms: mentions.waitSeconds * 1_000, late: tellIn(sender.sessionKey) };
  const request = { sender: createChatSender(mentions, sender), agentId, text, wait };
  return replyOf(await chats.ask({ ...request, ...(message && { message }) }));
}

function senderOf({ event, ctx }: Message): Sender | undefined {
  const channel = event.channel ?? ctx.channelId;
  if (channel === undefined || channel === "") return undefined;
  const { senderId = ctx.senderId, sessionKey = ctx.sessionKey } = event;
  return { channel, senderId, sessionKey };
}

/** Returns the names that the channel has for the message, when they identify it. */
function messageOf({ event, ctx }: Message): string[] | undefined {
  const messageId = event.messageId ?? ctx.messageId;
  return messageId === undefined ? undefined : [ctx.accountId ?? "", ctx.conversationId ?? "", messageId];
}
