/**
 * Owns: what stands between a completed child and its outputs in the parent: a verdict (RFC 0090), a checksum and people's
 * approval (RFC 0063).
 *
 * Q1 nothing of what the child produced is in the log before the gate let it through, but in what people are shown to rule on.
 * Q2 a verdict is on record before anything is merged; `fail` is never merged, and nobody is asked whether it should be.
 * Q3 missing evidence, a confidence below the floor, and what asks for approval wait for people; only their yes merges.
 * Q4 what is merged and that it is are one append, and follow from it once.
 */
import type { EventId } from "../../contracts/ids.ts";
import {
  findCriteriaProblem,
  readChildGate,
  type ChildGate,
} from "../../contracts/workflows/child-gate-config.ts";
import type { WorkflowDraft, WorkflowPayloads } from "../../contracts/workflows/workflow-events.ts";
import type { GraphNode } from "../state/node-graph.ts";
import {
  computeDraftEventId,
  withNodeId,
  type EffectOutcome,
  type NodeEffect,
  type NodeStep,
  type NodeType,
  type NodeView,
} from "../node-contract/node-type.ts";
import { isAgreedAnswer } from "../state/review.ts";
import {
  findLogIdentity,
  type InterruptAnswer,
  type Handoff,
  type RecordedVerdict,
} from "../state/workflow-state.ts";
import { createWaitStep } from "../node-contract/suspension.ts";
import type { Values } from "../state/values.ts";
import { isRecord } from "../../std/is-record.ts";
import { draftHarvestedChanges, readPeerUrl, type NameMapping } from "./child-run.ts";
import { draftMergeQuestion, listMergeHolds } from "./gate-question.ts";
import { ruleOnChild, type ChildJudgedOutcome, type ChildRuling } from "./gate-ruling.ts";

const gates = new WeakMap<Values, ChildGate | Error>();

/**
 * Returns the gate for a child's outputs that a node's configuration asks for; `undefined` where it asks for none.
 * @throws Error when it cannot be understood; the node fails
 */
export function readNodeGate({ node: { config } }: Pick<GraphNode, "node">): ChildGate | undefined {
  const cached = gates.get(config);
  if (cached instanceof Error) throw cached;
  if (cached) return Object.keys(cached).length > 0 ? cached : undefined;
  const read = readChildGate(config);
  gates.set(config, read.ok ? (read.gate ?? {}) : new Error("the gate cannot be understood"));
  return readNodeGate({ node: { config } } as Pick<GraphNode, "node">);
}

/** Lists what is wrong with the gate of a node. A script may name criteria as it likes; a critic's have a form. */
export const listGateProblems: NonNullable<NodeType["check"]> = (graphNode, _graph, { play }) => {
  const { id, config } = graphNode.node;
  const read = readChildGate(config);
  if (!read.ok) return read.problems.map((problem) => `node ${id}: ${problem}`);
  const { verifier } = read.gate ?? {};
  const problem = verifier && !play?.isVerdictPlayed(graphNode) ? findCriteriaProblem(verifier) : undefined;
  return problem === undefined ? [] : [`node ${id}: ${problem}`];
};

/** Where the worker is handed over, as far as the gate needs it. */
export interface GatePlace {
  readonly outputMapping: NameMapping;
  readonly ordinal: string;
  /** The worker begins again. */
  readonly again: () => NodeStep;
}

type Attestation = NonNullable<WorkflowPayloads["core.workflowChain.event"]["attestation"]>;

/**
 * Returns the node's next step at the gate of a completed child: to judge it, to send the worker back, to wait for
 * people's answer, or to merge its outputs; `undefined` when nothing is left to do.
 */
export function stepGate(view: NodeView, handoff: Handoff, place: GatePlace): NodeStep | undefined {
  const gate = readNodeGate(view.node);
  if (!gate || handoff.childStatus !== "completed") return undefined;
  const { interrupt } = view.nodeRun;
  if (interrupt) return createWaitStep(interrupt);
  const { answer } = handoff;
  if (!answer) return stepBeforeAnswer(view, handoff, { gate, place });
  if (!isAgreedAnswer(answer) || !needsHarvest(gate, place)) return undefined;
  return isAnsweredUnseen(answer)
    ? { kind: "act", effect: createJudgeEffect(view, handoff, { gate, place }) }
    : { kind: "record", drafts: draftAgreedMerge(view, handoff, { place, answer }) };
}

/**
 * True when the log lacks the outputs that people agreed to, so that they are read again: a branch may begin after the
 * question was asked and before its data was recorded.
 */
function isAnsweredUnseen(answer: InterruptAnswer): boolean {
  return !isEditedAnswer(answer) && answer.asked.data["artifactData"] === undefined;
}

/**
 * Returns the step before people are asked: to send the worker back, or to judge the child; `undefined` after the
 * verdict `fail`, or where nothing is left to judge.
 */
function stepBeforeAnswer(
  view: NodeView,
  handoff: Handoff,
  { gate, place }: GateAtPlace,
): NodeStep | undefined {
  const verdict = handoff.verdict?.verdict;
  if (verdict === "fail") return undefined;
  if (verdict === "revise" && !areRevisionsExhausted(gate, handoff)) return place.again();
  return needsJudgement(gate, place, handoff)
    ? { kind: "act", effect: createJudgeEffect(view, handoff, { gate, place }) }
    : undefined;
}

/** True when there is anything to merge or to attest to. */
function needsHarvest(gate: ChildGate, { outputMapping }: GatePlace): boolean {
  return Object.keys(outputMapping).length > 0 || gate.attestation?.checksum === true;
}

function areRevisionsExhausted({ verifier }: ChildGate, { revision }: Handoff): boolean {
  return verifier?.revisionsMax !== undefined && revision >= verifier.revisionsMax;
}

/** True when the child still lacks a verdict, people's approval, or the reading of its outputs. */
function needsJudgement(gate: ChildGate, place: GatePlace, { verdict }: Handoff): boolean {
  const isUnasked = gate.verifier !== undefined && verdict?.verdict !== "pass";
  return isUnasked || gate.attestation?.requireApproval === true || needsHarvest(gate, place);
}

interface GateAtPlace {
  readonly gate: ChildGate;
  readonly place: GatePlace;
}

function createJudgeEffect(view: NodeView, handoff: Handoff, { gate, place }: GateAtPlace): NodeEffect {
  const { nodeId, completedChildren } = view.nodeRun;
  const peerUrl = readPeerUrl(view);
  const { verifier, attestation } = gate;
  return {
    kind: "judge_child",
    id: `${nodeId}:${place.ordinal}:judge`,
    nodeId,
    workerId: handoff.workerId,
    childRunId: handoff.childRunId ?? "",
    target: handoff.chainEventId,
    attempt: Math.max(1, completedChildren),
    isAttested: attestation?.checksum === true,
    ...(peerUrl !== undefined && { peerUrl }),
    ...(verifier && !handoff.verdict && !handoff.answer && { verifier }),
    ...(view.settings.play?.isVerdictPlayed(view.node) && { isPlayed: true }),
  };
}

/**
 * Drafts what the judgements on a child, or the failure to judge it, come to: its verdict, then nothing where that
 * rules its outputs out, a question to people, or the merge; empty for any other outcome.
 */
export function settleGate(
  view: NodeView,
  handoff: Handoff,
  place: GatePlace,
  outcome: EffectOutcome,
): readonly WorkflowDraft[] {
  const gate = readNodeGate(view.node);
  const judged = readJudgedOutcome(outcome);
  if (!gate || !judged) return [];
  if (handoff.answer) return draftMergeIfAny(view, handoff, { gate, place, judged });
  const ruling = ruleOnChild(view, handoff, gate, judged);
  const verdictDrafts =
    ruling.kind === "verdict" && !handoff.verdict ? [draftVerdict(view, handoff, ruling.verdict)] : [];
  if (isRuledOut(gate, handoff, ruling)) return verdictDrafts;
  const [hold, ...more] = listMergeHolds(view, { gate, ruling, judged });
  const { outputMapping } = place;
  const cause = verdictDrafts.length > 0 ? computeVerdictEventId(view, judged) : handoff.chainEventId;
  const draftsAfterVerdict = hold
    ? draftMergeQuestion(view, handoff, { gate, outputMapping, judged, holds: [hold, ...more], cause })
    : draftMergeIfAny(view, handoff, { gate, place, judged });
  return [...verdictDrafts, ...draftsAfterVerdict];
}

/** Returns the id of the verdict event, which follows the events about the cost of the critic's model. */
function computeVerdictEventId(view: NodeView, { calls = [] }: ChildJudgedOutcome): EventId {
  return computeDraftEventId(view, calls.length);
}

/** Drafts the merge of the judged outputs; empty where there is nothing to merge or to attest to. */
function draftMergeIfAny(
  view: NodeView,
  handoff: Handoff,
  { gate, place, judged }: GateAtPlace & { readonly judged: ChildJudgedOutcome },
): WorkflowDraft[] {
  const { variables: values = {}, attestation } = judged;
  return needsHarvest(gate, place)
    ? draftMerge(view, handoff, { place, values, ...(attestation && { attestation }) })
    : [];
}

/** True when the result is not accepted and nobody may let it through: it is dropped, or the worker is sent back. */
function isRuledOut(gate: ChildGate, handoff: Handoff, ruling: ChildRuling): boolean {
  if (ruling.kind !== "verdict") return false;
  const { verdict } = ruling.verdict;
  return verdict === "fail" || (verdict === "revise" && !areRevisionsExhausted(gate, handoff));
}

/** Returns the judgement of an outcome; outputs that could not be read are missing evidence. */
function readJudgedOutcome(outcome: EffectOutcome): ChildJudgedOutcome | undefined {
  if (outcome.kind === "child_judged") return outcome;
  return outcome.kind === "failed" ? { kind: "child_judged", isSelf: false, judgements: [] } : undefined;
}

/** Drafts the verdict, which names the child and the keys that were looked at, never what was in it (RFC 0090). */
function draftVerdict(
  view: NodeView,
  { childRunId = "", chainEventId }: Handoff,
  verdict: RecordedVerdict,
): WorkflowDraft {
  return withNodeId(view, {
    type: "agent.verified",
    causationId: chainEventId,
    payload: { ...verdict, target: childRunId },
  });
}

/** Drafts the merge of what people were shown, or of what they put in its place. */
function draftAgreedMerge(
  view: NodeView,
  handoff: Handoff,
  { place, answer }: { readonly place: GatePlace; readonly answer: InterruptAnswer },
): WorkflowDraft[] {
  const { artifactData, attestation } = answer.asked.data;
  const { editedArtifactData } = isRecord(answer.resumeValue) ? answer.resumeValue : {};
  const values = isEditedAnswer(answer) ? editedArtifactData : artifactData;
  return draftMerge(view, handoff, {
    place,
    values: isRecord(values) ? values : {},
    ...(isAttestation(attestation) && { attestation }),
  });
}

function isAttestation(value: unknown): value is Attestation {
  return isRecord(value) && typeof value["checksum"] === "string" && value["algorithm"] === "sha256";
}

/** The outputs of a child that are to be merged, and where they go. */
interface ChildMerge {
  readonly place: GatePlace;
  readonly values: Values;
  /** The attestation of the child's own outputs, whatever people put in their place. */
  readonly attestation?: Attestation;
}

/**
 * Drafts the parent's changed variables and the harvest. Where there is a checksum, it is told before the values are
 * (RFC 0063 §B).
 */
function draftMerge(
  view: NodeView,
  handoff: Handoff,
  { place, values, attestation }: ChildMerge,
): WorkflowDraft[] {
  const changes = draftHarvestedChanges(view, place.outputMapping, values);
  const harvestEvent = draftHarvestEvent(view, handoff, {
    keys: changes.map(({ payload: { name } }) => name),
    causationId: handoff.chainEventId,
    ...(attestation && { attestation }),
  });
  return attestation ? [harvestEvent, ...changes] : [...changes, harvestEvent];
}

/** The keys that a child's outputs were merged under, and the event that caused it. */
interface HarvestedOutputs {
  readonly keys: string[];
  readonly causationId: EventId;
  readonly attestation?: Attestation;
}

/** Drafts the event that a child's outputs were merged into the parent's variables, with their names. */
export function draftHarvestEvent(
  view: NodeView,
  { workerId, childRunId }: Handoff,
  { keys, causationId, attestation }: HarvestedOutputs,
): WorkflowDraft {
  return withNodeId(view, {
    type: "core.workflowChain.event",
    causationId,
    payload: {
      phase: "output.harvested",
      workerId,
      parentRunId: findLogIdentity(view.run),
      ...(childRunId !== undefined && { childRunId }),
      harvestedKeys: keys,
      ...(attestation && { attestation }),
    },
  });
}

/**
 * Returns what a node outputs about its child when it ends: its run and status, and the gate's ruling on it; an empty
 * record without a child.
 */
export function createChildOutputs({ node }: NodeView, handoff: Handoff | undefined): Values {
  if (!handoff) return {};
  const { childRunId, childStatus, gaveUp } = handoff;
  const isRuled = readNodeGate(node) !== undefined && childStatus === "completed";
  return {
    ...(childRunId !== undefined && { childRunId }),
    ...(childStatus && { childStatus }),
    ...(gaveUp && { childGoalSatisfied: false }),
    ...(isRuled && createRulingOutputs(handoff)),
  };
}

function createRulingOutputs({ verdict, phase, answer, attestation }: Handoff): Values {
  const isMerged = phase === "harvested";
  return {
    ...(verdict && { verdict: verdict.verdict }),
    merged: isMerged,
    ...(isMerged && answer && isEditedAnswer(answer) && { edited: true }),
    ...(attestation && { attestation }),
  };
}

function isEditedAnswer({ resumeValue }: InterruptAnswer): boolean {
  return isRecord(resumeValue) && resumeValue["action"] === "edit-accept";
}
