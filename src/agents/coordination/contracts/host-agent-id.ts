/**
 * Owns: the one form of an agent's id that OpenClaw uses, of the several spellings that people write, and finding by it; and which
 * keys OpenClaw gives to the sessions of spawned agents.
 */
import type { AgentId } from "./ids.ts";

const CHARS_MAX = 64;
const DEFAULT = "main";

/** The one form that OpenClaw has for an agent's id, of the several spellings that it takes. */
export function parseHostAgentId(spelling: string): AgentId {
  const name = spelling
    .trim()
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]+/gu, "-")
    .replaceAll(/^-+|-+$/gu, "");
  return (name.slice(0, CHARS_MAX) || DEFAULT) as AgentId;
}

/** Finds what is written for an agent, under whichever spelling; of two that mean the same agent, the first. */
export function findAgentEntry<Entry>(
  agents: Readonly<Record<string, Entry>>,
  agentId: string,
): Entry | undefined {
  const wanted = parseHostAgentId(agentId);
  return Object.entries(agents).find(([id]) => parseHostAgentId(id) === wanted)?.[1];
}

/** True when a list names an agent, under whichever spelling. */
export function isAgentListed(agents: readonly string[], agentId: string): boolean {
  const wanted = parseHostAgentId(agentId);
  return agents.some((agent) => parseHostAgentId(agent) === wanted);
}

/** True for a session that somebody spawned, as its key says. */
export function isChildKey(session: string): boolean {
  return /:(?:subagent|acp):/u.test(session);
}
