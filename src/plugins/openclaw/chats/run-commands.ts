/** Owns: the chat commands about agents of manifests: asking one, seeing what came of it, answering what its run waits for. */
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { askMentionedAgent, NOT_SERVED } from "./agent-mention.ts";
import type { CommandMessage } from "./command-message.ts";
import { createChatSender, logRefusedSender, mayCallAgents, NOT_ALLOWED } from "./chat-senders.ts";
import { formatChatLine } from "./chat-text.ts";
import { resolveMention } from "./mention-in.ts";
import { formatRunReply } from "./mention-reply.ts";
import type { SharedRuntime } from "../runtime-access/shared-runtime.ts";
import type { OpenChats, UseChats } from "../runtime-access/use-chats.ts";

/** Ids of runs look so, and those of questions do not. */
export const RUN_ID = /^run-[0-9a-f-]{8,64}$/u;

export interface RunCommandDependencies {
  readonly useChats: UseChats;
  readonly logger: Logger;
}

const NO_AGENTS = "No agents can be called here.";

/**
 * Runs the agent of that name on the text, where the sender may call agents, and returns the chat reply, also where
 * there is no such agent.
 */
export function askAgent(
  dependencies: RunCommandDependencies,
  message: CommandMessage,
  [name, text]: readonly [name: string, text: string],
): Promise<string> {
  return withCallableAgents(dependencies, message, async (open) => {
    const mention = resolveMention(name, text, open.chats.agentIds());
    if (!mention) return `There is no agent ${formatChatLine(name, NAME_CHARS_MAX) || "without a name"}.`;
    return askMentionedAgent(open, mention, message);
  });
}

const NAME_CHARS_MAX = 100;

/**
 * Returns the chat reply that says how a run of this sender stands; a hint where no run is named, or the refusal of a
 * sender who may not call agents.
 */
export function createRunStateReply(
  dependencies: RunCommandDependencies,
  message: CommandMessage,
  runId: string,
): Promise<string> {
  if (!RUN_ID.test(runId)) return Promise.resolve("Which run? Try: /coordination run RUN");
  return withCallableAgents(dependencies, message, async ({ chats, runtime }) =>
    formatRunReply(await chats.look(createChatSender(runtime.config.openwop.mentions, message), runId)),
  );
}

const MAY_WRITE: ReadonlySet<string> = new Set(["operator.write", "operator.admin"]);

/** True where the channel authorizes the sender; a gateway client also needs a scope that may write. */
function isVouchedForByChannel({ isAuthorizedSender, gatewayClientScopes: scopes }: CommandMessage): boolean {
  return isAuthorizedSender && (!scopes || scopes.some((scope) => MAY_WRITE.has(scope)));
}

/** Runs `work` where agents can be called and the sender may call them; else returns why not. */
async function withCallableAgents(
  { useChats, logger }: RunCommandDependencies,
  message: CommandMessage,
  work: (open: Required<OpenChats>) => Promise<string>,
): Promise<string> {
  const refuse = (): string => {
    logRefusedSender(logger, message);
    return NOT_ALLOWED;
  };
  if (!isVouchedForByChannel(message)) return refuse();
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

/**
 * Gives an approval or a denial to a run that waits for people, waits a while for what comes of it, and returns the
 * chat reply; the refusal of `refused` where the sender may not answer.
 */
export function answerWaitingRun(
  { useChats }: RunCommandDependencies,
  message: CommandMessage,
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
      : formatRunReply(answered);
  });
}
