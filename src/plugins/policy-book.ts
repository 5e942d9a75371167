/** Owns: the policy packs that hold for single agents, channels or sessions, as the configuration has them. */
import type { Phase1Config } from "../agents/coordination/contracts/config/config.ts";
import type { PolicyRule } from "../agents/coordination/contracts/config/policies-config.ts";
import { treeBudgetOf } from "../agents/coordination/contracts/config/tree-budget.ts";
import { parseHostAgentId } from "../agents/coordination/contracts/host-agent-id.ts";
import type {
  PolicyBook,
  PolicyRules,
  WorkOwner,
} from "../agents/coordination/runtime/environment/policy-rules.ts";
import { ANY_CHARACTERS, isFittingAll } from "../agents/coordination/std/fit-wildcards.ts";

/** `ruled`: the configuration as it is under each pack that a rule names. */
export function createPolicyBook(
  { policies }: Phase1Config,
  ruled: ReadonlyMap<string, Phase1Config>,
): PolicyBook {
  const books = new Map([...ruled].map(([name, config]) => [name, createRules(name, config)]));
  return {
    choose: (owner) => {
      const rule = policies.rules.find((candidate) => isFitting(candidate, owner));
      return rule && books.get(rule.pack);
    },
    // A newer version of the pack is the same pack.
    find: (policy) => policy && books.get(policy.name),
  };
}

function createRules(name: string, config: Phase1Config): PolicyRules {
  const { gates, escalations, privileges, stepTimeoutMs, escalateMs, policies } = config;
  const budget = treeBudgetOf(config.budget);
  const version = policies.packs[name]?.version ?? "0.0.0";
  return {
    policy: { name, version },
    gates,
    escalations,
    privileges,
    stepTimeoutMs,
    escalateMs,
    ...(budget && { budget }),
  };
}

function isFitting({ agent, channel, session }: PolicyRule, owner: WorkOwner): boolean {
  if (agent !== undefined && parseHostAgentId(agent) !== parseHostAgentId(owner.agent)) return false;
  if (channel !== undefined && channel.toLowerCase() !== findChannel(owner.session)?.toLowerCase())
    return false;
  return (
    session === undefined || isFittingAll(Array.from(owner.session), Array.from(session), ANY_CHARACTERS)
  );
}

/** `telegram` of `agent:main:telegram:direct:42`. A session that channels share is in none. */
function findChannel(session: string): string | undefined {
  const [, , channel, ...rest] = session.split(":");
  return rest.length > 0 ? channel : undefined;
}
