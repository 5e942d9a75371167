/**
 * Owns: `core.dispatch` (RFC 0007): the workers of one decision, one after the other, each through the handoff state
 * machine (RFC 0037). A worker that fails or is cancelled is told to the supervisor and hands nothing over.
 *
 * D1 a dispatch carries out the decision that was the newest of its supervisors when it was started, whatever is decided later.
 */
import type { OrchestratorDecision } from "../../contracts/workflows/workflow-events.ts";
import type { NodeStep, NodeType, NodeView } from "../node-contract/node-type.ts";
import { findSupervisorsOfNode } from "../state/graph.ts";
import type { Handoff, RecordedDecision } from "../state/workflow-state.ts";
import { isRecord } from "../../std/is-record.ts";
import { createChildOutputs, listGateProblems } from "./child-gate.ts";
import { readNameMapping, type NameMapping } from "./child-run.ts";
import { createHandoffBeginStep, settleHandoff, stepHandoff, type HandoffTerms } from "./handoff.ts";

export const dispatch: NodeType = {
  check: listGateProblems,
  step: (view) => {
    const decided = findDispatchedDecision(view);
    if (!decided)
      return createFailStep(
        "no_pending_decision",
        "no supervisor has decided anything that could be dispatched",
      );
    const { decision } = decided;
    switch (decision.kind) {
      case "terminate":
        return { kind: "complete", outputs: {} };
      case "ask-user":
        return stepAskUser(view, decision.prompt);
      case "next-worker":
        return stepNextWorker(view, decision);
    }
  },
  settle: (view, _effect, outcome) => {
    const { handoff } = view.nodeRun;
    return handoff ? settleHandoff(view, handoff, createWorkerHandover(view, handoff), outcome) : [];
  },
};

/**
 * Finds the newest decision of the dispatch's supervisors before it was entered (D1), or of any supervisor where none
 * leads to it; `undefined` where there is none.
 */
function findDispatchedDecision({ run, graph, nodeRun }: NodeView): RecordedDecision | undefined {
  const { earlier = [], last } = run.orchestrator;
  const supervisors = findSupervisorsOfNode(graph.nodes, nodeRun.nodeId);
  return [...earlier, ...(last ? [last] : [])].findLast(
    ({ sequence, nodeId }) =>
      sequence < nodeRun.enteredSequence && (supervisors.size === 0 || supervisors.has(nodeId)),
  );
}

function createFailStep(code: string, message: string): NodeStep {
  return { kind: "fail", error: { code, message } };
}

/** Asks the user what the supervisor wants to know, waits, and completes the node with the answers. */
function stepAskUser({ nodeRun }: NodeView, prompt: string): NodeStep {
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

/**
 * Returns the step of the worker at work; when it is over, begins the next one or completes the node. Fails for
 * several workers where `fanOutPolicy` is `reject`.
 */
function stepNextWorker(view: NodeView, { nextWorkerIds }: NextWorker): NodeStep {
  const { handoff } = view.nodeRun;
  if (view.node.node.config["fanOutPolicy"] === "reject" && nextWorkerIds.length > 1)
    return createFailStep(
      "fan_out_unsupported",
      "the decision names several workers, and fanOutPolicy is reject",
    );
  const handoffStep = handoff && stepHandoff(view, handoff, createWorkerHandover(view, handoff));
  if (handoffStep) return handoffStep;
  const index = handoff ? handoff.index + 1 : 0;
  const workerId = nextWorkerIds[index];
  if (workerId === undefined) return { kind: "complete", outputs: createChildOutputs(view, handoff) };
  return createHandoffBeginStep(view, workerId, createWorkerHandover(view, { workerId, index }));
}

function createWorkerHandover(
  view: NodeView,
  { workerId, index }: Pick<Handoff, "workerId" | "index">,
): HandoffTerms {
  const { config } = view.node.node;
  const causationId = findDispatchedDecision(view)?.eventId;
  const readMapping = (perWorker: string, common: string): NameMapping =>
    findWorkerMapping(config[perWorker], workerId) ?? readNameMapping(config[common]);
  return {
    cause: "core.dispatch",
    inputMapping: readMapping("perWorkerInputMappings", "inputMapping"),
    outputMapping: readMapping("perWorkerOutputMappings", "outputMapping"),
    ordinal: `${view.nodeRun.executions}:${index}`,
    ...(causationId && { causationId }),
  };
}

/**
 * Finds a worker's own mapping, which takes the place of the common one and is not merged with it; `undefined` where
 * the worker has none.
 */
function findWorkerMapping(perWorker: unknown, workerId: string): NameMapping | undefined {
  const workerMapping =
    isRecord(perWorker) && Object.hasOwn(perWorker, workerId) ? perWorker[workerId] : undefined;
  return workerMapping === undefined ? undefined : readNameMapping(workerMapping);
}
