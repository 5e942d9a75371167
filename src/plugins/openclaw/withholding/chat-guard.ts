/**
 * Owns: what a child says does not go to a chat: neither in its own name, nor in that of its parent, which did not say it. Its parent
 * may say it there, and a person who writes to the child's own session is answered.
 *
 * H2 a handler never throws into the host. H3 whose child a session is says the ledger; where it does not
 * answer, the session's key.
 */
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import type { SuppressedMessage } from "../../../agents/coordination/runtime/results/child-words.ts";
import type { HookContext, HookEvent, HookResult } from "../host/sdk.ts";
import { accessGateMemory } from "../runtime-access/gate-memory.ts";
import type { ChildHooks } from "../runtime-access/run-quietly.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import { createRecallWords, type RecallWords } from "./recall-words.ts";

export interface ChatGuard {
  messageReceived(ctx: HookContext<"message_received">): void;
  messageSending(
    event: HookEvent<"message_sending">,
    ctx: HookContext<"message_sending">,
  ): Promise<HookResult<"message_sending">>;
  replySending(
    event: HookEvent<"reply_payload_sending">,
    ctx: HookContext<"reply_payload_sending">,
  ): Promise<HookResult<"reply_payload_sending">>;
}

/**
 * Creates the handlers of host hooks that cancel chat messages and replies with a child's words, sent by itself or in
 * the name of its parent that did not say them, and record each in the ledger.
 */
export function createChatGuard({ quietly, isChild }: ChildHooks): ChatGuard {
  const recall = createRecallWords();
  const isSuppressed = async (message: OutgoingMessage): Promise<boolean> => {
    const ledgerAnswer = await quietly("message_sending", async (runtime) => ({
      child: await findSpeakingChild(runtime, recall, message),
    }));
    const child = ledgerAnswer ? ledgerAnswer.child : findSpeakerWithoutLedger(message, isChild);
    if (child === undefined) return false;
    // Known for a child's words it is stopped, whether or not the ledger takes that it was.
    await quietly("message_sending", (runtime) => recordSuppressedWords(runtime, child, message));
    return true;
  };
  return {
    messageReceived: ({ sessionKey, channelId }) => {
      if (sessionKey) accessGateMemory().addressed.set(formatConversationKey(sessionKey, channelId), true);
    },
    messageSending: async ({ content, metadata }, { sessionKey, channelId }) => {
      const media = readMediaUrls(metadata?.["mediaUrls"]);
      const message = { through: "message", sessionKey, channel: channelId, text: content, media } as const;
      return (await isSuppressed(message)) ? { cancel: true, cancelReason: REASON } : undefined;
    },
    replySending: async ({ payload, channel, sessionKey: key }, { sessionKey = key, channelId }) => {
      const { text = "", mediaUrl, mediaUrls } = payload;
      const media = readMediaUrls(mediaUrls ?? (mediaUrl === undefined ? [] : [mediaUrl]));
      const message = { through: "reply", sessionKey, channel: channel ?? channelId, text, media } as const;
      return (await isSuppressed(message)) ? { cancel: true, reason: REASON } : undefined;
    },
  };
}

/** The host tells it where it shows what became of a message. */
const REASON = "coordination: what a subagent says goes to a chat through its parent only (chat.childText)";

interface OutgoingMessage {
  readonly through: SuppressedMessage["through"];
  readonly sessionKey: string | undefined;
  readonly channel: string;
  readonly text: string;
  readonly media: readonly string[];
}

function readMediaUrls(urls: unknown): string[] {
  return Array.isArray(urls) ? urls.filter((url) => typeof url === "string") : [];
}

function formatConversationKey(sessionKey: string, channel: string): string {
  return `${channel}\0${sessionKey}`;
}

/** Records that words of a child did not go to a chat. */
async function recordSuppressedWords(
  runtime: SharedRuntime,
  child: SessionKey,
  { through, channel, text, media }: OutgoingMessage,
): Promise<void> {
  runtime.logger.warn(
    { session: child, channel, chars: text.length },
    "words of a subagent did not go to a chat",
  );
  const { childWords } = await runtime.coordinator();
  await childWords.recordSuppressed(child, {
    through,
    channel: channel.slice(0, CHANNEL_CHARS_MAX) || "unknown",
    chars: text.length,
    media: media.length,
  });
}

const CHANNEL_CHARS_MAX = 64;

/** Returns the child whose words a message is; `undefined` where it is somebody else's, or may be sent. */
async function findSpeakingChild(
  runtime: SharedRuntime,
  recall: RecallWords,
  message: OutgoingMessage,
): Promise<SessionKey | undefined> {
  if (message.sessionKey === undefined) return undefined;
  const session = message.sessionKey as SessionKey;
  const { childWords } = await runtime.coordinator();
  if (!isAnswerToPerson(message) && (await childWords.childOf(session))) return session;
  await recall(runtime, session);
  return findChildSpokenFor(message);
}

/**
 * Returns the child whose words a message is, where the ledger does not answer. No session that an agent spawned
 * speaks for itself then.
 */
function findSpeakerWithoutLedger(
  message: OutgoingMessage,
  isChild: ChildHooks["isChild"],
): SessionKey | undefined {
  const { sessionKey } = message;
  const isOfChild = sessionKey !== undefined && isChild(sessionKey) && !isAnswerToPerson(message);
  return isOfChild ? (sessionKey as SessionKey) : findChildSpokenFor(message);
}

/**
 * True where a person wrote to the session in this chat. Whoever writes to a child's own session wants its answer
 * there, though not that of a child of it.
 */
function isAnswerToPerson({ sessionKey, channel }: OutgoingMessage): boolean {
  const { addressed } = accessGateMemory();
  return sessionKey !== undefined && addressed.get(formatConversationKey(sessionKey, channel)) === true;
}

/** Returns the child whose words go out in the name of its parent, as far as they are remembered. */
function findChildSpokenFor({ sessionKey, text, media }: OutgoingMessage): SessionKey | undefined {
  if (sessionKey === undefined) return undefined;
  const { spoken } = accessGateMemory();
  const child =
    text === ""
      ? spoken.findChildOfFiles(sessionKey, media.map(readFileName).join(" "))
      : spoken.findChild(sessionKey, text);
  return child as SessionKey | undefined;
}

function readFileName(url: string): string {
  return url.slice(url.lastIndexOf("/") + 1);
}
