/**
 * Owns: a node that an agent of a manifest executes (RFC 0077): preparing, turns and tool calls, handing over, the end.
 *
 * The order of events is that of the protocol: started, promptResolved, reasoned, (toolCalled toolReturned)*, decided, handoff,
 * completed. What the model says in later turns is in `coordination.agent_turned` only. I1 to I3 are those of `invocation.ts`.
 */
import { AGENT_BOUNDS } from "../../contracts/workflows/agent-manifest.ts";
import { type AskedCall, type BoundTool } from "../../contracts/workflows/agent-events.ts";
import {
  REFUSED,
  type WorkflowDraft,
  type WorkflowPayloads,
} from "../../contracts/workflows/workflow-events.ts";
import type { AgentOutcome } from "../node-contract/agent-effects.ts";
import {
  asInputs,
  HANDOFF,
  handoffIn,
  MEMORY_WRITE,
  noteIn,
  toolCalled,
  workflowIdOf,
} from "../node-contract/agent-tools.ts";
import { callsMade, openCalls, type Invocation } from "../state/invocation.ts";
import {
  of,
  type EffectOutcome,
  type NodeStep,
  type NodeType,
  type NodeView,
} from "../node-contract/node-type.ts";
import { isAgreed } from "../state/review.ts";
import { messagesOf } from "./agent-messages.ts";
import { agentEffect, asksOf, agentOf, prepareEffect } from "./agent-node.ts";
import { identityOf } from "../state/workflow-state.ts";
import { childEffect } from "./child-run.ts";
import { failed } from "./ends.ts";

export const agentInvocation: NodeType = {
  step: (view) => {
    const { invocation } = view.own;
    if (!invocation) return { kind: "act", effect: prepareEffect(view) };
    if (invocation.completed) return ended(view, invocation, invocation.completed);
    return goOn(view, invocation);
  },
  settle: (view, effect, outcome) => {
    switch (outcome.kind) {
      case "agent_prepared":
        return prepared(view, outcome);
      case "agent_turned":
        return turned(view, outcome);
      case "agent_tool_returned":
        return effect.kind === "call_agent_tool" ? [returned(view, effect, outcome)] : [];
      case "model_refused":
        return [failed(view, { code: REFUSED, message: "the model refused to answer" })];
      case "failed":
      case "child_refused":
        return [failed(view, outcome.error)];
      case "child_created":
        return handedOver(view, outcome.childRunId);
      case "child_ended":
        return childEnded(view, outcome);
      default:
        return [];
    }
  },
};

/** Whether the node is one of an agent that the run knows by its manifest. */
export function isInvocation(view: NodeView): boolean {
  return agentOf(view) !== undefined;
}

/** A node of another type whose agent is one of a manifest is that agent's to execute (RFC 0072 §B). */
export function invoking(type: NodeType, isMeant: (view: NodeView) => boolean = () => true): NodeType {
  const settle: NodeType["settle"] = (view, effect, outcome) =>
    (isInvocation(view) && isMeant(view) ? agentInvocation : type).settle?.(view, effect, outcome) ?? [];
  return {
    ...type,
    step: (view) => (isInvocation(view) && isMeant(view) ? agentInvocation : type).step(view),
    settle,
  };
}

/** A node that brings its own tool or mock model along is no turn of an agent. */
export function isLive({ node: { node } }: NodeView): boolean {
  return node.config["provider"] !== "mock" && node.config["mcp"] === undefined;
}

export const agentNode: NodeType = {
  check: ({ node: { id, agent, config } }) =>
    typeof (agent?.agentId ?? config["agentId"]) === "string" ? [] : [`node ${id} names no agent`],
  step: (view) =>
    isInvocation(view)
      ? agentInvocation.step(view)
      : { kind: "fail", error: { code: "agent_not_installed", message: "this host has no such agent" } },
  settle: (view, effect, outcome) => agentInvocation.settle?.(view, effect, outcome) ?? [],
};

function completing(
  view: NodeView,
  { invocationId, agentId }: Invocation["started"],
  end: Omit<WorkflowPayloads["agent.invocation.completed"], "invocationId" | "agentId">,
): WorkflowDraft {
  return of(view, { type: "agent.invocation.completed", payload: { invocationId, agentId, ...end } });
}

function prepared(view: NodeView, outcome: AgentOutcome & { kind: "agent_prepared" }): WorkflowDraft[] {
  const { started, bound, prompt, refusal } = outcome;
  const drafts: WorkflowDraft[] = [
    of(view, { type: "agent.invocation.started", payload: started }),
    of(view, { type: "coordination.agent_bound", payload: bound }),
    of(view, { type: "agent.promptResolved", payload: prompt }),
  ];
  // The invocation is not open yet where its node fails: it is closed here.
  return refusal
    ? [...drafts, completing(view, started, { outcome: "failed" }), failed(view, refusal)]
    : drafts;
}

function goOn(view: NodeView, invocation: Invocation): NodeStep {
  const { bound, handoff } = invocation;
  if (!bound) return broken("the invocation has no bounds");
  if (handoff) return { kind: "act", effect: handoffEffect(view, invocation) };
  const kept = keeping(view, invocation);
  if (kept) return kept;
  const handing = handingOver(view, invocation);
  if (handing) return handing;
  const [call] = openCalls(invocation);
  if (call) return calling(view, invocation, call);
  const over = overLimit(invocation);
  return over ? { kind: "fail", error: over } : { kind: "act", effect: asking(view, invocation) };
}

function broken(message: string): NodeStep {
  return { kind: "fail", error: { code: "node_broken", message } };
}

function overLimit({
  turns,
  chars,
  tokens,
}: Invocation): WorkflowPayloads["node.failed"]["error"] | undefined {
  const { turnsMax, charsMax, tokensMax } = AGENT_BOUNDS;
  const said = (what: string, most: number) => ({
    code: "agent_limit_exceeded",
    message: `the agent came to no end within ${most} ${what}`,
    details: { limit: what, most },
  });
  if (turns.length >= turnsMax) return said("turns", turnsMax);
  if (chars > charsMax) return said("characters", charsMax);
  return tokens > tokensMax ? said("tokens", tokensMax) : undefined;
}

function asking(view: NodeView, invocation: Invocation) {
  const callsLeft = Math.max(0, AGENT_BOUNDS.toolCallsMax - callsMade(invocation));
  return agentEffect(view, invocation, {
    ...asksOf(invocation),
    kind: "ask_agent",
    messages: messagesOf(invocation),
    callsLeft,
  });
}

function turned(view: NodeView, outcome: AgentOutcome & { kind: "agent_turned" }): WorkflowDraft[] {
  const { invocation } = view.own;
  if (!invocation) return [];
  const { invocationId, agentId } = invocation.started;
  const turn = invocation.turns.length + 1;
  const { turn: said, reasoning, refusal } = outcome;
  const isQuiet = reasoning === "";
  const drafts: WorkflowDraft[] = [
    of(view, { type: "coordination.agent_turned", payload: { invocationId, turn, ...said } }),
    // The protocol has reasoning ahead of the first call only.
    ...(turn === 1
      ? [
          of(view, {
            type: "agent.reasoned",
            payload: { agentId, reasoning, verbosity: isQuiet ? "off" : "full" },
          } as const),
        ]
      : []),
  ];
  if (refusal) return [...drafts, failed(view, refusal)];
  return said.final ? [...drafts, ...decided(view, invocation, said.final)] : drafts;
}

function decided(
  view: NodeView,
  { started, bound }: Invocation,
  {
    confidence,
    schemaValidated,
  }: { readonly confidence?: number | undefined; readonly schemaValidated?: boolean | undefined },
): WorkflowDraft[] {
  const isDoubted = confidence !== undefined && bound !== undefined && confidence < bound.threshold;
  const sure = { ...(confidence !== undefined && { confidence }) };
  return [
    of(view, {
      type: "agent.decided",
      payload: { agentId: started.agentId, decision: { kind: "result" }, ...sure },
    }),
    completing(view, started, {
      outcome: isDoubted ? "escalated" : "completed",
      ...sure,
      ...(schemaValidated !== undefined && { schemaValidated }),
    }),
  ];
}

/** What the model asked for, one call after the other: begun in the log, then made. */
function calling(view: NodeView, invocation: Invocation, call: AskedCall): NodeStep {
  const tool = toolOf(invocation, call);
  if (!tool) return broken("a call of a tool that was not bound");
  if (invocation.called.has(call.callId))
    return {
      kind: "act",
      effect: agentEffect(view, invocation, {
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
  return { kind: "record", drafts: [of(view, { type: "agent.toolCalled", payload } as const)] };
}

function toolOf({ bound }: Invocation, { toolName }: AskedCall): BoundTool | undefined {
  return toolCalled(bound?.tools ?? [], toolName);
}

function returned(
  view: NodeView,
  { call }: { readonly call: AskedCall },
  { returned: back }: AgentOutcome & { kind: "agent_tool_returned" },
): WorkflowDraft {
  const { toolName, callId } = call;
  const causationId = view.own.invocation?.called.get(callId);
  const agentId = view.own.invocation?.started.agentId ?? view.own.nodeId;
  return of(view, {
    type: "agent.toolReturned",
    ...(causationId && { causationId }),
    payload: { agentId, toolName, callId, ...back },
  });
}

/** The newest turn's calls of one tool that were made and came back well. */
function granted({ turns, returned: back }: Invocation, toolName: string): AskedCall[] {
  return (turns.at(-1)?.calls ?? []).filter(
    (call) => call.toolName === toolName && back.get(call.callId)?.status === "ok",
  );
}

/** What the agent was let keep, each once: in one transaction with the event that tells of it. */
function keeping(view: NodeView, invocation: Invocation): NodeStep | undefined {
  const scope = invocation.bound?.memoryScope;
  // The memory outlives the run: ids of several runs are beside each other there.
  const memoryIdOf = ({ callId }: AskedCall): string => `${identityOf(view.run)}:${callId}`;
  const calls = granted(invocation, MEMORY_WRITE).filter(
    (each) => !view.own.memoryIds.includes(memoryIdOf(each)),
  );
  const [call] = calls;
  const note = call && noteIn(call.args);
  if (!call || !note || scope === undefined) return undefined;
  const { agentId } = invocation.started;
  const memoryId = memoryIdOf(call);
  const payload = {
    memoryRef: scope,
    memoryId,
    nodeId: view.own.nodeId,
    agentId,
    ...(note.tags.length > 0 && { tags: note.tags }),
  };
  return {
    kind: "record",
    drafts: [of(view, { type: "memory.written", payload } as const)],
    memory: [{ scope, id: memoryId, ...note }],
  };
}

function handingOver(view: NodeView, invocation: Invocation): NodeStep | undefined {
  const [call] = granted(invocation, HANDOFF);
  const asked = call && handoffIn(call.args);
  if (!asked) return undefined;
  const { agentId } = invocation.started;
  const { toAgentId, reason } = asked;
  const handoff = { fromAgentId: agentId, toAgentId, ...(reason !== undefined && { reason }) };
  return {
    kind: "record",
    drafts: [
      of(view, {
        type: "agent.decided",
        payload: { agentId, decision: { kind: "handoff", toAgentId } },
      } as const),
      of(view, { type: "agent.handoff", payload: handoff } as const),
    ],
  };
}

/** The other agent's run, of which this one's end is that of the node. */
function handoffEffect(view: NodeView, invocation: Invocation) {
  const [call] = granted(invocation, HANDOFF);
  const asked = call && handoffIn(call.args);
  const toAgentId = invocation.handoff?.toAgentId ?? "";
  const { childRunId } = view.own.handoff ?? {};
  // It is an agent of this host, whatever a task names as a host.
  const { peerUrl: _, ...effect } = childEffect(view, {
    cause: "core.dispatch",
    workflowId: workflowIdOf(toAgentId),
    inputs: asInputs(asked?.task ?? invocation.bound?.task),
    ordinal: `handoff:${view.own.executions}`,
    ...(childRunId !== undefined && { childRunId }),
  });
  const { source } = invocation.started;
  return { ...effect, agent: { agentId: toAgentId, source } };
}

function handedOver(view: NodeView, childRunId: string): WorkflowDraft[] {
  const { invocation } = view.own;
  if (!invocation || invocation.completed || !invocation.handoff) return [];
  const childWorkflowId = workflowIdOf(invocation.handoff.toAgentId);
  return [
    of(view, { type: "node.dispatched", payload: { childRunId, childWorkflowId } }),
    completing(view, invocation.started, { outcome: "handed-off", enqueuedRunId: childRunId }),
  ];
}

function childEnded(
  view: NodeView,
  { status, outputs = {}, error }: EffectOutcome & { kind: "child_ended" },
): WorkflowDraft[] {
  const { nodeId, handoff } = view.own;
  if (status === "completed") {
    const childRunId = handoff?.childRunId;
    const all = { ...outputs, ...(childRunId !== undefined && { childRunId }) };
    return [{ type: "node.completed", nodeId, payload: { nodeId, outputs: all } }];
  }
  const code = error?.code ?? `child_${status}`;
  return [failed(view, { code, message: `the agent that the task was handed to ${status}` })];
}

/** The agent is done, and the node follows. */
function ended(
  view: NodeView,
  invocation: Invocation,
  { outcome }: WorkflowPayloads["agent.invocation.completed"],
): NodeStep {
  switch (outcome) {
    case "handed-off":
      return { kind: "act", effect: handoffEffect(view, invocation) };
    case "escalated":
      return ratified(view, invocation);
    case "completed":
      return { kind: "complete", outputs: outputsOf(invocation) };
    default:
      return broken("the invocation ended, and its node did not");
  }
}

function outputsOf({ turns, started: { agentId } }: Invocation) {
  return { result: turns.at(-1)?.final?.result, agentId, contentTrust: "untrusted" };
}

/** RFC 0002 §F: what the agent itself doubts counts when people agree. */
function ratified(view: NodeView, invocation: Invocation): NodeStep {
  const answer = view.own.answers.at(-1);
  if (!answer && view.own.interrupt) return { kind: "wait" };
  if (answer) return ruledOn(invocation, answer.resumeValue);
  const { agentId } = invocation.started;
  const observed = invocation.completed?.confidence ?? 0;
  const threshold = invocation.bound?.threshold ?? 1;
  const { result } = outputsOf(invocation);
  const measured = { reason: "low-confidence", agentId, threshold, observed };
  const data = { agentId, threshold, observed, decision: { kind: "result", result } };
  return { kind: "suspend", interrupt: { kind: "low-confidence", data, ...measured } };
}

function ruledOn(invocation: Invocation, resumeValue: unknown): NodeStep {
  return isAgreed({ resumeValue })
    ? { kind: "complete", outputs: outputsOf(invocation) }
    : { kind: "fail", error: { code: "low_confidence_rejected", message: "the decision was not accepted" } };
}
