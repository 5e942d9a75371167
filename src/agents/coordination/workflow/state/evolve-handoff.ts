/**
 * Owns: what events mean for the work that a node hands over: the handoff state machine (RFC 0037), what a verifier found
 * (RFC 0090), what people said, and what was merged (RFC 0063).
 */
import { assertInvariant } from "../../contracts/errors.ts";
import type { WorkflowEvent } from "../../contracts/workflows/workflow-events.ts";
import { isAgreedAnswer } from "./review.ts";
import {
  createReviewKey,
  type InterruptAnswer,
  type HandedOver,
  type Handoff,
  type NodeRun,
  type Review,
  type WorkflowRun,
} from "./workflow-state.ts";

/** A workflow event of one type. */
type WorkflowEventOfType<T extends WorkflowEvent["type"]> = Extract<WorkflowEvent, { type: T }>;

export type HandoffEvent = WorkflowEventOfType<
  "core.workflowChain.event" | "node.dispatched" | "agent.verified" | "coordination.child_gave_up"
>;

/**
 * Returns the run after an event about work that a node handed over: the node, the count of revisions and the worker's
 * review are changed.
 */
export function evolveHandoff(run: WorkflowRun, event: HandoffEvent): WorkflowRun {
  const { nodeId = "" } = event;
  const before = run.nodes.get(nodeId);
  // Other agents rule on other things.
  if (event.type === "agent.verified" && !before?.handoff) return run;
  assertInvariant(before !== undefined, `node ${nodeId} has not been started`);
  const after = applyHandoffEvent(before, event, run.variables);
  const isSentBack = event.type === "core.workflowChain.event" && isRevision(before.handoff, event);
  const { orchestrator } = run;
  return updateReview(
    {
      ...run,
      nodes: run.nodes.set(nodeId, after),
      ...(isSentBack && { orchestrator: { ...orchestrator, revisions: orchestrator.revisions + 1 } }),
    },
    event,
    after,
  );
}

function applyHandoffEvent(node: NodeRun, event: HandoffEvent, variables: WorkflowRun["variables"]): NodeRun {
  switch (event.type) {
    case "node.dispatched":
      return {
        ...node,
        handoff: recordDispatch(node.handoff, event),
        childRunIds: [...new Set([...(node.childRunIds ?? []), event.payload.childRunId])],
      };
    case "coordination.child_gave_up":
      return { ...node, ...(node.handoff && { handoff: { ...node.handoff, gaveUp: true } }) };
    case "agent.verified": {
      const { agentId, verdict, criteria, confidence } = event.payload;
      const ruling = {
        agentId,
        verdict,
        ...(criteria && { criteria }),
        ...(confidence !== undefined && { confidence }),
      };
      return { ...node, ...(node.handoff && { handoff: { ...node.handoff, verdict: ruling } }) };
    }
    case "core.workflowChain.event": {
      const isCompleted = event.payload.phase === "child.completed";
      return {
        ...node,
        handoff: applyChainEvent(node.handoff, event),
        ...(event.payload.phase === "dispatch.began" && { variablesAtStart: variables }),
        ...(isCompleted && { completedChildren: node.completedChildren + 1 }),
      };
    }
  }
}

/**
 * Returns the handoff once its child was created. One without phases of the state machine, such as that of a
 * sub-workflow without a gate, begins here.
 */
function recordDispatch(
  before: Handoff | undefined,
  { eventId, sequence, payload }: WorkflowEventOfType<"node.dispatched">,
): Handoff {
  const { childRunId, childWorkflowId: workerId } = payload;
  const alone = {
    index: 0,
    phase: "running",
    chainEventId: eventId,
    workerId,
    revision: 0,
    unmet: [],
  } as const;
  return { ...(before ?? alone), childRunId, dispatchedSequence: sequence };
}

function applyChainEvent(
  before: Handoff | undefined,
  event: WorkflowEventOfType<"core.workflowChain.event">,
): Handoff {
  const { eventId, payload } = event;
  const { phase, workerId, childRunId, error, attestation } = payload;
  const place = { workerId, chainEventId: eventId, phase: PHASES[phase] };
  if (phase === "dispatch.began" || !before) return { ...place, ...createHandoffTurn(before, event) };
  const childStatus = CHILD_STATUS[phase];
  return {
    ...before,
    ...place,
    ...(childRunId !== undefined && { childRunId }),
    ...(childStatus && { childStatus }),
    ...(error && { error }),
    ...(attestation && { attestation }),
  };
}

/** Returns the place in the decision that a worker begins at: the next worker, or the same one again. */
function createHandoffTurn(
  before: Handoff | undefined,
  event: WorkflowEventOfType<"core.workflowChain.event">,
): Pick<Handoff, "index" | "revision" | "unmet" | "earlier"> {
  if (!before) return { index: 0, revision: 0, unmet: [] };
  const { earlier } = before;
  return isRevision(before, event)
    ? {
        index: before.index,
        revision: before.revision + 1,
        unmet: before.verdict?.criteria ?? [],
        ...(earlier && { earlier }),
      }
    : {
        index: before.index + 1,
        revision: 0,
        unmet: [],
        earlier: [...(earlier ?? []), summarizeHandoff(before)],
      };
}

function summarizeHandoff({ workerId, phase, childStatus, gaveUp }: Handoff): HandedOver {
  return { workerId, phase, ...(childStatus && { childStatus }), ...(gaveUp && { gaveUp }) };
}

/** True when a worker begins again to revise its work, on which people have not ruled. */
function isRevision(
  before: Handoff | undefined,
  { payload: { phase, workerId } }: WorkflowEventOfType<"core.workflowChain.event">,
): boolean {
  return (
    phase === "dispatch.began" &&
    before?.phase === "ended" &&
    before.verdict?.verdict === "revise" &&
    before.answer === undefined &&
    before.workerId === workerId
  );
}

/** Updates the review of a worker. A new ruling takes the place of the one before. */
function updateReview(run: WorkflowRun, event: HandoffEvent, { nodeId, handoff }: NodeRun): WorkflowRun {
  if (!handoff) return run;
  const { workerId, childRunId, verdict } = handoff;
  const key = createReviewKey(nodeId, workerId);
  const review = run.reviews.get(key);
  const put = (review: Review): WorkflowRun => ({ ...run, reviews: run.reviews.set(key, review) });
  if (event.type === "agent.verified")
    return put({
      nodeId,
      workerId,
      isMerged: false,
      ...(childRunId !== undefined && { childRunId }),
      ...(verdict && { verdict }),
    });
  const isHarvested = event.type === "core.workflowChain.event" && event.payload.phase === "output.harvested";
  return isHarvested && review && review.childRunId === childRunId ? put({ ...review, isMerged: true }) : run;
}

/**
 * Returns the run after people's answer to whether a child's outputs are merged, which is kept with the node and the
 * worker's review; the same run where no child has ended.
 */
export function applyMergeAnswer(run: WorkflowRun, nodeId: string, answer: InterruptAnswer): WorkflowRun {
  const node = run.nodes.get(nodeId);
  const handoff = node?.handoff;
  if (handoff?.phase !== "ended") return run;
  const key = createReviewKey(nodeId, handoff.workerId);
  const knownReview = run.reviews.get(key);
  const isSame = knownReview?.childRunId === handoff.childRunId;
  const review: Review = {
    nodeId,
    workerId: handoff.workerId,
    isMerged: false,
    ...(handoff.childRunId !== undefined && { childRunId: handoff.childRunId }),
    ...(isSame && knownReview),
    ruling: isAgreedAnswer(answer) ? "accepted" : "rejected",
  };
  return {
    ...run,
    nodes: run.nodes.set(nodeId, { ...node, handoff: { ...handoff, answer } } as NodeRun),
    reviews: run.reviews.set(key, review),
  };
}

type ChainPhase = WorkflowEventOfType<"core.workflowChain.event">["payload"]["phase"];

const PHASES: Readonly<Record<ChainPhase, Handoff["phase"]>> = {
  "dispatch.began": "dispatching",
  "dispatch.succeeded": "running",
  "dispatch.failed": "ended",
  "child.completed": "ended",
  "child.failed": "ended",
  "child.cancelled": "ended",
  "output.harvested": "harvested",
};

const CHILD_STATUS: Partial<Readonly<Record<ChainPhase, NonNullable<Handoff["childStatus"]>>>> = {
  "dispatch.failed": "failed",
  "child.completed": "completed",
  "child.failed": "failed",
  "child.cancelled": "cancelled",
};
