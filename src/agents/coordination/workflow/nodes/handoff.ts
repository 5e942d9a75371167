/** Owns: how a node hands work over to a child run and takes it back: the handoff state machine (RFC 0037). */
import type { EventId } from "../../contracts/ids.ts";
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import {
  computeDraftEventId,
  withNodeId,
  type ChildEffect,
  type EffectOutcome,
  type NodeStep,
  type NodeView,
} from "../node-contract/node-type.ts";
import { findLogIdentity, type Handoff } from "../state/workflow-state.ts";
import type { Values } from "../state/values.ts";
import { readNodeGate, draftHarvestEvent, settleGate, stepGate, type GatePlace } from "./child-gate.ts";
import {
  createChildEffect,
  draftChildGaveUp,
  draftHarvestedChanges,
  mapChildInputs,
  type NameMapping,
} from "./child-run.ts";
import { draftExceededLoopLimit } from "./loop-limit.ts";

/** Inputs handed to a worker, and outputs that come back. */
export interface HandoffTerms {
  readonly cause: ChildEffect["cause"];
  readonly inputMapping: NameMapping;
  readonly outputMapping: NameMapping;
  /** Tells the worker from all others that the node hands work to; a worker that is sent back adds to it. */
  readonly ordinal: string;
  /** The event because of which the worker begins. */
  readonly causationId?: EventId;
}

/** Returns the node's step that records that the work is handed to a worker. */
export function createHandoffBeginStep(
  view: NodeView,
  workerId: string,
  { causationId }: HandoffTerms,
): NodeStep {
  const began = withNodeId(view, {
    type: "core.workflowChain.event",
    ...(causationId && { causationId }),
    payload: { phase: "dispatch.began", workerId, parentRunId: findLogIdentity(view.run) },
  } as const);
  return { kind: "record", drafts: [began] };
}

/**
 * Returns the node's next step for a worker that it handed work to: to run it, or what its gate asks for; `undefined`
 * when nothing is left to do.
 */
export function stepHandoff(view: NodeView, handoff: Handoff, handover: HandoffTerms): NodeStep | undefined {
  switch (handoff.phase) {
    case "dispatching":
    case "running":
      return { kind: "act", effect: createWorkerEffect(view, handoff, handover) };
    case "ended":
      return stepGate(view, handoff, createGatePlace(view, handoff, handover));
    case "harvested":
      return undefined;
  }
}

function createHandoffOrdinal({ revision }: Handoff, { ordinal }: HandoffTerms): string {
  return revision === 0 ? ordinal : `${ordinal}:r${revision}`;
}

function createGatePlace(view: NodeView, handoff: Handoff, handover: HandoffTerms): GatePlace {
  return {
    outputMapping: handover.outputMapping,
    ordinal: createHandoffOrdinal(handoff, handover),
    again: () => stepRevision(view, handoff, handover),
  };
}

/** Returns the step with which the worker begins again, or the run ends at the loop's limit (RFC 0090 §B). */
function stepRevision(view: NodeView, { workerId }: Handoff, handover: HandoffTerms): NodeStep {
  const capped = draftExceededLoopLimit(view);
  return capped ? { kind: "end", drafts: capped } : createHandoffBeginStep(view, workerId, handover);
}

function createWorkerEffect(view: NodeView, handoff: Handoff, handover: HandoffTerms) {
  const { workerId, childRunId } = handoff;
  const principalScope = readNodeGate(view.node)?.attestation?.principalScope;
  return createChildEffect(view, {
    cause: handover.cause,
    workflowId: workerId,
    inputs: { ...mapChildInputs(view, handover.inputMapping), ...createRevisionInputs(view, handoff) },
    ordinal: createHandoffOrdinal(handoff, handover),
    ...(childRunId !== undefined && { childRunId }),
    ...(principalScope && { principalScope }),
  });
}

/** Returns the input that tells a worker which is sent back the keys of what it did not meet. */
function createRevisionInputs({ node }: NodeView, { revision, unmet }: Handoff): Values {
  const name = readNodeGate(node)?.verifier?.revisionInput;
  return revision > 0 && name !== undefined ? { [name]: unmet } : {};
}

/**
 * Drafts what the outcome of an effect brings to work that was handed over: the child's start, its failure, its end,
 * or the judgement on it; empty where it brings nothing.
 */
export function settleHandoff(
  view: NodeView,
  handoff: Handoff,
  handover: HandoffTerms,
  outcome: EffectOutcome,
): readonly WorkflowDraft[] {
  const { phase } = handoff;
  if (phase === "ended") return settleGate(view, handoff, createGatePlace(view, handoff, handover), outcome);
  if (phase === "harvested") return [];
  switch (outcome.kind) {
    case "child_created":
      return phase === "running" ? [] : draftChildCreated(view, handoff, handover, outcome.childRunId);
    case "child_refused":
    case "failed":
      return [
        draftChainEvent(view, handoff, {
          phase: phase === "dispatching" ? "dispatch.failed" : "child.failed",
          error: outcome.error,
        }),
      ];
    case "child_ended":
      return draftChildEnded(view, handoff, handover, outcome);
    default:
      return [];
  }
}

function draftChildCreated(
  view: NodeView,
  handoff: Handoff,
  { causationId }: HandoffTerms,
  childRunId: string,
): WorkflowDraft[] {
  return [
    withNodeId(view, {
      type: "node.dispatched",
      ...(causationId && { causationId }),
      payload: { childRunId, childWorkflowId: handoff.workerId },
    }),
    draftChainEvent(view, { ...handoff, childRunId }, { phase: "dispatch.succeeded" }),
  ];
}

/** Drafts the end of a child. Results behind a gate are merged only when the gate has ruled. */
function draftChildEnded(
  view: NodeView,
  handoff: Handoff,
  { outputMapping }: HandoffTerms,
  outcome: EffectOutcome & { kind: "child_ended" },
): WorkflowDraft[] {
  const { status, variables, error } = outcome;
  const chainEvent = draftChainEvent(view, handoff, { phase: `child.${status}`, ...(error && { error }) });
  const isMerged =
    status === "completed" && !readNodeGate(view.node) && Object.keys(outputMapping).length > 0;
  const gaveUp = draftChildGaveUp(view, handoff.childRunId, outcome);
  if (!isMerged) return [chainEvent, ...gaveUp];
  const changes = draftHarvestedChanges(view, outputMapping, variables);
  const keys = changes.map(({ payload: { name } }) => name);
  return [
    chainEvent,
    ...gaveUp,
    ...changes,
    draftHarvestEvent(view, handoff, { keys, causationId: computeDraftEventId(view, 0) }),
  ];
}

/** The payload of the event that tells the phase of a handoff. */
type WorkflowChainPayload = Extract<WorkflowDraft, { type: "core.workflowChain.event" }>["payload"];

/** Drafts the next phase of a handoff, caused by the one before it (RFC 0037). */
function draftChainEvent(
  view: NodeView,
  { workerId, childRunId, chainEventId }: Handoff,
  phase: Pick<WorkflowChainPayload, "phase" | "error">,
): WorkflowDraft {
  return withNodeId(view, {
    type: "core.workflowChain.event",
    causationId: chainEventId,
    payload: {
      ...phase,
      workerId,
      parentRunId: findLogIdentity(view.run),
      ...(childRunId !== undefined && phase.phase !== "dispatch.failed" && { childRunId }),
    },
  });
}
