/**
 * Owns: whether a model answered or refused, as its outcome or the log tells, and what a replay says where the two differ
 * (RFC 0041, section B). It does not own whether a model is asked again.
 */
import { REFUSED, type WorkflowDraft, type WorkflowEvent } from "../contracts/workflows/workflow-events.ts";
import type { EffectOutcome } from "./node-contract/node-type.ts";
import { draftEndByNode } from "./node-contract/run-end.ts";
import type { WorkflowRun } from "./state/workflow-state.ts";

export type EnvelopeKind = "valid" | "refusal";

/**
 * Returns whether an outcome is a model's valid answer or its refusal; `undefined` for a broken answer and for other
 * outcomes.
 */
export function classifyEnvelope(outcome: EffectOutcome): EnvelopeKind | undefined {
  if (outcome.kind === "model_refused") return "refusal";
  return outcome.kind === "model_answered" && !outcome.problems?.length ? "valid" : undefined;
}

export interface RecordedEnvelope {
  readonly kind: EnvelopeKind;
  /** The event that tells. */
  readonly event: WorkflowEvent;
}

/**
 * Returns whether the model of a node answered or refused, with the recorded event that tells; `undefined` where the
 * node was retried, cancelled or failed otherwise, or the events tell nothing.
 */
export function findRecordedEnvelope(
  nodeId: string,
  recorded: Iterable<WorkflowEvent>,
): RecordedEnvelope | undefined {
  for (const event of recorded) {
    if (event.nodeId !== nodeId) continue;
    switch (event.type) {
      case "envelope.refusal":
        return { kind: "refusal", event };
      case "node.failed":
        return event.payload.error.code === REFUSED ? { kind: "refusal", event } : undefined;
      case "node.completed":
        return { kind: "valid", event };
      case "node.retried":
      case "node.cancelled":
        return undefined;
      default:
        continue;
    }
  }
  return undefined;
}

export interface RefusalDivergence {
  readonly sourceRunId: string;
  readonly nodeId: string;
  readonly original: RecordedEnvelope;
  readonly replayed: EnvelopeKind;
}

/**
 * Drafts the end of a replay whose model refuses where it had answered, or the reverse: the divergence, then the
 * failure of the node and the run. Why the model refused is content, and not in it.
 */
export function draftDivergenceAtRefusal(run: WorkflowRun, diverged: RefusalDivergence): WorkflowDraft[] {
  const { sourceRunId, nodeId, original, replayed } = diverged;
  const { sequence: atSequence, eventId: originalEventId } = original.event;
  const error = {
    code: "replay_diverged_at_refusal",
    message:
      replayed === "refusal"
        ? "the model refused to answer what it answered before"
        : "the model answered what it refused to answer before",
  };
  return [
    {
      type: "replay.divergedAtRefusal",
      nodeId,
      payload: {
        sourceRunId,
        atSequence,
        originalEventId,
        nodeId,
        originalEnvelopeKind: original.kind,
        replayEnvelopeKind: replayed,
      },
    },
    ...draftEndByNode(run, nodeId, error),
  ];
}

/**
 * Drafts the end of a replay that would ask a model something else than the recorded answer is for: the divergence,
 * then the failure of the node and the run.
 */
export function draftDivergenceAtRequest(
  run: WorkflowRun,
  {
    sourceRunId,
    nodeId,
    event,
  }: { readonly sourceRunId: string; readonly nodeId: string; readonly event: WorkflowEvent },
): WorkflowDraft[] {
  const { sequence: atSequence, eventId: originalEventId, type: divergencePoint } = event;
  const error = { code: "replay_diverged", message: "the model would be asked something else than it was" };
  return [
    {
      type: "replay.diverged",
      nodeId,
      payload: { sourceRunId, atSequence, originalEventId, divergenceKind: "output", divergencePoint },
    },
    ...draftEndByNode(run, nodeId, error),
  ];
}
