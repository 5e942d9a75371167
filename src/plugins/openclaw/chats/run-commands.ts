/** Owns: the chat commands about agents of manifests: asking one, seeing what came of it, answering what its run waits for. */
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { askMentioned, NOT_SERVED } from "./agent-mention.ts";
import type { ChatMessage } from "./chat-message.ts";
import { createChatSender, logRefused, mayCallAgents, NOT_ALLOWED } from "./chat-senders.ts";
import { formatLine } from "./chat-text.ts";
import { createMention } from "./mention-in.ts";
import { replyOf } from "./mention-reply.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import type { OpenChats, UseChats } from "../runtime-access/use-chats.ts";

/** Ids of runs look so, and those of questions do not. */
export const RUN_ID = /^run-[0-9a-f-]{8,64}$/u;

export interface RunCommandDependencies {
  readonly useChats: UseChats;
  readonly logger: Logger;
}

const NO_AGENTS = "No agents can be called here.";

export function askAgent(
  dependencies: RunCommandDependencies,
  message: ChatMessage,
  [name, text]: readonly [name: string, text: string],
): Promise<string> {
  return withAgents(dependencies, message, async (open) => {
    const mention = createMention(name, text, open.chats.agentIds());
    if (!mention) return `There is no agent ${formatLine(name, NAME_CHARS_MAX) || "without a name"}.`;
    return askMentioned(open, mention, message);
  });
}

const NAME_CHARS_MAX = 100;

export function lookAtRun(
  dependencies: RunCommandDependencies,
  message: ChatMessage,
  runId: string,
): Promise<string> {
  if (!RUN_ID.test(runId)) return Promise.resolve("Which run? Try: /coordination run RUN");
  return withAgents(dependencies, message, async ({ chats, runtime }) =>
    replyOf(await chats.look(createChatSender(runtime.config.openwop.mentions, message), runId)),
  );
}

const MAY_WRITE: ReadonlySet<string> = new Set(["operator.write", "operator.admin"]);

function isVouchedFor({ isAuthorizedSender, gatewayClientScopes: scopes }: ChatMessage): boolean {
  return isAuthorizedSender && (!scopes || scopes.some((scope) => MAY_WRITE.has(scope)));
}

async function withAgents(
  { useChats, logger }: RunCommandDependencies,
  message: ChatMessage,
  work: (open: Required<OpenChats>) => Promise<string>,
): Promise<string> {
  const refuse = (): string => {
    logRefused(logger, message);
    return NOT_ALLOWED;
  };
  if (!isVouchedFor(message)) return refuse();
  return useChats(async ({ chats, ...open }) => {
    const { runtime } = open;
    const { enabled, mentions } = runtime.config.openwop;
    if (!enabled) return NO_AGENTS;
    if (!mayCallAgents(mentions, { ...message, isVouchedFor: true })) return refuse();
    if (!chats) return NOT_SERVED;
    return chats.agentIds().length === 0 ? NO_AGENTS : work({ chats, ...open });
  });
}

interface RunAnswered {
  readonly answer: "approve" | "deny";
  readonly runId: string;
  readonly mayAnswer: (runtime: SharedRuntime) => boolean;
  readonly refused: () => string;
}

export function answerRun(
  { useChats }: RunCommandDependencies,
  message: ChatMessage,
  { answer, runId, mayAnswer, refused }: RunAnswered,
): Promise<string> {
  return useChats(async ({ chats, runtime, tellIn }) => {
    if (!mayAnswer(runtime)) return refused();
    const { openwop, escalations } = runtime.config;
    if (!openwop.enabled) return NO_AGENTS;
    if (!chats) return NOT_SERVED;
    const answered = await chats.answer({
      sender: createChatSender(openwop.mentions, message),
      runId,
      answer,
      isOtherSessionNeeded: escalations.requireDifferentApprover,
      wait: { ms: openwop.mentions.waitSeconds * 1_000, late: tellIn(message.sessionKey) },
    });
    return answered.kind === "unknown_run"
      ? "No run that was begun in a chat has that id."
      : replyOf(answered);
  });
}
