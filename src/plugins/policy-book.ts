/** Owns: the policy packs that hold for single agents, channels or sessions, as the configuration has them. */
import type { Phase1Config } from "../agents/coordination/contracts/config/config.ts";
import type { PolicyRule } from "../agents/coordination/contracts/config/policies-config.ts";
import { createTreeBudget } from "../agents/coordination/contracts/config/tree-budget.ts";
import { parseHostAgentId } from "../agents/coordination/contracts/host-agent-id.ts";
import type {
  PolicyBook,
  PolicyRules,
  WorkOwner,
} from "../agents/coordination/runtime/environment/policy-rules.ts";
import { ANY_CHARACTERS, isMatchingWildcards } from "../agents/coordination/std/fit-wildcards.ts";

/**
 * Creates the book that chooses the rules of a policy pack by the owner of a piece of work, and finds those of a pack
 * by its name. `ruled`: the configuration under each pack that a rule names.
 */
export function createPolicyBook(
  { policies }: Phase1Config,
  ruled: ReadonlyMap<string, Phase1Config>,
): PolicyBook {
  const books = new Map([...ruled].map(([name, config]) => [name, createPolicyRules(name, config)]));
  return {
    choose: (owner) => {
      const rule = policies.rules.find((candidate) => isRuleFitting(candidate, owner));
      return rule && books.get(rule.pack);
    },
    // A newer version of the pack is the same pack.
    find: (policy) => policy && books.get(policy.name),
  };
}

function createPolicyRules(name: string, config: Phase1Config): PolicyRules {
  const { gates, escalations, privileges, stepTimeoutMs, escalateMs, policies } = config;
  const budget = createTreeBudget(config.budget);
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

function isRuleFitting({ agent, channel, session }: PolicyRule, owner: WorkOwner): boolean {
  if (agent !== undefined && parseHostAgentId(agent) !== parseHostAgentId(owner.agent)) return false;
  if (channel !== undefined && channel.toLowerCase() !== parseChannel(owner.session)?.toLowerCase())
    return false;
  return (
    session === undefined ||
    isMatchingWildcards(Array.from(owner.session), Array.from(session), ANY_CHARACTERS)
  );
}

/**
 * Returns the channel that a session's key names: `telegram` of `agent:main:telegram:direct:42`. A session that
 * channels share is in none.
 */
function parseChannel(session: string): string | undefined {
  const [, , channel, ...rest] = session.split(":");
  return rest.length > 0 ? channel : undefined;
}
