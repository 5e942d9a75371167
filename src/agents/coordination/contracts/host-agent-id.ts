/**
 * Owns: the one form of an agent's id that OpenClaw uses, of the several spellings that people write, and finding by it; and which
 * keys OpenClaw gives to the sessions of spawned agents.
 */
import type { AgentId } from "./ids.ts";

const CHARS_MAX = 64;
const DEFAULT = "main";

/**
 * Returns the normal form of an agent's id, as OpenClaw makes it from any spelling: lower case, other characters as
 * dashes, cut to a bound; the default agent's for an empty one.
 */
export function parseHostAgentId(spelling: string): AgentId {
  const name = spelling
    .trim()
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]+/gu, "-")
    .replaceAll(/^-+|-+$/gu, "");
  return (name.slice(0, CHARS_MAX) || DEFAULT) as AgentId;
}

/**
 * Returns the entry for an agent in a record by agent ids, whatever spelling either uses; `undefined` where there is
 * none. Among two that mean the same agent, the first counts.
 */
export function findAgentEntry<Entry>(
  agents: Readonly<Record<string, Entry>>,
  agentId: string,
): Entry | undefined {
  const wanted = parseHostAgentId(agentId);
  return Object.entries(agents).find(([id]) => parseHostAgentId(id) === wanted)?.[1];
}

/** True when a list names an agent, whatever spelling either uses. */
export function isAgentListed(agents: readonly string[], agentId: string): boolean {
  const wanted = parseHostAgentId(agentId);
  return agents.some((agent) => parseHostAgentId(agent) === wanted);
}

/** True for the key of a subagent's session, as its `:subagent:` or `:acp:` tells. */
export function isChildSessionKey(session: string): boolean {
  return /:(?:subagent|acp):/u.test(session);
}
