/**
 * Owns: a node that an agent of a manifest executes (RFC 0077): preparing, turns and tool calls, handing over, the end.
 *
 * The order of events is that of the protocol: started, promptResolved, reasoned, (toolCalled toolReturned)*, decided, handoff,
 * completed. The model's words in later turns are in `coordination.agent_turned` only. I1 to I3 are those of `invocation.ts`.
 */
import { AGENT_BOUNDS } from "../../contracts/workflows/agent-manifest.ts";
import type { AskedCall, BoundTool } from "../../contracts/workflows/agent-events.ts";
import {
  REFUSED,
  type WorkflowDraft,
  type WorkflowPayloads,
} from "../../contracts/workflows/workflow-events.ts";
import type { AgentOutcome } from "../node-contract/agent-effects.ts";
import {
  wrapTaskAsInputs,
  HANDOFF,
  readHandoffRequest,
  MEMORY_WRITE,
  readMemoryNote,
  findCalledTool,
  createAgentWorkflowId,
} from "../node-contract/agent-tools.ts";
import { countMadeCalls, listOpenCalls, type Invocation } from "../state/invocation.ts";
import {
  withNodeId,
  type EffectOutcome,
  type NodeStep,
  type NodeType,
  type NodeView,
} from "../node-contract/node-type.ts";
import { isAgreedAnswer } from "../state/review.ts";
import { buildAgentMessages } from "./agent-messages.ts";
import { createAgentEffect, numberNextTurn, findNodeAgent, createPrepareEffect } from "./agent-node.ts";
import { findLogIdentity } from "../state/workflow-state.ts";
import { createChildEffect } from "./child-run.ts";
import { describeUnsuccessfulEnd, draftNodeFailed } from "./ends.ts";
import { draftMemoryWritten } from "./memory-nodes.ts";

export const agentInvocation: NodeType = {
  step: (view) => {
    const { invocation } = view.nodeRun;
    if (!invocation) return { kind: "act", effect: createPrepareEffect(view) };
    if (invocation.completed) return stepAfterInvocation(view, invocation, invocation.completed);
    return stepInvocation(view, invocation);
  },
  settle: (view, effect, outcome) => {
    switch (outcome.kind) {
      case "agent_prepared":
        return draftInvocationStart(view, outcome);
      case "agent_turned":
        return draftAgentTurn(view, outcome);
      case "agent_tool_returned":
        return effect.kind === "call_agent_tool" ? [draftToolReturned(view, effect, outcome)] : [];
      case "model_refused":
        return [draftNodeFailed(view, { code: REFUSED, message: "the model refused to answer" })];
      case "failed":
      case "child_refused":
        return [draftNodeFailed(view, outcome.error)];
      case "child_created":
        return draftHandedOver(view, outcome.childRunId);
      case "child_ended":
        return draftEndWithChild(view, outcome);
      default:
        return [];
    }
  },
};

/** True when the node names an agent that the run knows by its manifest. */
export function isAgentInvocation(view: NodeView): boolean {
  return findNodeAgent(view) !== undefined;
}

/**
 * Returns a node type that lets an agent of a manifest execute the nodes that name one (RFC 0072 §B). Only nodes for
 * which `isMeant` is true are given to it.
 */
export function withInvocation(type: NodeType, isMeant: (view: NodeView) => boolean = () => true): NodeType {
  const settle: NodeType["settle"] = (view, effect, outcome) =>
    (isAgentInvocation(view) && isMeant(view) ? agentInvocation : type).settle?.(view, effect, outcome) ?? [];
  return {
    ...type,
    step: (view) => (isAgentInvocation(view) && isMeant(view) ? agentInvocation : type).step(view),
    settle,
  };
}

/** True unless the node brings its own tool along, or its model is played: then it is no turn of an agent. */
export function isLiveModelNode({ node, settings }: NodeView): boolean {
  return settings.play?.isModelPlayed(node) !== true && node.node.config["mcp"] === undefined;
}

export const agentNode: NodeType = withInvocation({
  check: ({ node: { id, agent, config } }) =>
    typeof (agent?.agentId ?? config["agentId"]) === "string" ? [] : [`node ${id} names no agent`],
  step: () => ({
    kind: "fail",
    error: { code: "agent_not_installed", message: "this host has no such agent" },
  }),
});

function draftInvocationEnd(
  view: NodeView,
  { invocationId, agentId }: Invocation["started"],
  end: Omit<WorkflowPayloads["agent.invocation.completed"], "invocationId" | "agentId">,
): WorkflowDraft {
  return withNodeId(view, { type: "agent.invocation.completed", payload: { invocationId, agentId, ...end } });
}

function draftInvocationStart(
  view: NodeView,
  outcome: AgentOutcome & { kind: "agent_prepared" },
): WorkflowDraft[] {
  const { started, bound, prompt, refusal } = outcome;
  const drafts: WorkflowDraft[] = [
    withNodeId(view, { type: "agent.invocation.started", payload: started }),
    withNodeId(view, { type: "coordination.agent_bound", payload: bound }),
    withNodeId(view, { type: "agent.promptResolved", payload: prompt }),
  ];
  // The invocation is not open yet where its node fails: it is closed here.
  return refusal
    ? [...drafts, draftInvocationEnd(view, started, { outcome: "failed" }), draftNodeFailed(view, refusal)]
    : drafts;
}

/** Returns an open invocation's next step: hand over, keep a note, call a tool, decide, ask a model, fail. */
function stepInvocation(view: NodeView, invocation: Invocation): NodeStep {
  const { bound, handoff } = invocation;
  if (!bound) return createBrokenStep("the invocation has no bounds");
  if (handoff) return { kind: "act", effect: createHandoffEffect(view, invocation) };
  const memoryStep = stepMemoryNote(view, invocation);
  if (memoryStep) return memoryStep;
  const handoffStep = stepAgentHandoff(view, invocation);
  if (handoffStep) return handoffStep;
  const [call] = listOpenCalls(invocation);
  if (call) return stepToolCall(view, invocation, call);
  // A branch begins between the last answer and the decision that it is.
  const final = invocation.turns.at(-1)?.final;
  if (final) return { kind: "record", drafts: draftAgentDecision(view, invocation, final) };
  const limitError = findExceededLimit(invocation);
  return limitError
    ? { kind: "fail", error: limitError }
    : { kind: "act", effect: createModelTurnEffect(view, invocation) };
}

function createBrokenStep(message: string): NodeStep {
  return { kind: "fail", error: { code: "node_broken", message } };
}

function findExceededLimit({
  turns,
  chars,
  tokens,
}: Invocation): WorkflowPayloads["node.failed"]["error"] | undefined {
  const { turnsMax, charsMax, tokensMax } = AGENT_BOUNDS;
  const describeLimit = (unit: string, most: number) => ({
    code: "agent_limit_exceeded",
    message: `the agent came to no end within ${most} ${unit}`,
    details: { limit: unit, most },
  });
  if (turns.length >= turnsMax) return describeLimit("turns", turnsMax);
  if (chars > charsMax) return describeLimit("characters", charsMax);
  return tokens > tokensMax ? describeLimit("tokens", tokensMax) : undefined;
}

function createModelTurnEffect(view: NodeView, invocation: Invocation) {
  const callsLeft = Math.max(0, AGENT_BOUNDS.toolCallsMax - countMadeCalls(invocation));
  return createAgentEffect(view, invocation, {
    ...numberNextTurn(invocation),
    kind: "ask_agent",
    messages: buildAgentMessages(invocation),
    callsLeft,
  });
}

function draftAgentTurn(view: NodeView, outcome: AgentOutcome & { kind: "agent_turned" }): WorkflowDraft[] {
  const { invocation } = view.nodeRun;
  if (!invocation) return [];
  const { invocationId, agentId } = invocation.started;
  const turn = invocation.turns.length + 1;
  const { turn: answeredTurn, reasoning, refusal } = outcome;
  const isQuiet = reasoning === "";
  const drafts: WorkflowDraft[] = [
    withNodeId(view, { type: "coordination.agent_turned", payload: { invocationId, turn, ...answeredTurn } }),
    // The protocol has reasoning ahead of the first call only.
    ...(turn === 1
      ? [
          withNodeId(view, {
            type: "agent.reasoned",
            payload: { agentId, reasoning, verbosity: isQuiet ? "off" : "full" },
          } as const),
        ]
      : []),
  ];
  if (refusal) return [...drafts, draftNodeFailed(view, refusal)];
  return answeredTurn.final
    ? [...drafts, ...draftAgentDecision(view, invocation, answeredTurn.final)]
    : drafts;
}

function draftAgentDecision(
  view: NodeView,
  { started, bound }: Invocation,
  {
    confidence,
    schemaValidated,
  }: { readonly confidence?: number | undefined; readonly schemaValidated?: boolean | undefined },
): WorkflowDraft[] {
  const isDoubted = confidence !== undefined && bound !== undefined && confidence < bound.threshold;
  const stated = { ...(confidence !== undefined && { confidence }) };
  return [
    withNodeId(view, {
      type: "agent.decided",
      payload: { agentId: started.agentId, decision: { kind: "result" }, ...stated },
    }),
    draftInvocationEnd(view, started, {
      outcome: isDoubted ? "escalated" : "completed",
      ...stated,
      ...(schemaValidated !== undefined && { schemaValidated }),
    }),
  ];
}

function stepToolCall(view: NodeView, invocation: Invocation, call: AskedCall): NodeStep {
  const tool = findBoundTool(invocation, call);
  if (!tool) return createBrokenStep("a call of a tool that was not bound");
  if (invocation.called.has(call.callId))
    return {
      kind: "act",
      effect: createAgentEffect(view, invocation, {
        id: `call:${call.callId}`,
        kind: "call_agent_tool",
        call,
        tool,
      }),
    };
  const payload = {
    agentId: invocation.started.agentId,
    toolName: call.toolName,
    callId: call.callId,
    argsHash: call.argsHash,
    principal: view.run.started.owner.principal,
    transport: tool.transport,
  };
  return { kind: "record", drafts: [withNodeId(view, { type: "agent.toolCalled", payload } as const)] };
}

function findBoundTool({ bound }: Invocation, { toolName }: AskedCall): BoundTool | undefined {
  return findCalledTool(bound?.tools ?? [], toolName);
}

function draftToolReturned(
  view: NodeView,
  { call }: { readonly call: AskedCall },
  { returned: back }: AgentOutcome & { kind: "agent_tool_returned" },
): WorkflowDraft {
  const { toolName, callId } = call;
  const causationId = view.nodeRun.invocation?.called.get(callId);
  const agentId = view.nodeRun.invocation?.started.agentId ?? view.nodeRun.nodeId;
  return withNodeId(view, {
    type: "agent.toolReturned",
    ...(causationId && { causationId }),
    payload: { agentId, toolName, callId, ...back },
  });
}

function listSuccessfulCalls({ turns, returned: back }: Invocation, toolName: string): AskedCall[] {
  return (turns.at(-1)?.calls ?? []).filter(
    (call) => call.toolName === toolName && back.get(call.callId)?.status === "ok",
  );
}

function stepMemoryNote(view: NodeView, invocation: Invocation): NodeStep | undefined {
  const scope = invocation.bound?.memoryScope;
  // The memory outlives the run: ids of several runs are beside each other there.
  const memoryIdOf = ({ callId }: AskedCall): string => `${findLogIdentity(view.run)}:${callId}`;
  const calls = listSuccessfulCalls(invocation, MEMORY_WRITE).filter(
    (each) => !view.nodeRun.memoryIds.includes(memoryIdOf(each)),
  );
  const [call] = calls;
  const note = call && readMemoryNote(call.args);
  if (!call || !note || scope === undefined) return undefined;
  const written = { scope, id: memoryIdOf(call), ...note };
  return {
    kind: "record",
    drafts: [draftMemoryWritten(view, written, invocation.started.agentId)],
    memory: [written],
  };
}

function stepAgentHandoff(view: NodeView, invocation: Invocation): NodeStep | undefined {
  const [call] = listSuccessfulCalls(invocation, HANDOFF);
  const request = call && readHandoffRequest(call.args);
  if (!request) return undefined;
  const { agentId } = invocation.started;
  const { toAgentId, reason } = request;
  const handoff = { fromAgentId: agentId, toAgentId, ...(reason !== undefined && { reason }) };
  return {
    kind: "record",
    drafts: [
      withNodeId(view, {
        type: "agent.decided",
        payload: { agentId, decision: { kind: "handoff", toAgentId } },
      } as const),
      withNodeId(view, { type: "agent.handoff", payload: handoff } as const),
    ],
  };
}

/** Creates the effect that runs the agent to which the task was handed; the end of that run is the end of the node. */
function createHandoffEffect(view: NodeView, invocation: Invocation) {
  const [call] = listSuccessfulCalls(invocation, HANDOFF);
  const request = call && readHandoffRequest(call.args);
  const toAgentId = invocation.handoff?.toAgentId ?? "";
  const { childRunId } = view.nodeRun.handoff ?? {};
  // It is an agent of this host, whatever a task names as a host.
  const { peerUrl: _, ...effect } = createChildEffect(view, {
    cause: "core.dispatch",
    workflowId: createAgentWorkflowId(toAgentId),
    inputs: wrapTaskAsInputs(request?.task ?? invocation.bound?.task),
    ordinal: `handoff:${view.nodeRun.executions}`,
    ...(childRunId !== undefined && { childRunId }),
  });
  const { source } = invocation.started;
  return { ...effect, agent: { agentId: toAgentId, source } };
}

function draftHandedOver(view: NodeView, childRunId: string): WorkflowDraft[] {
  const { invocation } = view.nodeRun;
  if (!invocation || invocation.completed || !invocation.handoff) return [];
  const childWorkflowId = createAgentWorkflowId(invocation.handoff.toAgentId);
  return [
    withNodeId(view, { type: "node.dispatched", payload: { childRunId, childWorkflowId } }),
    draftInvocationEnd(view, invocation.started, { outcome: "handed-off", enqueuedRunId: childRunId }),
  ];
}

function draftEndWithChild(
  view: NodeView,
  { status, outputs = {}, error }: EffectOutcome & { kind: "child_ended" },
): WorkflowDraft[] {
  const { nodeId, handoff } = view.nodeRun;
  if (status === "completed") {
    const childRunId = handoff?.childRunId;
    const all = { ...outputs, ...(childRunId !== undefined && { childRunId }) };
    return [{ type: "node.completed", nodeId, payload: { nodeId, outputs: all } }];
  }
  const code = error?.code ?? `child_${status}`;
  return [
    draftNodeFailed(view, {
      code,
      message: `the agent that the task was handed to ${describeUnsuccessfulEnd(status)}`,
    }),
  ];
}

/** Returns how the node ends, or goes on, once its agent's invocation has ended. */
function stepAfterInvocation(
  view: NodeView,
  invocation: Invocation,
  { outcome }: WorkflowPayloads["agent.invocation.completed"],
): NodeStep {
  switch (outcome) {
    case "handed-off":
      return { kind: "act", effect: createHandoffEffect(view, invocation) };
    case "escalated":
      return stepDoubtedDecision(view, invocation);
    case "completed":
      return { kind: "complete", outputs: createInvocationOutputs(invocation) };
    default:
      return createBrokenStep("the invocation ended, and its node did not");
  }
}

function createInvocationOutputs({ turns, started: { agentId } }: Invocation) {
  return { result: turns.at(-1)?.final?.result, agentId, contentTrust: "untrusted" };
}

/** Asks people about a decision that the agent itself doubts, waits, and applies their ruling (RFC 0002 §F). */
function stepDoubtedDecision(view: NodeView, invocation: Invocation): NodeStep {
  const answer = view.nodeRun.answers.at(-1);
  if (!answer && view.nodeRun.interrupt) return { kind: "wait" };
  if (answer) return createStepAfterRuling(invocation, answer.resumeValue);
  const { agentId } = invocation.started;
  const observed = invocation.completed?.confidence ?? 0;
  const threshold = invocation.bound?.threshold ?? 1;
  const { result } = createInvocationOutputs(invocation);
  const measured = { reason: "low-confidence", agentId, threshold, observed };
  const data = { agentId, threshold, observed, decision: { kind: "result", result } };
  return { kind: "suspend", interrupt: { kind: "low-confidence", data, ...measured } };
}

function createStepAfterRuling(invocation: Invocation, resumeValue: unknown): NodeStep {
  return isAgreedAnswer({ resumeValue })
    ? { kind: "complete", outputs: createInvocationOutputs(invocation) }
    : { kind: "fail", error: { code: "low_confidence_rejected", message: "the decision was not accepted" } };
}
