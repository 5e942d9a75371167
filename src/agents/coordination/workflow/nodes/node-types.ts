/** Owns: the node types that this host can run, by their names in definitions. */
import { AGENT, DISPATCH, SUPERVISOR } from "../state/graph.ts";
import type { NodeType, WorkflowSettings } from "../node-contract/node-type.ts";
import { agentNode, withInvocation, isLiveModelNode } from "./agent-invocation.ts";
import { delay, fail, noop } from "./basic-nodes.ts";
import { dispatch } from "./dispatch.ts";
import { approvalGate, clarificationGate, interruptGate } from "./gate-nodes.ts";
import { identity, memoryRead, memoryWrite } from "./memory-nodes.ts";
import { structuredOutput } from "./model-nodes.ts";
import { subWorkflow } from "./sub-workflow.ts";
import { supervisor } from "./supervisor.ts";
import { a2aInvoke, toolOrPrompt } from "./tool-nodes.ts";
import { workspaceRead, workspaceWrite } from "./workspace-nodes.ts";

const NODE_TYPES: Readonly<Record<string, NodeType>> = {
  "core.noop": withInvocation(noop),
  "core.identity": withInvocation(identity, ({ node }) => node.node.config["memoryAction"] === undefined),
  "core.delay": delay,
  "core.fail": fail,
  "core.approvalGate": approvalGate,
  "core.chat.approvalGate": approvalGate,
  "core.clarificationGate": clarificationGate,
  "core.interrupt": interruptGate,
  "core.subWorkflow": subWorkflow,
  "core.control.subWorkflow": subWorkflow,
  [SUPERVISOR]: supervisor,
  [DISPATCH]: dispatch,
  "core.ai.structuredOutput": withInvocation(structuredOutput, isLiveModelNode),
  "core.ai.callPrompt": withInvocation(toolOrPrompt, isLiveModelNode),
  "core.a2a.invoke": a2aInvoke,
  [AGENT]: agentNode,
  "openclaw.memory.write": memoryWrite,
  "openclaw.memory.read": memoryRead,
  "openclaw.workspace.write": workspaceWrite,
  "openclaw.workspace.read": workspaceRead,
};

/**
 * Finds the node type of that name: the product's, else one of the conformance play, where the host has one;
 * `undefined` where neither knows it.
 */
export function findNodeType(typeId: string, { play }: WorkflowSettings): NodeType | undefined {
  if (Object.hasOwn(NODE_TYPES, typeId)) return NODE_TYPES[typeId];
  return play && Object.hasOwn(play.nodeTypes, typeId) ? play.nodeTypes[typeId] : undefined;
}

/** Types whose nodes an agent of a manifest executes where one is named (RFC 0072 §B). */
const INVOKING: ReadonlySet<string> = new Set([
  AGENT,
  "core.noop",
  "core.identity",
  "core.ai.structuredOutput",
  "core.ai.callPrompt",
]);

/** True for a node type whose nodes are executed by an agent where they name one that has a manifest (RFC 0072 §B). */
export function canInvokeAgent(typeId: string): boolean {
  return INVOKING.has(typeId);
}

/** True for the type of nodes that run another workflow. */
export function isSubWorkflowType(typeId: string): boolean {
  return NODE_TYPES[typeId] === subWorkflow;
}

export const NODE_TYPE_IDS: readonly string[] = Object.keys(NODE_TYPES);
