/** Owns: why people are asked whether a child's outputs are merged, and what they are shown. */
import type { ChildGate } from "../../contracts/workflows/child-gate-config.ts";
import type { EventId } from "../../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../contracts/workflows/workflow-bounds.ts";
import type { WorkflowDraft } from "../../contracts/workflows/workflow-events.ts";
import { SUBRUN_ARTIFACT } from "../state/answer-interrupt.ts";
import type { NewInterrupt, NodeView } from "../node-contract/node-type.ts";
import { findLogIdentity, type Handoff, type RecordedVerdict } from "../state/workflow-state.ts";
import { draftSuspension } from "../node-contract/suspension.ts";
import type { Values } from "../state/values.ts";
import type { NameMapping } from "./child-run.ts";
import type { ChildJudgedOutcome, ChildRuling } from "./gate-ruling.ts";

/** Why people are asked. */
export type HoldReason =
  | { readonly kind: "verification-missing"; readonly because: string }
  | { readonly kind: "confidence-below-floor"; readonly confidence: number; readonly agentId: string }
  | { readonly kind: "revisions-exhausted" | "output-unavailable" | "approval-required" };

interface RuledChild {
  readonly gate: ChildGate;
  readonly ruling: ChildRuling;
  readonly judged: ChildJudgedOutcome;
}

/** Lists the reasons why people are asked before a child's outputs are merged; empty where they need not be. */
export function listMergeHolds(view: NodeView, { gate, ruling, judged }: RuledChild): HoldReason[] {
  const { variables, actor } = judged;
  return [
    ...(variables === undefined ? [{ kind: "output-unavailable" } as const] : []),
    ...listRulingHolds(view, ruling, gate.verifier && actor ? [actor] : []),
    ...(gate.attestation?.requireApproval ? [{ kind: "approval-required" } as const] : []),
  ];
}

/** Lists why a ruling is not enough to merge: no verdict, no revisions left, or a doubt. */
function listRulingHolds(
  view: NodeView,
  ruling: ChildRuling,
  actors: readonly ActorConfidence[],
): HoldReason[] {
  switch (ruling.kind) {
    case "unasked":
      return [];
    case "missing":
      return [{ kind: "verification-missing", because: ruling.because }];
    case "verdict":
      return [
        ...(ruling.verdict.verdict === "revise" ? [{ kind: "revisions-exhausted" } as const] : []),
        ...listDoubts(view, [ruling.verdict, ...actors]),
      ];
  }
}

/** An agent, and how sure it said it is. */
type ActorConfidence = Pick<RecordedVerdict, "agentId" | "confidence">;

/** Lists the doubts of the critic and of the actor; one of them below the floor is enough. */
function listDoubts(
  { settings: { confidenceFloor } }: NodeView,
  stated: readonly ActorConfidence[],
): HoldReason[] {
  return stated.flatMap(({ agentId, confidence }) =>
    confidence !== undefined && confidence < confidenceFloor
      ? [{ kind: "confidence-below-floor", confidence, agentId } as const]
      : [],
  );
}

/** People are asked for one reason at least. */
export type HoldReasons = readonly [HoldReason, ...HoldReason[]];

/** A merge of a child's outputs that waits for people, and why. */
export interface HeldMerge {
  readonly gate: ChildGate;
  readonly outputMapping: NameMapping;
  readonly judged: ChildJudgedOutcome;
  readonly holds: HoldReasons;
  /** The event that the doubt follows from. */
  readonly cause: EventId;
}

/** The reason that an agent's confidence is below the floor. */
type ConfidenceDoubt = HoldReason & { readonly kind: "confidence-below-floor" };

/**
 * Drafts the question to people whether a child's outputs are merged, which suspends the node. A confidence below the
 * floor, the lowest one, is recorded before people are asked (G2).
 */
export function draftMergeQuestion(view: NodeView, handoff: Handoff, holding: HeldMerge): WorkflowDraft[] {
  const doubts = holding.holds.filter((hold) => hold.kind === "confidence-below-floor");
  const doubted = doubts.toSorted((one, other) => one.confidence - other.confidence)[0];
  const { cause } = holding;
  return [
    ...(doubted ? [draftConfidenceEscalated(view, handoff, { confidence: doubted.confidence, cause })] : []),
    ...draftSuspension(view, createMergeQuestion(view, handoff, holding, doubted)),
  ];
}

function draftConfidenceEscalated(
  { run, settings, nodeRun }: NodeView,
  { workerId }: Handoff,
  { confidence, cause }: { readonly confidence: number; readonly cause: EventId },
): WorkflowDraft {
  return {
    type: "core.workflowChain.confidence-escalated",
    nodeId: nodeRun.nodeId,
    causationId: cause,
    payload: {
      confidence,
      floor: settings.confidenceFloor,
      escalationKind: "escalate",
      workerId,
      parentRunId: findLogIdentity(run),
    },
  };
}

function createMergeQuestion(
  { settings: { confidenceFloor: threshold } }: NodeView,
  { workerId, childRunId = "" }: Handoff,
  { gate, outputMapping, judged, holds }: HeldMerge,
  doubted: ConfidenceDoubt | undefined,
): NewInterrupt {
  const timeoutMs = findSmallest(gate.verifier?.approvalTimeoutMs, gate.attestation?.approvalTimeoutMs);
  return {
    kind: "approval",
    reason: holds[0].kind,
    ...(doubted && { agentId: doubted.agentId, threshold, observed: doubted.confidence }),
    data: {
      artifactId: childRunId,
      artifactType: SUBRUN_ARTIFACT,
      title: `Merge what ${workerId} produced?`,
      description: holds.map((hold) => describeHold(hold, threshold)).join(" "),
      ...selectShownOutputs(outputMapping, judged),
    },
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
}

/** Selects the outputs that people are shown. Without them people could only put others in their place. */
function selectShownOutputs(mapping: NameMapping, judged: ChildJudgedOutcome): Values {
  const { variables, attestation } = judged;
  return {
    ...(variables && { artifactData: selectOfferedOutputs(mapping, judged) }),
    actions: variables ? ["accept", "reject", "edit-accept"] : ["reject", "edit-accept"],
    ...(attestation && { attestation }),
  };
}

function findSmallest(...numbers: readonly (number | undefined)[]): number | undefined {
  const stated = numbers.filter((ms) => ms !== undefined);
  return stated.length > 0 ? Math.min(...stated) : undefined;
}

function describeHold(hold: HoldReason, floor: number): string {
  switch (hold.kind) {
    case "verification-missing":
      return `There is no verdict on it (${hold.because}).`;
    case "confidence-below-floor":
      return `The confidence of ${hold.agentId} is ${hold.confidence}, below ${floor}.`;
    case "revisions-exhausted":
      return "It was sent back as often as it may be, and is still not what it should be.";
    case "output-unavailable":
      return "What it produced cannot be read any more.";
    case "approval-required":
      return "It is merged only with approval.";
  }
}

/** Beyond it, people are shown what would be merged, and not what else the child knows. */
const SHOWN_CHARS_MAX = WORKFLOW_BOUNDS.eventCharsMax / 2;

/**
 * Selects the child's outputs that people are shown: those that would be merged, and others that are not sensitive
 * unless all together are too long.
 */
function selectOfferedOutputs(
  mapping: NameMapping,
  { variables = {}, sensitive = [] }: ChildJudgedOutcome,
): Values {
  const mapped = new Set(Object.values(mapping));
  const selectOutputs = (isShown: (name: string) => boolean): Values =>
    Object.fromEntries(Object.entries(variables).filter(([name]) => mapped.has(name) || isShown(name)));
  const all = selectOutputs((name) => !sensitive.includes(name));
  return JSON.stringify(all).length <= SHOWN_CHARS_MAX ? all : selectOutputs(() => false);
}
