/** Owns: `core.conformance.mock-agent` (RFC 0023): an agent whose reasoning, tool calls, handoff and decision are scripted. */
import type { EventId } from "../../../agents/coordination/contracts/ids.ts";
import type { WorkflowDraft } from "../../../agents/coordination/contracts/workflows/workflow-events.ts";
import {
  readNodeAgentId,
  computeDraftEventId,
  withNodeId,
  type NodeStep,
  type NodeType,
  type NodeView,
} from "../../../agents/coordination/workflow/node-contract/node-type.ts";
import { isAgreedAnswer } from "../../../agents/coordination/workflow/state/review.ts";
import type { Values } from "../../../agents/coordination/workflow/state/values.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";

export const mockAgent: NodeType = {
  step: (view) => {
    const answer = view.nodeRun.answers.at(-1);
    if (answer) return settleLowConfidence(answer.resumeValue);
    if (view.nodeRun.interrupt) return { kind: "wait" };
    const decided = draftDecisionEvent(view);
    const reasoned = draftReasoningEvents(view);
    const drafts = [
      ...reasoned,
      ...draftToolCallEvents(view, reasoned.length),
      ...draftHandoffEvents(view),
      ...(decided ? [decided.draft] : []),
    ];
    if (decided?.observed !== undefined) return suspendForLowConfidence(view, drafts, decided.observed);
    return { kind: "complete", outputs: {}, before: drafts };
  },
};

/**
 * Returns the confidence below which people are asked: the one that the run's options ask for, where it is from 0 to
 * 1, else the host's (RFC 0002 §F).
 */
export function readEscalationThreshold({ run, settings }: NodeView): number {
  const requested = run.started.configurable?.["escalationThreshold"];
  return typeof requested === "number" && requested >= 0 && requested <= 1
    ? requested
    : settings.escalationThreshold;
}

/**
 * Returns the step by which a node suspends to ask people, because the observed confidence is below the threshold;
 * nothing is suspended yet.
 */
export function suspendForLowConfidence(
  view: NodeView,
  before: readonly WorkflowDraft[],
  observed: number,
  decision?: unknown,
): NodeStep {
  const agentId = readNodeAgentId(view);
  const threshold = readEscalationThreshold(view);
  const data = { agentId, threshold, observed, ...(decision !== undefined && { decision }) };
  return {
    kind: "suspend",
    before,
    interrupt: { kind: "low-confidence", data, reason: "low-confidence", agentId, threshold, observed },
  };
}

/** Completes the node where people agreed, and fails it where they did not. */
function settleLowConfidence(resumeValue: unknown): NodeStep {
  return isAgreedAnswer({ resumeValue })
    ? { kind: "complete", outputs: {} }
    : { kind: "fail", error: { code: "low_confidence_rejected", message: "the decision was not accepted" } };
}

function draftReasoningEvents(view: NodeView): WorkflowDraft[] {
  const { mockReasoning } = view.node.node.config;
  const verbosity = readReasoningVerbosity(view);
  if (mockReasoning === undefined || mockReasoning === false || verbosity === "off") return [];
  const agentId = readNodeAgentId(view);
  const { summary = "reasoned", streamChunks } = isRecord(mockReasoning) ? mockReasoning : {};
  const chunks = Array.isArray(streamChunks) ? streamChunks.map(String) : [];
  const deltas = chunks.map((delta, sequence): WorkflowDraft =>
    withNodeId(view, { type: "agent.reasoning.delta", payload: { agentId, delta, sequence, verbosity } }),
  );
  const whole = chunks.length > 0 ? chunks.join("") : String(summary);
  return [
    ...deltas,
    withNodeId(view, { type: "agent.reasoned", payload: { agentId, reasoning: whole, verbosity } }),
  ];
}

function readReasoningVerbosity({ run }: NodeView): "summary" | "full" | "off" {
  const requested = run.started.configurable?.["reasoningVerbosity"];
  return requested === "summary" || requested === "off" ? requested : "full";
}

/** Drafts the events of all scripted tool calls. `before`: drafts ahead of the first call. */
function draftToolCallEvents(view: NodeView, before: number): WorkflowDraft[] {
  const { mockToolCalls } = view.node.node.config;
  const calls: readonly unknown[] = Array.isArray(mockToolCalls) ? mockToolCalls : [];
  return calls.filter(isRecord).flatMap((call, index) => {
    const causationId = computeDraftEventId(view, before + 2 * index);
    return draftOneToolCall(view, call, { index, causationId });
  });
}

interface CallPlace {
  readonly index: number;
  /** The event of the call, which its return follows from. */
  readonly causationId: EventId;
}

/** Drafts the events of one tool call: that it was made, and what it returned. */
function draftOneToolCall(view: NodeView, call: Values, { index, causationId }: CallPlace): WorkflowDraft[] {
  const { toolId, arguments: inputs, result, error, durationMs } = call;
  const names = {
    agentId: readNodeAgentId(view),
    toolName: String(toolId),
    callId: `${view.nodeRun.nodeId}:${view.nodeRun.executions}:${index}`,
  };
  const failure = isRecord(error) && {
    error: { code: String(error["error"]), message: String(error["message"]) },
  };
  return [
    withNodeId(view, {
      type: "agent.toolCalled",
      payload: { ...names, ...(inputs !== undefined && { inputs }) },
    }),
    withNodeId(view, {
      type: "agent.toolReturned",
      causationId,
      payload: {
        ...names,
        ...(failure || { outcome: result ?? null }),
        status: failure ? "error" : "ok",
        ...(typeof durationMs === "number" && { durationMs: Math.max(0, Math.floor(durationMs)) }),
      },
    }),
  ];
}

function draftHandoffEvents(view: NodeView): WorkflowDraft[] {
  const { mockHandoff } = view.node.node.config;
  if (!isRecord(mockHandoff)) return [];
  const { toAgentId, reason } = mockHandoff;
  return [
    withNodeId(view, {
      type: "agent.handoff",
      payload: {
        fromAgentId: readNodeAgentId(view),
        toAgentId: String(toAgentId),
        ...(typeof reason === "string" && { reason }),
      },
    }),
  ];
}

/**
 * Drafts the event of the scripted decision, with the confidence as `observed` where it is below the threshold;
 * `undefined` where neither a decision nor a confidence is scripted.
 */
function draftDecisionEvent(
  view: NodeView,
): { readonly draft: WorkflowDraft; readonly observed?: number } | undefined {
  const { mockDecision, mockConfidence } = view.node.node.config;
  const scripted = isRecord(mockDecision) ? mockDecision : undefined;
  const confidence = parseShare(scripted ? scripted["confidence"] : mockConfidence);
  if (!scripted && confidence === undefined) return undefined;
  const draft = withNodeId(view, {
    type: "agent.decided",
    payload: {
      agentId: readNodeAgentId(view),
      decision: scripted ? (scripted["decision"] ?? null) : { kind: "scripted" },
      ...(confidence !== undefined && { confidence }),
    },
  } as const);
  const isLow = confidence !== undefined && confidence < readEscalationThreshold(view);
  return { draft, ...(isLow && { observed: confidence }) };
}

/** Returns a number from 0 to 1 as it is; `undefined` for any other value. */
function parseShare(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 && value <= 1 ? value : undefined;
}
