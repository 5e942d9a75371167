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
  draftIdOf,
  withNodeId,
  type EffectOutcome,
  type NodeEffect,
  type NodeStep,
  type NodeType,
  type NodeView,
} from "../node-contract/node-type.ts";
import { isAgreed } from "../state/review.ts";
import { identityOf, type Answer, type Handoff, type RecordedVerdict } from "../state/workflow-state.ts";
import { waitForAnswer } from "../node-contract/suspension.ts";
import type { Values } from "../state/values.ts";
import { isRecord } from "../../std/is-record.ts";
import { harvest, peerOf, type Mapping } from "./child-run.ts";
import { draftHeld, holdsOf } from "./gate-question.ts";
import { rulingOf, type Judged, type Ruling } from "./gate-ruling.ts";

const gates = new WeakMap<Values, ChildGate | Error>();

/** Returns the gate that the configuration asks for. @throws Error when it cannot be understood; the node fails */
export function gateOf({ node: { config } }: Pick<GraphNode, "node">): ChildGate | undefined {
  const cached = gates.get(config);
  if (cached instanceof Error) throw cached;
  if (cached) return Object.keys(cached).length > 0 ? cached : undefined;
  const read = readChildGate(config);
  gates.set(config, read.ok ? (read.gate ?? {}) : new Error("the gate cannot be understood"));
  return gateOf({ node: { config } } as Pick<GraphNode, "node">);
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
  readonly outputMapping: Mapping;
  readonly ordinal: string;
  /** The worker begins again. */
  readonly again: () => NodeStep;
}

type Attestation = NonNullable<WorkflowPayloads["core.workflowChain.event"]["attestation"]>;

/** Returns the next step for a child that completed; `undefined` when nothing is left to do. */
export function stepGate(view: NodeView, handoff: Handoff, place: GatePlace): NodeStep | undefined {
  const gate = gateOf(view.node);
  if (!gate || handoff.childStatus !== "completed") return undefined;
  const { interrupt } = view.nodeRun;
  if (interrupt) return waitForAnswer(interrupt);
  const { answer } = handoff;
  if (!answer) return stepBeforeAnswer(view, handoff, { gate, place });
  if (!isAgreed(answer) || !isHarvested(gate, place)) return undefined;
  return isUnseen(answer)
    ? { kind: "act", effect: createJudgeEffect(view, handoff, { gate, place }) }
    : { kind: "record", drafts: draftAgreed(view, handoff, { place, answer }) };
}

/** A branch may begin between that people are asked and what they are shown: what they agreed to is read again then. */
function isUnseen(answer: Answer): boolean {
  return !isEdited(answer) && answer.asked.data["artifactData"] === undefined;
}

function stepBeforeAnswer(
  view: NodeView,
  handoff: Handoff,
  { gate, place }: GateAtPlace,
): NodeStep | undefined {
  const verdict = handoff.verdict?.verdict;
  if (verdict === "fail") return undefined;
  if (verdict === "revise" && !isRevisedOut(gate, handoff)) return place.again();
  return isOpen(gate, place, handoff)
    ? { kind: "act", effect: createJudgeEffect(view, handoff, { gate, place }) }
    : undefined;
}

/** True when there is anything to merge or to attest to. */
function isHarvested(gate: ChildGate, { outputMapping }: GatePlace): boolean {
  return Object.keys(outputMapping).length > 0 || gate.attestation?.checksum === true;
}

function isRevisedOut({ verifier }: ChildGate, { revision }: Handoff): boolean {
  return verifier?.revisionsMax !== undefined && revision >= verifier.revisionsMax;
}

function isOpen(gate: ChildGate, place: GatePlace, { verdict }: Handoff): boolean {
  const isUnasked = gate.verifier !== undefined && verdict?.verdict !== "pass";
  return isUnasked || gate.attestation?.requireApproval === true || isHarvested(gate, place);
}

interface GateAtPlace {
  readonly gate: ChildGate;
  readonly place: GatePlace;
}

function createJudgeEffect(view: NodeView, handoff: Handoff, { gate, place }: GateAtPlace): NodeEffect {
  const { nodeId, completedChildren } = view.nodeRun;
  const peerUrl = peerOf(view);
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

/** Settles the gate: the child's outputs were read, and those who rule on it have answered or run out of time. */
export function settleGate(
  view: NodeView,
  handoff: Handoff,
  place: GatePlace,
  outcome: EffectOutcome,
): readonly WorkflowDraft[] {
  const gate = gateOf(view.node);
  const judged = judgedOf(outcome);
  if (!gate || !judged) return [];
  if (handoff.answer) return draftLetThrough(view, handoff, { gate, place, judged });
  const ruling = rulingOf(view, handoff, gate, judged);
  const verdictDrafts =
    ruling.kind === "verdict" && !handoff.verdict ? [draftVerified(view, handoff, ruling.verdict)] : [];
  if (isRuledOut(gate, handoff, ruling)) return verdictDrafts;
  const [hold, ...more] = holdsOf(view, { gate, ruling, judged });
  const { outputMapping } = place;
  const cause = verdictDrafts.length > 0 ? verdictIdOf(view, judged) : handoff.chainEventId;
  const rest = hold
    ? draftHeld(view, handoff, { gate, outputMapping, judged, holds: [hold, ...more], cause })
    : draftLetThrough(view, handoff, { gate, place, judged });
  return [...verdictDrafts, ...rest];
}

/** Returns the id of the verdict event, which follows the events about the cost of the critic's model. */
function verdictIdOf(view: NodeView, { calls = [] }: Judged): EventId {
  return draftIdOf(view, calls.length);
}

function draftLetThrough(
  view: NodeView,
  handoff: Handoff,
  { gate, place, judged }: GateAtPlace & { readonly judged: Judged },
): WorkflowDraft[] {
  const { variables: values = {}, attestation } = judged;
  return isHarvested(gate, place)
    ? draftMerged(view, handoff, { place, values, ...(attestation && { attestation }) })
    : [];
}

/** True when the result is not accepted and nobody may let it through: it is dropped, or the worker is sent back. */
function isRuledOut(gate: ChildGate, handoff: Handoff, ruling: Ruling): boolean {
  if (ruling.kind !== "verdict") return false;
  const { verdict } = ruling.verdict;
  return verdict === "fail" || (verdict === "revise" && !isRevisedOut(gate, handoff));
}

/** Returns the judgement of an outcome; outputs that could not be read are missing evidence. */
function judgedOf(outcome: EffectOutcome): Judged | undefined {
  if (outcome.kind === "child_judged") return outcome;
  return outcome.kind === "failed" ? { kind: "child_judged", isSelf: false, judgements: [] } : undefined;
}

/** RFC 0090: names the child and the keys that were looked at, never what was in it. */
function draftVerified(
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
function draftAgreed(
  view: NodeView,
  handoff: Handoff,
  { place, answer }: { readonly place: GatePlace; readonly answer: Answer },
): WorkflowDraft[] {
  const { artifactData, attestation } = answer.asked.data;
  const { editedArtifactData } = isRecord(answer.resumeValue) ? answer.resumeValue : {};
  const values = isEdited(answer) ? editedArtifactData : artifactData;
  return draftMerged(view, handoff, {
    place,
    values: isRecord(values) ? values : {},
    ...(isAttestation(attestation) && { attestation }),
  });
}

function isAttestation(value: unknown): value is Attestation {
  return isRecord(value) && typeof value["checksum"] === "string" && value["algorithm"] === "sha256";
}

interface Merge {
  readonly place: GatePlace;
  readonly values: Values;
  /** The attestation of the child's own outputs, whatever people put in their place. */
  readonly attestation?: Attestation;
}

/** RFC 0063 §B: where there is a checksum, it is told before the values are. */
function draftMerged(
  view: NodeView,
  handoff: Handoff,
  { place, values, attestation }: Merge,
): WorkflowDraft[] {
  const changes = harvest(view, place.outputMapping, values);
  const harvestEvent = draftHarvested(view, handoff, {
    keys: changes.map(({ payload: { name } }) => name),
    causationId: handoff.chainEventId,
    ...(attestation && { attestation }),
  });
  return attestation ? [harvestEvent, ...changes] : [...changes, harvestEvent];
}

interface Harvested {
  readonly keys: string[];
  readonly causationId: EventId;
  readonly attestation?: Attestation;
}

export function draftHarvested(
  view: NodeView,
  { workerId, childRunId }: Handoff,
  { keys, causationId, attestation }: Harvested,
): WorkflowDraft {
  return withNodeId(view, {
    type: "core.workflowChain.event",
    causationId,
    payload: {
      phase: "output.harvested",
      workerId,
      parentRunId: identityOf(view.run),
      ...(childRunId !== undefined && { childRunId }),
      harvestedKeys: keys,
      ...(attestation && { attestation }),
    },
  });
}

/** Returns what the node outputs about its child and its gate when it ends. */
export function createChildOutputs({ node }: NodeView, handoff: Handoff | undefined): Values {
  if (!handoff) return {};
  const { childRunId, childStatus, gaveUp } = handoff;
  const isRuled = gateOf(node) !== undefined && childStatus === "completed";
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
    ...(isMerged && answer && isEdited(answer) && { edited: true }),
    ...(attestation && { attestation }),
  };
}

function isEdited({ resumeValue }: Answer): boolean {
  return isRecord(resumeValue) && resumeValue["action"] === "edit-accept";
}
