/**
 * Owns: the ways to people by the names of their channels, and the check of answers by webhook. A channel's library is
 * loaded with the first notice that goes through it.
 */
import type { AnswerRefusal, Channel } from "../agents/coordination/contracts/escalation.ts";
import type {
  EscalationsConfig,
  WebhookConfig,
} from "../agents/coordination/contracts/config/gates-config.ts";
import type { Clock } from "../agents/coordination/ports/clock.ts";
import type { HumanChannel } from "../agents/coordination/ports/human-channel.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import type {
  AnswerRequest,
  QuestionAnswered,
} from "../agents/coordination/runtime/questions/question-requests.ts";
import { dropTrailingSlashes } from "../agents/coordination/std/foreign-text.ts";
import { resolveSecret, type ReadVariable } from "../infra/http/tokens.ts";
import type { AnswerCheck } from "../infra/webhook/answer-check.ts";
import { ANSWER_PATH } from "./answer-path.ts";
import type { HookHost } from "./hooks/hook-host.ts";

type AnswerRefused = QuestionAnswered & { readonly kind: "refused" };

/** An answer that came through a channel. Resolves with why it did not count. */
export type TakeChannelAnswer = (
  answer: Omit<AnswerRequest, "through">,
  through: Channel,
) => Promise<AnswerRefused | undefined>;

export interface ChannelDependencies {
  readonly escalations: EscalationsConfig;
  readonly hooks: HookHost;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly readVariable: ReadVariable;
  readonly takeAnswer: TakeChannelAnswer;
  /** The host's own ways to people. */
  readonly ofHost: Readonly<Record<"host" | "chat", HumanChannel>>;
}

/** The refusals of a question that nobody can answer any more. */
const CLOSED: ReadonlySet<string> = new Set(["QUESTION_CLOSED", "COORDINATION_ENDED", "NOT_FOUND"]);

const WEBHOOK = "webhook:";

/** The webhooks of the configuration, by name. */
type WebhookSettings = EscalationsConfig["webhooks"];

const SECRET_CHARS_MIN = 16;
const NO_SECRET =
  "The webhook is off: the variable for its secret is not set, or has fewer than 16 characters.";

/** Returns the webhook with its secret; `undefined` where the secret is not known, or too short to keep anybody out. */
function resolveWebhook(config: WebhookConfig, readVariable: ReadVariable): WebhookConfig | undefined {
  const secret = resolveSecret(config.secret, readVariable);
  return secret === undefined || secret.length < SECRET_CHARS_MIN ? undefined : { ...config, secret };
}

/**
 * Returns the names of the configured webhooks that are off, because the variable for their secret is not set or too
 * short.
 */
export function listWebhooksOff(webhooks: WebhookSettings, readVariable: ReadVariable): string[] {
  return Object.entries(webhooks)
    .filter(([, config]) => !resolveWebhook(config, readVariable))
    .map(([name]) => name);
}

/**
 * Creates the check of answers to questions that come by webhook; an answer for a webhook that is off is refused as
 * unknown.
 */
export async function createWebhookAnswerCheck(
  webhooks: WebhookSettings,
  { clock, readVariable }: Pick<ChannelDependencies, "clock" | "readVariable">,
): Promise<AnswerCheck> {
  const { createAnswerCheck } = await import("../infra/webhook/answer-check.ts");
  const resolved = Object.entries(webhooks).flatMap(([name, config]) => {
    const webhook = resolveWebhook(config, readVariable);
    return webhook ? [[name, webhook] as const] : [];
  });
  return createAnswerCheck({ webhooks: Object.fromEntries(resolved), clock });
}

/**
 * Returns a function that finds a channel to people (`host`, `chat`, any `plugin:` name, a configured webhook), else
 * `undefined`. Logs an error at once for each webhook that is off; its channel fails each notice.
 */
export function createChannelFinder(
  dependencies: ChannelDependencies,
): (channel: string) => HumanChannel | undefined {
  const { escalations, logger, readVariable } = dependencies;
  for (const webhook of listWebhooksOff(escalations.webhooks, readVariable))
    logger.error({ webhook }, NO_SECRET);
  const webhooks = new Map<string, HumanChannel | undefined>();
  return (channel) => {
    if (channel === "host" || channel === "chat") return dependencies.ofHost[channel];
    if (channel.startsWith("plugin:")) return createPluginChannel(dependencies, channel);
    if (!channel.startsWith(WEBHOOK)) return undefined;
    if (!webhooks.has(channel))
      webhooks.set(channel, createLazyWebhookChannel(dependencies, channel.slice(WEBHOOK.length)));
    return webhooks.get(channel);
  };
}

/**
 * Creates the channel of a webhook, whose library is loaded with the first notice; one that fails each notice where
 * the webhook is off; `undefined` for an unknown webhook.
 */
function createLazyWebhookChannel(
  { escalations, logger, clock, readVariable }: ChannelDependencies,
  name: string,
): HumanChannel | undefined {
  const written = Object.hasOwn(escalations.webhooks, name) ? escalations.webhooks[name] : undefined;
  if (!written) return undefined;
  const config = resolveWebhook(written, readVariable);
  if (!config) return { notify: () => Promise.resolve({ kind: "failed", tries: 0, message: NO_SECRET }) };
  const { answerBaseUrl } = escalations;
  const answerUrl = answerBaseUrl && `${dropTrailingSlashes(answerBaseUrl)}${ANSWER_PATH}/${name}`;
  const parts = { name, config, clock, logger, ...(answerUrl && { answerUrl }) };
  return {
    notify: async (notice) =>
      (await import("../infra/webhook/webhook-channel.ts")).createWebhookChannel(parts).notify(notice),
  };
}

/** Creates a channel through a plugin, which is the author of its answers in the log. */
function createPluginChannel({ hooks, takeAnswer }: ChannelDependencies, channel: Channel): HumanChannel {
  return {
    notify: (notice) =>
      hooks.notify(notice, channel, async ({ answer, text, by }) => {
        const { questionId } = notice.question;
        const request = { questionId, answer, by, ...(text !== undefined && { text }) };
        const refused = await takeAnswer(request, channel);
        return refused && translateRefusal(refused);
      }),
  };
}

/** Returns the word by which a plugin is told that its answer did not count. */
function translateRefusal({ code, resolution }: AnswerRefused): AnswerRefusal {
  if (!CLOSED.has(code)) return "not_an_answer";
  const isExpired = resolution === "expired" || (code === "QUESTION_CLOSED" && resolution === undefined);
  return isExpired ? "expired" : "closed";
}
