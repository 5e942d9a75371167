/**
 * Owns: `core.orchestrator.supervisor`: one decision a turn (RFC 0006), held below the floor (RFC 0039).
 *
 * G2 a decision below the floor is recorded as escalated, then interrupts, before anything is dispatched. G3 it is executed
 * once, after it was agreed to, as the decision of the same iteration; a refused one never is. CO-1 the decision is on disk
 * before anything follows from it. CO-2 the agent is the same for the whole run. CO-3 nothing but the end follows `terminate`.
 * Q5 no run ends as a success over work that a verifier did not accept, and nobody ruled on (RFC 0090).
 */
import {
  decisionSchema,
  REFUSED,
  type OrchestratorDecision,
  type WorkflowDraft,
} from "../../contracts/workflows/workflow-events.ts";
import { DECISION_ARTIFACT } from "../state/answer-interrupt.ts";
import {
  readNodeAgentId,
  withNodeId,
  type EffectOutcome,
  type NodeError,
  type NodeStep,
  type NodeType,
  type NodeView,
  type PlayedTurn,
} from "../node-contract/node-type.ts";
import { isAgreedAnswer, listUnresolvedReviews } from "../state/review.ts";
import { findLogIdentity, type InterruptAnswer } from "../state/workflow-state.ts";
import { hasSupervisorModel } from "../node-contract/conformance-parts.ts";
import { draftSuspension, createWaitStep } from "../node-contract/suspension.ts";
import { isRecord } from "../../std/is-record.ts";
import { readNodeGate } from "./child-gate.ts";
import { draftNodeFailed, draftFailedOutcome } from "./ends.ts";
import { draftExceededLoopLimit } from "./loop-limit.ts";
import { createSupervisorEffect, findForeignWorker, readModelDecision } from "./supervisor-prompt.ts";

export const supervisor: NodeType = {
  check: ({ node }, _graph, { play }) =>
    play || hasSupervisorModel(node) ? [] : [explainMissingModel(node.id)],
  step: (view) => {
    if (view.nodeRun.interrupt) return createWaitStep(view.nodeRun.interrupt);
    const answer = view.nodeRun.answers.at(-1);
    if (answer)
      return answer.asked.reason === UNRESOLVED
        ? applyRelease(view, answer)
        : applyRatification(view, answer.resumeValue);
    const heldDecision = findHeldDecision(view);
    if (heldDecision) return createRatificationQuestion(view, heldDecision);
    const turn = chooseTurn(view);
    switch (turn.kind) {
      case "capped":
        return { kind: "end", drafts: turn.drafts };
      case "ask":
        return { kind: "act", effect: createSupervisorEffect(view) };
      case "doubted":
        return turn.step;
      case "decided":
        return executeOrHold(view, turn.decision);
      case "modelless":
        return {
          kind: "fail",
          error: { code: "not_configured", message: explainMissingModel(view.nodeRun.nodeId) },
        };
    }
  },
  settle: (view, _effect, outcome) => draftModelDecision(view, outcome),
};

/**
 * Finds the decision of this supervisor that was held since its node last started; `undefined` where none was. One
 * held before does not count, so that people's no to it stands.
 */
function findHeldDecision({ run, nodeRun }: NodeView): OrchestratorDecision | undefined {
  const { nodeId, startedSequence } = nodeRun;
  return run.orchestrator.held?.find(
    (heldDecision) => heldDecision.nodeId === nodeId && heldDecision.sequence > startedSequence,
  )?.decision;
}

/** The way a supervisor takes its turn, or why it takes none. */
type SupervisorTurn =
  | { readonly kind: "capped"; readonly drafts: readonly WorkflowDraft[] }
  | { readonly kind: "ask" }
  /** Its configuration does not say what a model is asked. */
  | { readonly kind: "modelless" }
  | PlayedTurn;

/** Returns how the turn is taken: by a script or the model, or not at all, at the loop's limit or without a model. */
function chooseTurn(view: NodeView): SupervisorTurn {
  const capped = draftExceededLoopLimit(view);
  if (capped) return { kind: "capped", drafts: capped };
  const played = view.settings.play?.playTurn(view);
  return played ?? { kind: hasSupervisorModel(view.node.node) ? "ask" : "modelless" };
}

function explainMissingModel(nodeId: string): string {
  return `node ${nodeId} is a supervisor without a model to decide: give it config.prompt, config.systemPrompt or config.model`;
}

function parseDecision(value: unknown): OrchestratorDecision | undefined {
  const parsed = decisionSchema.safeParse(value);
  return parsed.success ? parsed.data : undefined;
}

/** A decision is carried out, held, put to people or refused. */
type DecidedStep = Extract<NodeStep, { readonly kind: "complete" | "record" | "suspend" | "fail" }>;

/**
 * Returns the step that executes a decision, or holds one below the floor. One that states no confidence is not held.
 */
function executeOrHold(view: NodeView, decision: OrchestratorDecision): DecidedStep {
  const isDoubted = readDecisionConfidence(decision) < view.settings.confidenceFloor;
  return isDoubted
    ? { kind: "record", drafts: [draftHeldDecision(view, decision)] }
    : executeDecision(view, decision);
}

function readDecisionConfidence(decision: OrchestratorDecision): number {
  return decision.kind === "ask-user" ? 1 : (decision.confidence ?? 1);
}

/** Drafts that a decision is held for people, with its confidence and the floor. */
function draftHeldDecision(view: NodeView, decision: OrchestratorDecision): WorkflowDraft {
  const worker = decision.kind === "next-worker" ? decision.nextWorkerIds[0] : undefined;
  return withNodeId(view, {
    type: "core.workflowChain.confidence-escalated",
    payload: {
      confidence: readDecisionConfidence(decision),
      floor: view.settings.confidenceFloor,
      escalationKind: "escalate",
      parentRunId: findLogIdentity(view.run),
      ...(worker !== undefined && { workerId: worker }),
      originalDecision: decision,
    },
  });
}

/** Returns the step that asks people about a held decision, whose event is in the log by then. */
function createRatificationQuestion(view: NodeView, decision: OrchestratorDecision): NodeStep {
  const title =
    decision.kind === "next-worker"
      ? `Let ${decision.nextWorkerIds.join(", ")} begin?`
      : "Let the run end here?";
  return {
    kind: "suspend",
    interrupt: {
      kind: "approval",
      reason: "confidence-below-floor",
      data: {
        artifactId: `${findLogIdentity(view.run)}:${view.nodeRun.nodeId}:${view.run.orchestrator.decided + 1}`,
        artifactType: DECISION_ARTIFACT,
        title,
        description: `The supervisor's confidence is ${readDecisionConfidence(decision)}, below ${view.settings.confidenceFloor}.`,
        artifactData: decision,
        actions: ["accept", "reject", "edit-accept"],
      },
    },
  };
}

/** Executes the decision that people agreed to or put in its place; without a yes the node fails (G3). */
function applyRatification(view: NodeView, resumeValue: unknown): NodeStep {
  const value = isRecord(resumeValue) ? resumeValue : {};
  const { action, editedArtifactData } = value;
  const pending = findHeldDecision(view) ?? view.settings.play?.findDoubtedDecision(view);
  const decision = action === "edit-accept" ? parseDecision(editedArtifactData) : pending;
  if (!decision || !isAgreedAnswer({ resumeValue })) {
    const message =
      action === "timeout" ? "nobody agreed to the decision in time" : "the decision was not accepted";
    return { kind: "fail", error: { code: "decision_rejected", message } };
  }
  return executeDecision(view, decision);
}

function executeDecision(view: NodeView, decision: OrchestratorDecision): DecidedStep {
  return decision.kind === "terminate"
    ? (holdEarlyEnd(view, decision) ?? createDecidedStep(view, decision))
    : createDecidedStep(view, decision);
}

const UNRESOLVED = "verification-failed";

/**
 * Returns the step that asks people, or fails, before work that was not accepted ends as a success (RFC 0090 §B). It
 * is `undefined` where all work is settled.
 */
function holdEarlyEnd(view: NodeView, decision: OrchestratorDecision): DecidedStep | undefined {
  const unresolvedReviews = listUnresolvedReviews(view.run);
  if (unresolvedReviews.length === 0) return undefined;
  const workers = unresolvedReviews.map(({ workerId }) => workerId).join(", ");
  const verifiers = unresolvedReviews.flatMap(({ nodeId }) => {
    const node = view.graph.nodes.get(nodeId);
    const verifier = node && readNodeGate(node)?.verifier;
    return verifier ? [verifier] : [];
  });
  if (verifiers.some(({ onUnresolved }) => onUnresolved === "fail"))
    return { kind: "fail", error: createUnverifiedError(`what ${workers} produced was not accepted`) };
  const times = verifiers.flatMap(({ approvalTimeoutMs: ms }) => (ms === undefined ? [] : [ms]));
  return {
    kind: "suspend",
    interrupt: {
      kind: "approval",
      reason: UNRESOLVED,
      data: {
        artifactId: `${findLogIdentity(view.run)}:${view.nodeRun.nodeId}:${view.run.orchestrator.decided + 1}`,
        artifactType: DECISION_ARTIFACT,
        title: "Let the run end here?",
        description: `What ${workers} produced was not accepted by the verifier, and nothing of it was merged.`,
        artifactData: decision,
        actions: ["accept", "reject", "edit-accept"],
      },
      ...(times.length > 0 && { timeoutMs: Math.min(...times) }),
    },
  };
}

function createUnverifiedError(message: string): NodeError {
  return { code: "verification_failed", message };
}

/**
 * Carries out the end that people agreed to although work was not accepted, or the decision that they put in its
 * place; without their yes the node fails.
 */
function applyRelease(view: NodeView, answer: InterruptAnswer): NodeStep {
  const { action, editedArtifactData } = isRecord(answer.resumeValue) ? answer.resumeValue : {};
  const decision = parseDecision(
    action === "edit-accept" ? editedArtifactData : answer.asked.data["artifactData"],
  );
  if (decision && isAgreedAnswer(answer)) return createDecidedStep(view, decision);
  const why = action === "timeout" ? "nobody let the run end in time" : "the run was not let end";
  return { kind: "fail", error: createUnverifiedError(`${why} over work that was not accepted`) };
}

/** Returns the step that records the decision and completes the node. */
function createDecidedStep(view: NodeView, decision: OrchestratorDecision): DecidedStep {
  const decided = withNodeId(view, {
    type: "runOrchestrator.decided",
    payload: {
      agentId: view.run.orchestrator.agentId ?? readNodeAgentId(view),
      decision,
      iteration: view.run.orchestrator.decided + 1,
    },
  } as const);
  // CO-3: the end is all that comes behind it.
  return decision.kind === "terminate"
    ? { kind: "complete", outputs: { decision }, after: [decided] }
    : { kind: "complete", outputs: { decision }, before: [decided] };
}

/**
 * Drafts what the model's answer comes to. The decision is recorded at once, because asking again could give another
 * one.
 */
function draftModelDecision(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  if (outcome.kind !== "model_answered") return draftMissingDecision(view, outcome);
  if (outcome.text.trim() === "" && outcome.object === undefined)
    return [draftNodeFailed(view, { code: "model_answer_empty", message: "the model answered nothing" })];
  if (outcome.isCutOff)
    return draftMalformedDecision(view, "the model's answer was cut off where the bound of its length is");
  const decision = readModelDecision(outcome);
  if (!decision) return draftMalformedDecision(view, "the model's answer is no decision");
  return findForeignWorker(view.node.node.config, decision) === undefined
    ? draftDecidedStep(view, executeOrHold(view, decision))
    : draftMalformedDecision(
        view,
        "the model's decision names a worker that is not among the supervisor's workers",
      );
}

function draftMalformedDecision(view: NodeView, message: string): readonly WorkflowDraft[] {
  return [draftNodeFailed(view, { code: "decision_malformed", message })];
}

function draftMissingDecision(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  if (outcome.kind === "model_refused")
    return [draftNodeFailed(view, { code: REFUSED, message: "the model refused to decide" })];
  return draftFailedOutcome(view, outcome);
}

function draftDecidedStep(view: NodeView, step: DecidedStep): readonly WorkflowDraft[] {
  const { nodeId } = view.nodeRun;
  switch (step.kind) {
    case "record":
      return step.drafts;
    case "suspend":
      return draftSuspension(view, step.interrupt);
    case "fail":
      return [draftNodeFailed(view, step.error)];
    case "complete": {
      const payload = { nodeId, outputs: { ...step.outputs } };
      return [...(step.before ?? []), { type: "node.completed", nodeId, payload }, ...(step.after ?? [])];
    }
  }
}
