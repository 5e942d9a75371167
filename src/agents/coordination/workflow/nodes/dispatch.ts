/**
 * Owns: `core.dispatch` (RFC 0007): the workers of one decision, one after the other, each through the handoff state
 * machine (RFC 0037). A worker that fails or is cancelled is told to the supervisor and hands nothing over.
 *
 * D1 a dispatch carries out the decision that was the newest of its supervisors when it was started, whatever is decided later.
 */
import type { OrchestratorDecision } from "../../contracts/workflows/workflow-events.ts";
import type { NodeStep, NodeType, NodeView } from "../node-contract/node-type.ts";
import { findSupervisors } from "../state/graph.ts";
import type { Handoff, RecordedDecision } from "../state/workflow-state.ts";
import { isRecord } from "../../std/is-record.ts";
import { createChildOutputs, listGateProblems } from "./child-gate.ts";
import { mappingOf, type Mapping } from "./child-run.ts";
import { beginHandoff, settleHandoff, stepHandoff, type Handover } from "./handoff.ts";

export const dispatch: NodeType = {
  check: listGateProblems,
  step: (view) => {
    const decided = findDecision(view);
    if (!decided)
      return failNode("no_pending_decision", "no supervisor has decided anything that could be dispatched");
    const { decision } = decided;
    switch (decision.kind) {
      case "terminate":
        return { kind: "complete", outputs: {} };
      case "ask-user":
        return askUser(view, decision.prompt);
      case "next-worker":
        return stepNextWorker(view, decision);
    }
  },
  settle: (view, _effect, outcome) => {
    const { handoff } = view.nodeRun;
    return handoff ? settleHandoff(view, handoff, handoverOf(view, handoff), outcome) : [];
  },
};

/** D1: a dispatch to which no supervisor leads takes the decision of any. */
function findDecision({ run, graph, nodeRun }: NodeView): RecordedDecision | undefined {
  const { earlier = [], last } = run.orchestrator;
  const supervisors = findSupervisors(graph.nodes, nodeRun.nodeId);
  return [...earlier, ...(last ? [last] : [])].findLast(
    ({ sequence, nodeId }) =>
      sequence < nodeRun.enteredSequence && (supervisors.size === 0 || supervisors.has(nodeId)),
  );
}

function failNode(code: string, message: string): NodeStep {
  return { kind: "fail", error: { code, message } };
}

function askUser({ nodeRun }: NodeView, prompt: string): NodeStep {
  const answer = nodeRun.answers.at(-1);
  if (answer) {
    const value = isRecord(answer.resumeValue) ? answer.resumeValue : {};
    return { kind: "complete", outputs: { answers: value["answers"] ?? {} } };
  }
  if (nodeRun.interrupt) return { kind: "wait" };
  const data = { questions: [{ id: "q1", question: prompt }] };
  return { kind: "suspend", interrupt: { kind: "clarification", data } };
}

type NextWorker = OrchestratorDecision & { kind: "next-worker" };

function stepNextWorker(view: NodeView, { nextWorkerIds }: NextWorker): NodeStep {
  const { handoff } = view.nodeRun;
  if (view.node.node.config["fanOutPolicy"] === "reject" && nextWorkerIds.length > 1)
    return failNode("fan_out_unsupported", "the decision names several workers, and fanOutPolicy is reject");
  const handoffStep = handoff && stepHandoff(view, handoff, handoverOf(view, handoff));
  if (handoffStep) return handoffStep;
  const index = handoff ? handoff.index + 1 : 0;
  const workerId = nextWorkerIds[index];
  if (workerId === undefined) return { kind: "complete", outputs: createChildOutputs(view, handoff) };
  return beginHandoff(view, workerId, handoverOf(view, { workerId, index }));
}

function handoverOf(view: NodeView, { workerId, index }: Pick<Handoff, "workerId" | "index">): Handover {
  const { config } = view.node.node;
  const causationId = findDecision(view)?.eventId;
  const readMapping = (perWorker: string, common: string): Mapping =>
    findWorkerMapping(config[perWorker], workerId) ?? mappingOf(config[common]);
  return {
    cause: "core.dispatch",
    inputMapping: readMapping("perWorkerInputMappings", "inputMapping"),
    outputMapping: readMapping("perWorkerOutputMappings", "outputMapping"),
    ordinal: `${view.nodeRun.executions}:${index}`,
    ...(causationId && { causationId }),
  };
}

/** A worker's own mapping takes the place of the common one, and is not merged with it. */
function findWorkerMapping(perWorker: unknown, workerId: string): Mapping | undefined {
  const workerMapping =
    isRecord(perWorker) && Object.hasOwn(perWorker, workerId) ? perWorker[workerId] : undefined;
  return workerMapping === undefined ? undefined : mappingOf(workerMapping);
}
