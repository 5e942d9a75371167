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
  agentIdOf,
  withNodeId,
  type EffectOutcome,
  type NodeError,
  type NodeStep,
  type NodeType,
  type NodeView,
  type PlayedTurn,
} from "../node-contract/node-type.ts";
import { isAgreed, listUnresolved } from "../state/review.ts";
import { identityOf, type Answer } from "../state/workflow-state.ts";
import { hasSupervisorModel } from "../node-contract/conformance-parts.ts";
import { draftSuspension, waitForAnswer } from "../node-contract/suspension.ts";
import { isRecord } from "../../std/is-record.ts";
import { gateOf } from "./child-gate.ts";
import { draftFailed, draftFailureOf } from "./ends.ts";
import { draftLoopLimit } from "./loop-limit.ts";
import { askSupervisor, findForeignWorker, readDecision } from "./supervisor-prompt.ts";

export const supervisor: NodeType = {
  check: ({ node }, _graph, { play }) =>
    play || hasSupervisorModel(node) ? [] : [describeModelless(node.id)],
  step: (view) => {
    if (view.nodeRun.interrupt) return waitForAnswer(view.nodeRun.interrupt);
    const answer = view.nodeRun.answers.at(-1);
    if (answer)
      return answer.asked.reason === UNRESOLVED
        ? stepRelease(view, answer)
        : applyRatification(view, answer.resumeValue);
    const heldDecision = findHeldDecision(view);
    if (heldDecision) return stepEscalated(view, heldDecision);
    const turn = chooseTurn(view);
    switch (turn.kind) {
      case "capped":
        return { kind: "end", drafts: turn.drafts };
      case "ask":
        return { kind: "act", effect: askSupervisor(view) };
      case "doubted":
        return turn.step;
      case "decided":
        return decide(view, turn.decision);
      case "modelless":
        return {
          kind: "fail",
          error: { code: "not_configured", message: describeModelless(view.nodeRun.nodeId) },
        };
    }
  },
  settle: (view, _effect, outcome) => settle(view, outcome),
};

/** Finds the decision that an earlier turn of this supervisor held. A no of people to it stays a no. */
function findHeldDecision({ run, nodeRun }: NodeView): OrchestratorDecision | undefined {
  const { nodeId, startedSequence } = nodeRun;
  return run.orchestrator.held?.find(
    (heldDecision) => heldDecision.nodeId === nodeId && heldDecision.sequence > startedSequence,
  )?.decision;
}

type Turn =
  | { readonly kind: "capped"; readonly drafts: readonly WorkflowDraft[] }
  | { readonly kind: "ask" }
  /** Its configuration does not say what a model is asked. */
  | { readonly kind: "modelless" }
  | PlayedTurn;

function chooseTurn(view: NodeView): Turn {
  const capped = draftLoopLimit(view);
  if (capped) return { kind: "capped", drafts: capped };
  const played = view.settings.play?.playTurn(view);
  return played ?? { kind: hasSupervisorModel(view.node.node) ? "ask" : "modelless" };
}

function describeModelless(nodeId: string): string {
  return `node ${nodeId} is a supervisor without a model to decide: give it config.prompt, config.systemPrompt or config.model`;
}

function parseDecision(value: unknown): OrchestratorDecision | undefined {
  const parsed = decisionSchema.safeParse(value);
  return parsed.success ? parsed.data : undefined;
}

/** A decision is carried out, held, put to people or refused. */
type DecidedStep = Extract<NodeStep, { readonly kind: "complete" | "record" | "suspend" | "fail" }>;

/** A decision below the floor is held; what states no confidence is not. */
function decide(view: NodeView, decision: OrchestratorDecision): DecidedStep {
  const isDoubted = confidenceOf(decision) < view.settings.confidenceFloor;
  return isDoubted ? { kind: "record", drafts: [draftEscalation(view, decision)] } : execute(view, decision);
}

function confidenceOf(decision: OrchestratorDecision): number {
  return decision.kind === "ask-user" ? 1 : (decision.confidence ?? 1);
}

function draftEscalation(view: NodeView, decision: OrchestratorDecision): WorkflowDraft {
  const worker = decision.kind === "next-worker" ? decision.nextWorkerIds[0] : undefined;
  return withNodeId(view, {
    type: "core.workflowChain.confidence-escalated",
    payload: {
      confidence: confidenceOf(decision),
      floor: view.settings.confidenceFloor,
      escalationKind: "escalate",
      parentRunId: identityOf(view.run),
      ...(worker !== undefined && { workerId: worker }),
      originalDecision: decision,
    },
  });
}

/** The escalated event is in the log; what people are asked comes behind it. */
function stepEscalated(view: NodeView, decision: OrchestratorDecision): NodeStep {
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
        artifactId: `${identityOf(view.run)}:${view.nodeRun.nodeId}:${view.run.orchestrator.decided + 1}`,
        artifactType: DECISION_ARTIFACT,
        title,
        description: `The supervisor's confidence is ${confidenceOf(decision)}, below ${view.settings.confidenceFloor}.`,
        artifactData: decision,
        actions: ["accept", "reject", "edit-accept"],
      },
    },
  };
}

/** G3: the decision that people agreed to, or the one that they put in its place. */
function applyRatification(view: NodeView, resumeValue: unknown): NodeStep {
  const value = isRecord(resumeValue) ? resumeValue : {};
  const { action, editedArtifactData } = value;
  const pending = findHeldDecision(view) ?? view.settings.play?.findDoubtedDecision(view);
  const decision = action === "edit-accept" ? parseDecision(editedArtifactData) : pending;
  if (!decision || !isAgreed({ resumeValue })) {
    const message =
      action === "timeout" ? "nobody agreed to the decision in time" : "the decision was not accepted";
    return { kind: "fail", error: { code: "decision_rejected", message } };
  }
  return execute(view, decision);
}

function execute(view: NodeView, decision: OrchestratorDecision): DecidedStep {
  return decision.kind === "terminate"
    ? (refuseEarlyEnd(view, decision) ?? carryOut(view, decision))
    : carryOut(view, decision);
}

const UNRESOLVED = "verification-failed";

/**
 * RFC 0090 §B: a run does not end as a success over work that was not accepted. Somebody rules on that first, or it fails: the
 * decision to end is held as one below the floor is.
 */
function refuseEarlyEnd(view: NodeView, decision: OrchestratorDecision): DecidedStep | undefined {
  const open = listUnresolved(view.run);
  if (open.length === 0) return undefined;
  const workers = open.map(({ workerId }) => workerId).join(", ");
  const verifiers = open.flatMap(({ nodeId }) => {
    const node = view.graph.nodes.get(nodeId);
    const verifier = node && gateOf(node)?.verifier;
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
        artifactId: `${identityOf(view.run)}:${view.nodeRun.nodeId}:${view.run.orchestrator.decided + 1}`,
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

/** People know that the work was not accepted: what they say is done. */
function stepRelease(view: NodeView, answer: Answer): NodeStep {
  const { action, editedArtifactData } = isRecord(answer.resumeValue) ? answer.resumeValue : {};
  const decision = parseDecision(
    action === "edit-accept" ? editedArtifactData : answer.asked.data["artifactData"],
  );
  if (decision && isAgreed(answer)) return carryOut(view, decision);
  const why = action === "timeout" ? "nobody let the run end in time" : "the run was not let end";
  return { kind: "fail", error: createUnverifiedError(`${why} over work that was not accepted`) };
}

function carryOut(view: NodeView, decision: OrchestratorDecision): DecidedStep {
  const decided = withNodeId(view, {
    type: "runOrchestrator.decided",
    payload: {
      agentId: view.run.orchestrator.agentId ?? agentIdOf(view),
      decision,
      iteration: view.run.orchestrator.decided + 1,
    },
  } as const);
  // CO-3: the end is all that comes behind it.
  return decision.kind === "terminate"
    ? { kind: "complete", outputs: { decision }, after: [decided] }
    : { kind: "complete", outputs: { decision }, before: [decided] };
}

/** Records the model's decision at once, because asking again could give another one. */
function settle(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  if (outcome.kind !== "model_answered") return draftUndecided(view, outcome);
  if (outcome.text.trim() === "" && outcome.object === undefined)
    return [draftFailed(view, { code: "model_answer_empty", message: "the model answered nothing" })];
  if (outcome.isCutOff)
    return draftMalformed(view, "the model's answer was cut off where the bound of its length is");
  const decision = readDecision(outcome);
  if (!decision) return draftMalformed(view, "the model's answer is no decision");
  return findForeignWorker(view.node.node.config, decision) === undefined
    ? draftsOf(view, decide(view, decision))
    : draftMalformed(view, "the model's decision names a worker that is not among the supervisor's workers");
}

function draftMalformed(view: NodeView, message: string): readonly WorkflowDraft[] {
  return [draftFailed(view, { code: "decision_malformed", message })];
}

function draftUndecided(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  if (outcome.kind === "model_refused")
    return [draftFailed(view, { code: REFUSED, message: "the model refused to decide" })];
  return draftFailureOf(view, outcome);
}

function draftsOf(view: NodeView, step: DecidedStep): readonly WorkflowDraft[] {
  const { nodeId } = view.nodeRun;
  switch (step.kind) {
    case "record":
      return step.drafts;
    case "suspend":
      return draftSuspension(view, step.interrupt);
    case "fail":
      return [draftFailed(view, step.error)];
    case "complete": {
      const payload = { nodeId, outputs: { ...step.outputs } };
      return [...(step.before ?? []), { type: "node.completed", nodeId, payload }, ...(step.after ?? [])];
    }
  }
}
