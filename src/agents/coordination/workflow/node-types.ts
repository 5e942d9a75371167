/** Owns: the node types that this host can run, by their names in definitions. */
import { DISPATCH, SUPERVISOR } from "./graph.ts";
import type { NodeType } from "./node-type.ts";
import { delay, fail, noop, requiresMissing } from "./nodes/basic-nodes.ts";
import { dispatch } from "./nodes/dispatch.ts";
import { approvalGate, clarificationGate, interruptGate } from "./nodes/gate-nodes.ts";
import { identity, memoryRead, memoryWrite } from "./nodes/memory-nodes.ts";
import { mockAgent } from "./nodes/mock-agent.ts";
import { structuredOutput } from "./nodes/model-nodes.ts";
import { subWorkflow } from "./nodes/sub-workflow.ts";
import { supervisor } from "./nodes/supervisor.ts";
import { a2aInvoke, toolOrPrompt } from "./nodes/tool-nodes.ts";

const NODE_TYPES: Readonly<Record<string, NodeType>> = {
  "core.noop": noop,
  "core.identity": identity,
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
  "core.ai.structuredOutput": structuredOutput,
  "core.ai.callPrompt": toolOrPrompt,
  "core.conformance.mcp-invoke": toolOrPrompt,
  "core.a2a.invoke": a2aInvoke,
  "core.conformance.a2a-invoke": a2aInvoke,
  "core.conformance.mock-agent": mockAgent,
  "conformance.requiresMissing": requiresMissing,
  "openclaw.memory.write": memoryWrite,
  "openclaw.memory.read": memoryRead,
};

export function nodeTypeOf(typeId: string): NodeType | undefined {
  return Object.hasOwn(NODE_TYPES, typeId) ? NODE_TYPES[typeId] : undefined;
}

export function isSubWorkflow(typeId: string): boolean {
  return nodeTypeOf(typeId) === subWorkflow;
}

/** Only in workflows that are there to test hosts. */
export function isMockType(typeId: string): boolean {
  return typeId.startsWith("core.conformance.");
}

export const NODE_TYPE_IDS: readonly string[] = Object.keys(NODE_TYPES);
