/** Owns: which general setting one of an agent stands in place of, and what holds for agents of which a policy says nothing. */
import type { Phase1Config } from "../contracts/config/config.ts";
import { findAgentEntry } from "../contracts/host-agent-id.ts";
import type { UnknownRecord } from "../std/is-record.ts";

const OF_GATE = /^gates\.agents\..+\.(confidenceThreshold|requireConfidence)$/su;
const OF_PRIVILEGE = /^privileges\.agents\..+\.(tools\.allow|tools\.deny|write)$/su;

/** Finds the setting that holds for an agent where there is not the one at this path. */
export function findGeneralPath(path: string): string | undefined {
  const ofGate = OF_GATE.exec(path)?.[1];
  if (ofGate !== undefined) return `gates.${ofGate}`;
  const ofPrivilege = OF_PRIVILEGE.exec(path)?.[1];
  return ofPrivilege === undefined ? undefined : `privileges.default.${ofPrivilege}`;
}

type Ruling = Pick<Phase1Config, "gates" | "privileges">;

/**
 * Returns both sections with an entry for each agent that either policy names, so that the two can be compared: where one has nothing
 * of its own for an agent, its general settings hold.
 */
export function fillAgents(
  { gates, privileges }: Ruling,
  other: Ruling,
): Record<keyof Ruling, UnknownRecord> {
  return {
    gates: { ...gates, agents: fillGates(gates, other.gates) },
    privileges: { ...privileges, agents: fillPrivileges(privileges, other.privileges) },
  };
}

function fillGates(
  { agents, confidenceThreshold, requireConfidence }: Phase1Config["gates"],
  other: Phase1Config["gates"],
): UnknownRecord {
  return fillEach([agents, other.agents], (id) => {
    const compared = findAgentEntry(other.agents, id);
    return {
      ...(compared?.confidenceThreshold !== undefined && { confidenceThreshold }),
      ...(compared?.requireConfidence !== undefined && { requireConfidence }),
      ...findAgentEntry(agents, id),
    };
  });
}

/** An entry says all of its agent: nothing of the general rule is left beside it. */
function fillPrivileges(
  { agents, default: ofOthers = {} }: Phase1Config["privileges"],
  other: Phase1Config["privileges"],
): UnknownRecord {
  return fillEach([agents, other.agents], (id) => ({ ...(findAgentEntry(agents, id) ?? ofOthers) }));
}

/** An empty entry is left out: by its path it could be taken for a setting of an agent with a shorter id. */
function fillEach(
  sides: readonly Readonly<Record<string, unknown>>[],
  fill: (agentId: string) => UnknownRecord,
): UnknownRecord {
  const ids = new Set(sides.flatMap((agents) => Object.keys(agents)));
  const entries = [...ids].map((id) => [id, fill(id)] as const);
  return Object.fromEntries(entries.filter(([, entry]) => Object.keys(entry).length > 0));
}
