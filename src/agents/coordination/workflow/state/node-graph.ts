/** Owns: the graph that runs of a workflow follow. */

import type {
  WorkflowEdge,
  WorkflowNode,
  WorkflowVariable,
} from "../../contracts/workflows/workflow-definition.ts";

export interface NodeGraph {
  readonly workflowId: string;
  /** sha256 of the definition's text. */
  readonly definition: string;
  readonly nodes: ReadonlyMap<string, GraphNode>;
  readonly variables: readonly WorkflowVariable[];
  /** Milliseconds that a run may work; absent: the host's limit. 0: none. */
  readonly timeoutMs?: number;
  readonly maxRetries: number;
  readonly loopbackMax: number;
}

export interface GraphNode {
  readonly node: WorkflowNode;
  readonly incoming: readonly GraphEdge[];
  readonly outgoing: readonly GraphEdge[];
  /** It is in a loop or behind one, so that it may be started again. */
  readonly isLooped: boolean;
}

export type GraphEdge = WorkflowEdge & { readonly rule: EdgeRule; readonly closesLoop: boolean };

export type EdgeRule = NonNullable<WorkflowEdge["triggerRule"]>;
