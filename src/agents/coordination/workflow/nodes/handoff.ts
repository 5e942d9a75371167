/** Owns: how a node hands work over to a child run and takes it back: the handoff state machine (RFC 0037). */
import type { EventId } from "../../contracts/ids.ts";
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import {
  draftIdOf,
  withNodeId,
  type ChildEffect,
  type EffectOutcome,
  type NodeStep,
  type NodeView,
} from "../node-contract/node-type.ts";
import { identityOf, type Handoff } from "../state/workflow-state.ts";
import type { Values } from "../state/values.ts";
import { gateOf, draftHarvested, settleGate, stepGate, type GatePlace } from "./child-gate.ts";
import { createChildEffect, draftGivenUp, harvest, mapInputs, type Mapping } from "./child-run.ts";
import { draftLoopLimit } from "./loop-limit.ts";

/** Inputs handed to a worker, and outputs that come back. */
export interface Handover {
  readonly cause: ChildEffect["cause"];
  readonly inputMapping: Mapping;
  readonly outputMapping: Mapping;
  /** Tells the worker from all others that the node hands work to; a worker that is sent back adds to it. */
  readonly ordinal: string;
  /** The event because of which the worker begins. */
  readonly causationId?: EventId;
}

export function beginHandoff(view: NodeView, workerId: string, { causationId }: Handover): NodeStep {
  const began = withNodeId(view, {
    type: "core.workflowChain.event",
    ...(causationId && { causationId }),
    payload: { phase: "dispatch.began", workerId, parentRunId: identityOf(view.run) },
  } as const);
  return { kind: "record", drafts: [began] };
}

/** Returns the next step for a worker that has begun; `undefined` when it is over. */
export function stepHandoff(view: NodeView, handoff: Handoff, handover: Handover): NodeStep | undefined {
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

function ordinalOf({ revision }: Handoff, { ordinal }: Handover): string {
  return revision === 0 ? ordinal : `${ordinal}:r${revision}`;
}

function createGatePlace(view: NodeView, handoff: Handoff, handover: Handover): GatePlace {
  return {
    outputMapping: handover.outputMapping,
    ordinal: ordinalOf(handoff, handover),
    again: () => sendBack(view, handoff, handover),
  };
}

/** RFC 0090 §B: another turn of the actor, which counts as one of the loop. */
function sendBack(view: NodeView, { workerId }: Handoff, handover: Handover): NodeStep {
  const capped = draftLoopLimit(view);
  return capped ? { kind: "end", drafts: capped } : beginHandoff(view, workerId, handover);
}

function createWorkerEffect(view: NodeView, handoff: Handoff, handover: Handover) {
  const { workerId, childRunId } = handoff;
  const principalScope = gateOf(view.node)?.attestation?.principalScope;
  return createChildEffect(view, {
    cause: handover.cause,
    workflowId: workerId,
    inputs: { ...mapInputs(view, handover.inputMapping), ...toRevise(view, handoff) },
    ordinal: ordinalOf(handoff, handover),
    ...(childRunId !== undefined && { childRunId }),
    ...(principalScope && { principalScope }),
  });
}

/** A worker that is sent back learns the keys of what it did not meet. */
function toRevise({ node }: NodeView, { revision, unmet }: Handoff): Values {
  const name = gateOf(node)?.verifier?.revisionInput;
  return revision > 0 && name !== undefined ? { [name]: unmet } : {};
}

export function settleHandoff(
  view: NodeView,
  handoff: Handoff,
  handover: Handover,
  outcome: EffectOutcome,
): readonly WorkflowDraft[] {
  const { phase } = handoff;
  if (phase === "ended") return settleGate(view, handoff, createGatePlace(view, handoff, handover), outcome);
  if (phase === "harvested") return [];
  switch (outcome.kind) {
    case "child_created":
      return phase === "running" ? [] : draftCreated(view, handoff, handover, outcome.childRunId);
    case "child_refused":
    case "failed":
      return [
        chain(view, handoff, {
          phase: phase === "dispatching" ? "dispatch.failed" : "child.failed",
          error: outcome.error,
        }),
      ];
    case "child_ended":
      return draftEnded(view, handoff, handover, outcome);
    default:
      return [];
  }
}

function draftCreated(
  view: NodeView,
  handoff: Handoff,
  { causationId }: Handover,
  childRunId: string,
): WorkflowDraft[] {
  return [
    withNodeId(view, {
      type: "node.dispatched",
      ...(causationId && { causationId }),
      payload: { childRunId, childWorkflowId: handoff.workerId },
    }),
    chain(view, { ...handoff, childRunId }, { phase: "dispatch.succeeded" }),
  ];
}

/** Drafts the end of a child. Results behind a gate are merged only when the gate has ruled. */
function draftEnded(
  view: NodeView,
  handoff: Handoff,
  { outputMapping }: Handover,
  outcome: EffectOutcome & { kind: "child_ended" },
): WorkflowDraft[] {
  const { status, variables, error } = outcome;
  const chainEvent = chain(view, handoff, { phase: `child.${status}`, ...(error && { error }) });
  const isMerged = status === "completed" && !gateOf(view.node) && Object.keys(outputMapping).length > 0;
  const gaveUp = draftGivenUp(view, handoff.childRunId, outcome);
  if (!isMerged) return [chainEvent, ...gaveUp];
  const changes = harvest(view, outputMapping, variables);
  const keys = changes.map(({ payload: { name } }) => name);
  return [
    chainEvent,
    ...gaveUp,
    ...changes,
    draftHarvested(view, handoff, { keys, causationId: draftIdOf(view, 0) }),
  ];
}

type Phase = Extract<WorkflowDraft, { type: "core.workflowChain.event" }>["payload"];

/** RFC 0037: each phase is caused by the one before it. */
function chain(
  view: NodeView,
  { workerId, childRunId, chainEventId }: Handoff,
  phase: Pick<Phase, "phase" | "error">,
): WorkflowDraft {
  return withNodeId(view, {
    type: "core.workflowChain.event",
    causationId: chainEventId,
    payload: {
      ...phase,
      workerId,
      parentRunId: identityOf(view.run),
      ...(childRunId !== undefined && phase.phase !== "dispatch.failed" && { childRunId }),
    },
  });
}
