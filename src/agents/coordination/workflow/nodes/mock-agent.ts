/** Owns: `core.conformance.mock-agent` (RFC 0023): an agent whose reasoning, tool calls, handoff and decision are scripted. */
import type { EventId } from "../../contracts/ids.ts";
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import {
  agentIdOf,
  idOfDraft,
  of,
  type NodeStep,
  type NodeType,
  type NodeView,
} from "../node-contract/node-type.ts";
import { isAgreed } from "../state/review.ts";
import { isRecord, type Values } from "../state/values.ts";

export const mockAgent: NodeType = {
  step: (view) => {
    const answer = view.own.answers.at(-1);
    if (answer) return settled(answer.resumeValue);
    if (view.own.interrupt) return { kind: "wait" };
    const decided = decision(view);
    const reasoned = reasoning(view);
    const drafts = [
      ...reasoned,
      ...toolCalls(view, reasoned.length),
      ...handoff(view),
      ...(decided ? [decided.draft] : []),
    ];
    if (decided?.observed !== undefined) return doubted(view, drafts, decided.observed);
    return { kind: "complete", outputs: {}, before: drafts };
  },
};

/** RFC 0002 §F: the threshold of the run, else of the host. */
export function thresholdOf({ run, settings }: NodeView): number {
  const own = run.started.configurable?.["escalationThreshold"];
  return typeof own === "number" && own >= 0 && own <= 1 ? own : settings.escalationThreshold;
}

export function doubted(
  view: NodeView,
  before: readonly WorkflowDraft[],
  observed: number,
  decision?: unknown,
): NodeStep {
  const agentId = agentIdOf(view);
  const threshold = thresholdOf(view);
  const data = { agentId, threshold, observed, ...(decision !== undefined && { decision }) };
  return {
    kind: "suspend",
    before,
    interrupt: { kind: "low-confidence", data, reason: "low-confidence", agentId, threshold, observed },
  };
}

function settled(resumeValue: unknown): NodeStep {
  return isAgreed({ resumeValue })
    ? { kind: "complete", outputs: {} }
    : { kind: "fail", error: { code: "low_confidence_rejected", message: "the decision was not accepted" } };
}

function reasoning(view: NodeView): WorkflowDraft[] {
  const { mockReasoning } = view.node.node.config;
  const verbosity = verbosityOf(view);
  if (mockReasoning === undefined || mockReasoning === false || verbosity === "off") return [];
  const agentId = agentIdOf(view);
  const { summary = "reasoned", streamChunks } = isRecord(mockReasoning) ? mockReasoning : {};
  const chunks = Array.isArray(streamChunks) ? streamChunks.map(String) : [];
  const deltas = chunks.map((delta, sequence): WorkflowDraft =>
    of(view, { type: "agent.reasoning.delta", payload: { agentId, delta, sequence, verbosity } }),
  );
  const whole = chunks.length > 0 ? chunks.join("") : String(summary);
  return [...deltas, of(view, { type: "agent.reasoned", payload: { agentId, reasoning: whole, verbosity } })];
}

function verbosityOf({ run }: NodeView): "summary" | "full" | "off" {
  const asked = run.started.configurable?.["reasoningVerbosity"];
  return asked === "summary" || asked === "off" ? asked : "full";
}

/** `before`: drafts ahead of the first call. */
function toolCalls(view: NodeView, before: number): WorkflowDraft[] {
  const { mockToolCalls } = view.node.node.config;
  const calls: readonly unknown[] = Array.isArray(mockToolCalls) ? mockToolCalls : [];
  return calls.filter(isRecord).flatMap((call, index) => {
    const causationId = idOfDraft(view, before + 2 * index);
    return toolCall(view, call, { index, causationId });
  });
}

interface CallPlace {
  readonly index: number;
  /** Of the call, which its return follows from. */
  readonly causationId: EventId;
}

function toolCall(view: NodeView, call: Values, { index, causationId }: CallPlace): WorkflowDraft[] {
  const { toolId, arguments: inputs, result, error, durationMs } = call;
  const names = {
    agentId: agentIdOf(view),
    toolName: String(toolId),
    callId: `${view.own.nodeId}:${view.own.executions}:${index}`,
  };
  const failure = isRecord(error) && {
    error: { code: String(error["error"]), message: String(error["message"]) },
  };
  return [
    of(view, { type: "agent.toolCalled", payload: { ...names, ...(inputs !== undefined && { inputs }) } }),
    of(view, {
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

function handoff(view: NodeView): WorkflowDraft[] {
  const { mockHandoff } = view.node.node.config;
  if (!isRecord(mockHandoff)) return [];
  const { toAgentId, reason } = mockHandoff;
  return [
    of(view, {
      type: "agent.handoff",
      payload: {
        fromAgentId: agentIdOf(view),
        toAgentId: String(toAgentId),
        ...(typeof reason === "string" && { reason }),
      },
    }),
  ];
}

/** `observed`: the confidence, where it is below the threshold. */
function decision(view: NodeView): { readonly draft: WorkflowDraft; readonly observed?: number } | undefined {
  const { mockDecision, mockConfidence } = view.node.node.config;
  const scripted = isRecord(mockDecision) ? mockDecision : undefined;
  const confidence = shareOf(scripted ? scripted["confidence"] : mockConfidence);
  if (!scripted && confidence === undefined) return undefined;
  const draft = of(view, {
    type: "agent.decided",
    payload: {
      agentId: agentIdOf(view),
      decision: scripted ? (scripted["decision"] ?? null) : { kind: "scripted" },
      ...(confidence !== undefined && { confidence }),
    },
  } as const);
  const isLow = confidence !== undefined && confidence < thresholdOf(view);
  return { draft, ...(isLow && { observed: confidence }) };
}

function shareOf(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 && value <= 1 ? value : undefined;
}
