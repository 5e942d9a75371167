/**
 * Owns: `core.dispatch` (RFC 0007): the workers of the newest decision, one after the other, each through the handoff
 * state machine (RFC 0037). A worker that fails or is cancelled is told to the supervisor and hands nothing over.
 */
import type { OrchestratorDecision } from "../../contracts/workflows/workflow-events.ts";
import type { NodeStep, NodeType, NodeView } from "../node-contract/node-type.ts";
import type { Handoff } from "../state/workflow-state.ts";
import { isRecord } from "../state/values.ts";
import { gateOutputs, gateProblems } from "./child-gate.ts";
import { mappingOf, type Mapping } from "./child-run.ts";
import { beginHandoff, settleHandoff, stepHandoff, type Handover } from "./handoff.ts";

export const dispatch: NodeType = {
  check: gateProblems,
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
  settle: (view, _effect, outcome) => {
    const { handoff } = view.own;
    return handoff ? settleHandoff(view, handoff, handoverOf(view, handoff), outcome) : [];
  },
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
  if (view.node.node.config["fanOutPolicy"] === "reject" && nextWorkerIds.length > 1)
    return failed("fan_out_unsupported", "the decision names several workers, and fanOutPolicy is reject");
  const going = handoff && stepHandoff(view, handoff, handoverOf(view, handoff));
  if (going) return going;
  const index = handoff ? handoff.index + 1 : 0;
  const workerId = nextWorkerIds[index];
  if (workerId === undefined) return { kind: "complete", outputs: outcomeOf(view, handoff) };
  return beginHandoff(view, workerId, handoverOf(view, { workerId, index }));
}

function outcomeOf(view: NodeView, handoff: Handoff | undefined): Record<string, unknown> {
  return {
    ...(handoff?.childRunId !== undefined && { childRunId: handoff.childRunId }),
    ...(handoff?.childStatus && { childStatus: handoff.childStatus }),
    ...gateOutputs(view, handoff),
  };
}

function handoverOf(view: NodeView, { workerId, index }: Pick<Handoff, "workerId" | "index">): Handover {
  const { config } = view.node.node;
  const causationId = view.run.orchestrator.last?.eventId;
  const mapping = (perWorker: string, common: string): Mapping =>
    mappingFor(config[perWorker], workerId) ?? mappingOf(config[common]);
  return {
    cause: "core.dispatch",
    inputMapping: mapping("perWorkerInputMappings", "inputMapping"),
    outputMapping: mapping("perWorkerOutputMappings", "outputMapping"),
    ordinal: `${view.own.executions}:${index}`,
    ...(causationId && { causationId }),
  };
}

/** A worker's own mapping takes the place of the common one, and is not merged with it. */
function mappingFor(perWorker: unknown, workerId: string): Mapping | undefined {
  const own = isRecord(perWorker) && Object.hasOwn(perWorker, workerId) ? perWorker[workerId] : undefined;
  return own === undefined ? undefined : mappingOf(own);
}
