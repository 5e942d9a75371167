/**
 * Owns: the agents of this host as its clients see them (RFC 0072 §A), with what of their needs the host does not advertise
 * (RFC 0092) or cannot keep (RFC 0080).
 */
import type { AgentEntry } from "../../../agents/coordination/runtime/workflow-host/records/agent-inventory.ts";
import type { RouteDependencies } from "../http/route.ts";

/** The fields of the discovery document, unchecked. */
type DiscoveryFields = Readonly<Record<string, unknown>>;

export type InventoryEntry = Omit<AgentEntry, "requiresCapabilities"> & {
  readonly degraded?: readonly string[];
  readonly memoryDegraded?: boolean;
  readonly degradedMemoryDimensions?: readonly string[];
};

/**
 * Lists the host's agents as the agent inventory of the protocol shows them, each with the capabilities that it
 * requires and the discovery document does not advertise.
 */
export function listInventory({ host, discovery }: RouteDependencies): InventoryEntry[] {
  const agents = host.agents();
  const document = agents.length > 0 ? (JSON.parse(discovery().text) as DiscoveryFields) : {};
  return agents.map((agent) => createListedAgent(agent, document));
}

function createListedAgent(
  { requiresCapabilities, ...entry }: AgentEntry,
  document: DiscoveryFields,
): InventoryEntry {
  const degraded = requiresCapabilities.filter((key) => !isAdvertised(document, key));
  const { scratchpad, conversation } = entry.memoryShape ?? {};
  // An agent's notes within one run are in the run's log, and no backend that it could read.
  const isMemoryLess = scratchpad === true || conversation === true;
  return {
    ...entry,
    ...(degraded.length > 0 && { degraded }),
    ...(isMemoryLess && { memoryDegraded: true, degradedMemoryDimensions: ["read", "write"] }),
  };
}

/**
 * True where the discovery document says that the capability is on. `key`: a dotted path; `host.` before it names the
 * host itself.
 */
function isAdvertised(document: DiscoveryFields, key: string): boolean {
  const paths = [key, key.replace(/^host\./, ""), `capabilities.${key}`];
  return paths.some((path) => isCapabilityOn(readMemberAtPath(document, path)));
}

function isCapabilityOn(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (typeof value === "object" && value !== null) return (value as DiscoveryFields)["supported"] !== false;
  return value !== undefined && value !== null && value !== false;
}

function readMemberAtPath(value: unknown, path: string): unknown {
  let found = value;
  for (const key of path.split(".")) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as DiscoveryFields)[key];
  }
  return found;
}
