/** Owns: which general setting one of an agent stands in place of, and what holds for agents of which a policy says nothing. */
import type { Phase1Config } from "../contracts/config/config.ts";
import { findAgentEntry } from "../contracts/host-agent-id.ts";
import type { UnknownRecord } from "../std/is-record.ts";

const OF_GATE = /^gates\.agents\..+\.(confidenceThreshold|requireConfidence)$/su;
const OF_PRIVILEGE = /^privileges\.agents\..+\.(tools\.allow|tools\.deny|write)$/su;

/**
 * Returns the path of the general setting that an agent's own setting overrides; `undefined` for one that overrides
 * none, such as its checks, and for a path of no agent.
 */
export function findGeneralPath(path: string): string | undefined {
  const ofGate = OF_GATE.exec(path)?.[1];
  if (ofGate !== undefined) return `gates.${ofGate}`;
  const ofPrivilege = OF_PRIVILEGE.exec(path)?.[1];
  return ofPrivilege === undefined ? undefined : `privileges.default.${ofPrivilege}`;
}

/** The settings that rule on the results and the privileges of agents. */
type AgentRules = Pick<Phase1Config, "gates" | "privileges">;

/**
 * Returns the sections `gates` and `privileges` of one policy for a comparison with the other: of an agent, what the
 * other states and it does not is taken from its general settings. Empty entries are left out.
 */
export function fillAgentEntries(
  { gates, privileges }: AgentRules,
  other: AgentRules,
): Record<keyof AgentRules, UnknownRecord> {
  return {
    gates: { ...gates, agents: fillAgentGates(gates, other.gates) },
    privileges: { ...privileges, agents: fillAgentPrivileges(privileges, other.privileges) },
  };
}

function fillAgentGates(
  { agents, confidenceThreshold, requireConfidence }: Phase1Config["gates"],
  other: Phase1Config["gates"],
): UnknownRecord {
  return fillEntries([agents, other.agents], (id) => {
    const compared = findAgentEntry(other.agents, id);
    return {
      ...(compared?.confidenceThreshold !== undefined && { confidenceThreshold }),
      ...(compared?.requireConfidence !== undefined && { requireConfidence }),
      ...findAgentEntry(agents, id),
    };
  });
}

/**
 * Returns the privileges of each agent named by either side. An entry says all of its agent: nothing of the general
 * rule is left beside it.
 */
function fillAgentPrivileges(
  { agents, default: ofOthers = {} }: Phase1Config["privileges"],
  other: Phase1Config["privileges"],
): UnknownRecord {
  return fillEntries([agents, other.agents], (id) => ({ ...(findAgentEntry(agents, id) ?? ofOthers) }));
}

/**
 * Returns an entry for each agent that either side names. An empty one is left out: by its path it could be taken for
 * a setting of an agent with a shorter id.
 */
function fillEntries(
  sides: readonly Readonly<Record<string, unknown>>[],
  fill: (agentId: string) => UnknownRecord,
): UnknownRecord {
  const ids = new Set(sides.flatMap((agents) => Object.keys(agents)));
  const entries = [...ids].map((id) => [id, fill(id)] as const);
  return Object.fromEntries(entries.filter(([, entry]) => Object.keys(entry).length > 0));
}
