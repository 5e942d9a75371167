/**
 * Owns: our side of the hooks of plugin authors: who is asked, what their answers come to, and what holds when there is none.
 * Does not own: what is done about it, or what is recorded.
 *
 * P1 A gate fails closed: a hook that throws, is late, answers wrongly or is of a version that is not known lets nothing through.
 *    `escalate` and `observe` fail open.
 * P2 Every plugin gets copies of its own, which it cannot change.
 * P3 Where no plugin has a hook, nothing is copied, begun or waited for.
 */
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { ChannelNotice, NoticeOutcome } from "../../agents/coordination/ports/human-channel.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import type { CheckAnswer } from "../../agents/coordination/ports/verifier.ts";
import { findHook, listHooks } from "./asked-hooks.ts";
import { askDeciders, type DecisionRuling } from "./ask-deciders.ts";
import { HOOK_LIMITS, type HookKind } from "./hook-limits.ts";
import type { HookProblem, ProblemDependencies } from "./hook-problem.ts";
import type { CoordinationEvent, HookContest, HookDecision } from "./hook-types.ts";
import { copyIsolated } from "./isolated-copy.ts";
import { normalizeAgentId } from "./normalize-agent-id.ts";
import { notifyPlugin, type TakeAnswer } from "./notify-plugin.ts";
import { createObservers, type ObserverQueues } from "./observers.ts";
import { readRuling } from "./read-answers.ts";
import { runHook } from "./run-hook.ts";
import { verifyByPlugin, type PluginCheck } from "./verify-by-plugin.ts";

/** The plugins' ruling on a contest. */
export type ContestRuling =
  | { readonly award: "requester" | "holder"; readonly plugin: string; readonly reason: string }
  /** The id of the plugin, and a sentence: the requester is refused. */
  | { readonly failed: string; readonly message: string };

/** The side of hooks that asks: all registered plugins, in order of priority. */
export interface HookHost {
  /** Whether any plugin has such a hook. A look into a map. */
  hasAny(kind: HookKind): boolean;
  /** In order of priority, until one has an opinion. `undefined`: nobody has. */
  arbitrate(contest: HookContest, untilMs?: number): Promise<ContestRuling | undefined>;
  /** The checks that plugins want of an agent's results, as `plugin:ID`, in order of priority. Any spelling of its id will do. */
  verifiersFor(agentId: string): readonly string[];
  /** Carries out one of them. Never throws. */
  verify(request: PluginCheck, check: string): Promise<CheckAnswer>;
  /** Asks all at once: any `deny` counts, then the least confidence. `undefined`: nobody has an opinion. */
  decide(decision: HookDecision, untilMs?: number): Promise<DecisionRuling | undefined>;
  /** The plugins that tell people of questions, as `plugin:ID`, in order of priority. */
  channels(): readonly string[];
  /** Tells one of them. Never throws. `take` is given every answer that the plugin brings, now or later. */
  notify(notice: ChannelNotice, channel: string, take: TakeAnswer): Promise<NoticeOutcome>;
  /** Tells all observers, after the caller has gone on. */
  observe(events: readonly CoordinationEvent[]): void;
  /** Resolves when every observer has been told everything. */
  observed(): Promise<void>;
}

/** The collaborators that asking hooks needs. */
export interface HookHostDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Is told of every problem with a hook. */
  readonly onProblem?: (problem: HookProblem) => void;
  /** The events that wait for observers, shared with other hosts. Absent: nothing is shared. */
  readonly observerQueues?: ObserverQueues;
}

/**
 * Creates the plugin's side of the hooks of other plugins: it asks them for rulings, verdicts and decisions, notifies
 * people through them, and passes events on to observers.
 */
export function createHookHost(dependencies: HookHostDependencies): HookHost {
  const { clock } = dependencies;
  const namesOf = (kind: HookKind): readonly string[] =>
    listHooks(kind, clock.now()).map(({ plugin }) => `plugin:${plugin}`);
  const watching = createObservers(dependencies, dependencies.observerQueues ?? new Map());
  return {
    hasAny: (kind) => listHooks(kind, clock.now()).length > 0,
    arbitrate: (contest, untilMs) => askArbiters(dependencies, contest, untilMs),
    verifiersFor: (agentId) => {
      const wanted = normalizeAgentId(agentId);
      return listHooks("verify", clock.now())
        .filter(({ hook }) => hook?.agents?.some((agent) => normalizeAgentId(agent) === wanted) ?? true)
        .map(({ plugin }) => `plugin:${plugin}`);
    },
    verify: (request, check) =>
      verifyByPlugin(dependencies, request, {
        check,
        asked: findHook(parsePluginId(check), "verify", clock.now()),
      }),
    decide: (decision, untilMs) => askDeciders(dependencies, decision, untilMs),
    channels: () => namesOf("escalate"),
    notify: (notice, channel, take) =>
      notifyPlugin(dependencies, { notice, plugin: parsePluginId(channel), take }),
    observe: watching.observe,
    observed: watching.observed,
  };
}

/** Returns the id in `plugin:ID`; any other text as it is. */
function parsePluginId(name: string): string {
  return name.startsWith("plugin:") ? name.slice("plugin:".length) : name;
}

/** Asks the `arbitrate` hooks one after the other, until one has an opinion or fails. */
async function askArbiters(
  dependencies: ProblemDependencies,
  contest: HookContest,
  untilMs = Number.MAX_SAFE_INTEGER,
): Promise<ContestRuling | undefined> {
  const { clock } = dependencies;
  const deadlineAtMs = Math.min(clock.now() + HOOK_LIMITS.arbitrateMsMax, untilMs);
  for (const hook of listHooks("arbitrate", clock.now())) {
    const createArguments = (context: unknown): readonly unknown[] => [copyIsolated(contest), context];
    const outcome = await runHook(dependencies, hook, { createArguments, deadlineAtMs, read: readRuling });
    if (outcome?.kind === "problem") return { failed: hook.plugin, message: outcome.problem.message };
    if (outcome?.value) return { ...outcome.value, plugin: hook.plugin };
  }
  return undefined;
}
