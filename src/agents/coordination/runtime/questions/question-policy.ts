/** Owns: what holds for the questions of a coordination, from the operator's configuration and the plugins that want to hear. */
import { BOUNDS } from "../../contracts/bounds.ts";
import { channelSchema, type QuestionPolicy } from "../../contracts/escalation.ts";
import type { GateDependencies } from "../environment/gate-dependencies.ts";

interface PolicyDependencies extends Pick<GateDependencies, "escalations" | "pluginGates"> {
  readonly settings: { readonly escalateMs: number };
}

export function questionPolicyOf({ escalations, pluginGates, settings }: PolicyDependencies): QuestionPolicy {
  const { notify: configured, requireDifferentApprover } = escalations;
  const named = new Set(configured.map(({ channel }) => channel));
  const plugins = pluginGates
    .channels()
    .filter((channel) => !named.has(channel) && channelSchema.safeParse(channel).success)
    .map((channel) => ({ channel, afterMs: 0 }));
  const notify = [...plugins, ...configured].slice(0, BOUNDS.noticesMax);
  return {
    answerMs: settings.escalateMs,
    ...(notify.length > 0 && { notify }),
    ...(requireDifferentApprover && { requireDifferentApprover: true }),
  };
}
