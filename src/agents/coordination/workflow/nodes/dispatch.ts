/**
 * Owns: `core.dispatch` (RFC 0007): the workers of the newest decision, one after the other, each through the handoff
 * state machine (RFC 0037). A worker that fails or is cancelled is told to the supervisor and hands nothing over.
 */
import type { OrchestratorDecision, WorkflowDraft } from "../../contracts/workflow-events.ts";
import {
  idOfDraft,
  of,
  type EffectOutcome,
  type NodeStep,
  type NodeType,
  type NodeView,
} from "../node-type.ts";
import type { Handoff } from "../state.ts";
import { isRecord } from "../values.ts";
import { childEffect, harvest, mappedInputs, mappingOf, type Mapping } from "./child-run.ts";

export const dispatch: NodeType = {
  step: (view) => {
    const last = view.run.orchestrator.last;
    if (!last)
      return failed("no_pending_decision", "no supervisor has decided anything that could be dispatched");
    const { decision } = last;
    switch (decision.kind) {
      case "terminate":
        return { kind: "complete", outputs: {} };
      case "ask-user":
        return askUser(view, decision.prompt);
      case "next-worker":
        return nextWorker(view, decision);
    }
  },
  settle: (view, _effect, outcome) => settle(view, outcome),
};

function failed(code: string, message: string): NodeStep {
  return { kind: "fail", error: { code, message } };
}

function askUser({ own }: NodeView, prompt: string): NodeStep {
  const answer = own.answers.at(-1);
  if (answer) {
    const value = isRecord(answer.resumeValue) ? answer.resumeValue : {};
    return { kind: "complete", outputs: { answers: value["answers"] ?? {} } };
  }
  if (own.interrupt) return { kind: "wait" };
  const data = { questions: [{ id: "q1", question: prompt }] };
  return { kind: "suspend", interrupt: { kind: "clarification", data } };
}

type NextWorker = OrchestratorDecision & { kind: "next-worker" };

function nextWorker(view: NodeView, { nextWorkerIds }: NextWorker): NodeStep {
  const { handoff } = view.own;
  const { config } = view.node.node;
  if (config["fanOutPolicy"] === "reject" && nextWorkerIds.length > 1)
    return failed("fan_out_unsupported", "the decision names several workers, and fanOutPolicy is reject");
  if (handoff && !isOver(handoff)) return { kind: "act", effect: workerEffect(view, handoff) };
  const index = handoff ? handoff.index + 1 : 0;
  const workerId = nextWorkerIds[index];
  if (workerId === undefined) return { kind: "complete", outputs: outcomeOf(handoff) };
  const causationId = view.run.orchestrator.last?.eventId;
  const began = of(view, {
    type: "core.workflowChain.event",
    ...(causationId && { causationId }),
    payload: { phase: "dispatch.began", workerId, parentRunId: view.run.runId },
  } as const);
  return { kind: "record", drafts: [began] };
}

function isOver({ phase }: Handoff): boolean {
  return phase === "ended" || phase === "harvested";
}

function outcomeOf(handoff: Handoff | undefined): Record<string, unknown> {
  return {
    ...(handoff?.childRunId !== undefined && { childRunId: handoff.childRunId }),
    ...(handoff?.childStatus && { childStatus: handoff.childStatus }),
  };
}

function workerEffect(view: NodeView, { workerId, index, childRunId }: Handoff) {
  const { config } = view.node.node;
  const mapping = mappingFor(config["perWorkerInputMappings"], workerId) ?? mappingOf(config["inputMapping"]);
  return childEffect(view, {
    cause: "core.dispatch",
    workflowId: workerId,
    inputs: mappedInputs(view, mapping),
    ordinal: `${view.own.executions}:${index}`,
    ...(childRunId !== undefined && { childRunId }),
  });
}

/** A worker's own mapping takes the place of the common one, and is not merged with it. */
function mappingFor(perWorker: unknown, workerId: string): Mapping | undefined {
  const own = isRecord(perWorker) && Object.hasOwn(perWorker, workerId) ? perWorker[workerId] : undefined;
  return own === undefined ? undefined : mappingOf(own);
}

function settle(view: NodeView, outcome: EffectOutcome): readonly WorkflowDraft[] {
  const { handoff } = view.own;
  if (!handoff || isOver(handoff)) return [];
  switch (outcome.kind) {
    case "child_created":
      return handoff.phase === "running" ? [] : created(view, handoff, outcome.childRunId);
    case "child_refused":
    case "failed":
      return [chain(view, handoff, { phase: phaseOfFailure(handoff), error: outcome.error })];
    case "child_ended":
      return ended(view, handoff, outcome);
    default:
      return [];
  }
}

function phaseOfFailure({ phase }: Handoff): "dispatch.failed" | "child.failed" {
  return phase === "dispatching" ? "dispatch.failed" : "child.failed";
}

function created(view: NodeView, handoff: Handoff, childRunId: string): WorkflowDraft[] {
  const decided = view.run.orchestrator.last?.eventId;
  return [
    of(view, {
      type: "node.dispatched",
      ...(decided && { causationId: decided }),
      payload: { childRunId, childWorkflowId: handoff.workerId },
    }),
    chain(view, { ...handoff, childRunId }, { phase: "dispatch.succeeded" }),
  ];
}

function ended(
  view: NodeView,
  handoff: Handoff,
  { status, variables, error }: EffectOutcome & { kind: "child_ended" },
): WorkflowDraft[] {
  const told = chain(view, handoff, { phase: `child.${status}`, ...(error && { error }) });
  const { config } = view.node.node;
  const mapping =
    mappingFor(config["perWorkerOutputMappings"], handoff.workerId) ?? mappingOf(config["outputMapping"]);
  if (status !== "completed" || Object.keys(mapping).length === 0) return [told];
  const changes = harvest(view, mapping, variables);
  const harvested = of(view, {
    type: "core.workflowChain.event",
    causationId: idOfDraft(view, 0),
    payload: {
      phase: "output.harvested",
      workerId: handoff.workerId,
      parentRunId: view.run.runId,
      ...(handoff.childRunId !== undefined && { childRunId: handoff.childRunId }),
      harvestedKeys: changes.map(({ payload: { name } }) => name),
    },
  } as const);
  return [told, ...changes, harvested];
}

type Phase = Extract<WorkflowDraft, { type: "core.workflowChain.event" }>["payload"];

/** RFC 0037: each phase is caused by the one before it. */
function chain(
  view: NodeView,
  { workerId, childRunId, chainEventId }: Handoff,
  told: Pick<Phase, "phase" | "error">,
): WorkflowDraft {
  return of(view, {
    type: "core.workflowChain.event",
    causationId: chainEventId,
    payload: {
      ...told,
      workerId,
      parentRunId: view.run.runId,
      ...(childRunId !== undefined && told.phase !== "dispatch.failed" && { childRunId }),
    },
  });
}
