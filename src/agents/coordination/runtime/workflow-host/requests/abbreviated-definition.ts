/** Owns: the short form in which the protocol's suite registers workflows: `workflowId` and `nodeId`, and no more than it needs. */
import type { Values } from "../../../workflow/state/values.ts";
import { isRecord } from "../../../std/is-record.ts";

/**
 * Returns a workflow definition with the defaults of the short form filled in; a value that is no record is returned
 * as it came.
 */
export function expandDefinition(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const { workflowId, nodes, ...rest } = value;
  const id = value["id"] ?? workflowId;
  return {
    name: id,
    version: "1",
    edges: [],
    ...rest,
    id,
    nodes: Array.isArray(nodes) ? nodes.map(expandNode) : nodes,
  };
}

function expandNode(node: unknown): unknown {
  if (!isRecord(node)) return node;
  const { nodeId, ...rest }: Values = node;
  return { ...rest, id: node["id"] ?? nodeId };
}
