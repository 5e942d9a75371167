/** Owns: what holds for the questions of a coordination, from the operator's configuration and the plugins that want to hear. */
import { BOUNDS } from "../../contracts/bounds.ts";
import { channelSchema, type QuestionPolicy } from "../../contracts/escalation.ts";
import type { Logger } from "../../ports/logger.ts";
import type { GateDependencies } from "../environment/gate-dependencies.ts";

interface PolicyDependencies extends Pick<GateDependencies, "escalations" | "pluginGates"> {
  readonly settings: { readonly escalateMs: number };
  readonly logger: Logger;
}

/** The plugins that were warned of, by the configuration that leaves them no place. */
const warnedOf = new WeakMap<GateDependencies["escalations"], Set<string>>();

function warnOfUntoldPlugin(
  logger: Logger,
  escalations: GateDependencies["escalations"],
  plugin: string,
): void {
  const plugins = warnedOf.get(escalations) ?? new Set();
  if (plugins.has(plugin)) return;
  warnedOf.set(escalations, plugins.add(plugin));
  logger.warn(
    { plugin },
    `this plugin is not told of questions: there are ${BOUNDS.noticesMax} notices at most, and escalations.notify and other plugins have them`,
  );
}

/**
 * Creates the rules for the questions of a coordination: the time to answer, who is notified when, and whether another
 * one must approve. Plugins' channels get the places that the operator's leave; of those without a place it is warned.
 */
export function createQuestionPolicy({
  escalations,
  pluginGates,
  settings,
  logger,
}: PolicyDependencies): QuestionPolicy {
  const { notify: configured, requireDifferentApprover } = escalations;
  const named = new Set(configured.map(({ channel }) => channel));
  const plugins = pluginGates
    .channels()
    .filter((channel) => !named.has(channel) && channelSchema.safeParse(channel).success);
  const free = BOUNDS.noticesMax - configured.length;
  for (const plugin of plugins.slice(free)) warnOfUntoldPlugin(logger, escalations, plugin);
  const notify = [...plugins.slice(0, free).map((channel) => ({ channel, afterMs: 0 })), ...configured];
  return {
    answerMs: settings.escalateMs,
    ...(notify.length > 0 && { notify }),
    ...(requireDifferentApprover && { requireDifferentApprover: true }),
  };
}
