/** Owns: the node types that this host can run, by their names in definitions. */
import { AGENT, DISPATCH, SUPERVISOR } from "../state/graph.ts";
import type { NodeType } from "../node-contract/node-type.ts";
import { agentNode, withInvocation, isLive } from "./agent-invocation.ts";
import { delay, fail, noop, requiresMissing } from "./basic-nodes.ts";
import { dispatch } from "./dispatch.ts";
import { hold, sideEffect } from "./conformance-nodes.ts";
import { approvalGate, clarificationGate, interruptGate } from "./gate-nodes.ts";
import { identity, memoryRead, memoryWrite } from "./memory-nodes.ts";
import { mockAgent } from "./mock-agent.ts";
import { structuredOutput } from "./model-nodes.ts";
import { subWorkflow } from "./sub-workflow.ts";
import { supervisor } from "./supervisor.ts";
import { a2aInvoke, toolOrPrompt } from "./tool-nodes.ts";
import { workspaceRead, workspaceWrite } from "./workspace-nodes.ts";
import type { Values } from "../state/values.ts";

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
  "core.ai.structuredOutput": withInvocation(structuredOutput, isLive),
  "core.ai.callPrompt": withInvocation(toolOrPrompt, isLive),
  "core.conformance.mcp-invoke": toolOrPrompt,
  "core.a2a.invoke": a2aInvoke,
  "core.conformance.a2a-invoke": a2aInvoke,
  "core.conformance.mock-agent": mockAgent,
  "core.conformance.hold": hold,
  "core.conformance.side-effect": sideEffect,
  "conformance.requiresMissing": requiresMissing,
  [AGENT]: agentNode,
  "openclaw.memory.write": memoryWrite,
  "openclaw.memory.read": memoryRead,
  "openclaw.workspace.write": workspaceWrite,
  "openclaw.workspace.read": workspaceRead,
};

export function nodeTypeOf(typeId: string): NodeType | undefined {
  return Object.hasOwn(NODE_TYPES, typeId) ? NODE_TYPES[typeId] : undefined;
}

/** Types whose nodes an agent of a manifest executes where one is named (RFC 0072 §B). */
const INVOKING: ReadonlySet<string> = new Set([
  AGENT,
  "core.noop",
  "core.identity",
  "core.ai.structuredOutput",
  "core.ai.callPrompt",
]);

export function mayInvoke(typeId: string): boolean {
  return INVOKING.has(typeId);
}

export function isSubWorkflow(typeId: string): boolean {
  return nodeTypeOf(typeId) === subWorkflow;
}

/** True for node types that only workflows for testing hosts may use. */
export function isMockType(typeId: string): boolean {
  return typeId.startsWith("core.conformance.");
}

/** A node whose model is the host's mock. */
export function isAskingMockModel({
  typeId,
  config,
}: {
  readonly typeId: string;
  readonly config: Values;
}): boolean {
  return MODEL_TYPES.has(typeId) && config["provider"] === "mock";
}

const MODEL_TYPES: ReadonlySet<string> = new Set(["core.ai.structuredOutput", "core.ai.callPrompt"]);

export const NODE_TYPE_IDS: readonly string[] = Object.keys(NODE_TYPES);
