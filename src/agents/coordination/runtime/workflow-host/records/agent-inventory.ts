/** Owns: what is told of an installed agent (agent-inventory-response.schema.json): no prompt, no schema, no credential. */
import type { InstalledAgent } from "../../../contracts/workflows/agent-manifest.ts";

export interface AgentEntry {
  readonly agentId: string;
  readonly persona: string;
  readonly label: string;
  readonly description?: string;
  readonly modelClass: string;
  readonly packName: string;
  readonly packVersion: string;
  readonly toolAllowlist: readonly string[];
  readonly hasHandoffSchemas: boolean;
  readonly memoryShape?: Readonly<Record<string, boolean>>;
  readonly confidenceThreshold?: number;
  /** Capabilities that it needs of a host; not told as they are (RFC 0092). */
  readonly requiresCapabilities: readonly string[];
}

/** Creates the entry of an installed agent in the host's inventory, from its manifest and pack. */
export function createInventoryEntry({
  manifest,
  packName,
  packVersion,
  ...schemas
}: InstalledAgent): AgentEntry {
  const { agentId, persona, label = persona, description, modelClass, confidence } = manifest;
  const { toolAllowlist = [], memoryShape, requiresCapabilities = [] } = manifest;
  const threshold = confidence?.defaultThreshold;
  return {
    agentId,
    persona,
    label,
    modelClass,
    packName,
    packVersion,
    toolAllowlist,
    requiresCapabilities,
    hasHandoffSchemas: schemas.taskSchema !== undefined || schemas.returnSchema !== undefined,
    ...(description !== undefined && { description }),
    ...(memoryShape && { memoryShape: pickStatedMemory(memoryShape) }),
    ...(threshold !== undefined && { confidenceThreshold: threshold }),
  };
}

function pickStatedMemory(
  shape: NonNullable<InstalledAgent["manifest"]["memoryShape"]>,
): Record<string, boolean> {
  return Object.fromEntries(
    Object.entries(shape).flatMap(([name, is]) => (is === undefined ? [] : [[name, is]])),
  );
}
