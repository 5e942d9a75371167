/** Owns: the short form in which the protocol's suite registers workflows: `workflowId` and `nodeId`, and no more than it needs. */
import type { Values } from "../../../workflow/state/values.ts";
import { isRecord } from "../../../std/is-record.ts";

/** The whole form; what is no short form is as it came. */
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
