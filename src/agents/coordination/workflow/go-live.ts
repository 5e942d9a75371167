/**
 * Owns: how a fork goes on when it has taken all that it takes. A branch may be cut off in the middle of what was one append:
 * what the rest of that would have told is told now, as far as it follows from what is there.
 */
import {
  decisionSchema,
  type OrchestratorDecision,
  type WorkflowDraft,
} from "../contracts/workflows/workflow-events.ts";
import { SUPERVISOR } from "./state/graph.ts";
import { readNodeAgentId, type NodeView } from "./node-contract/node-type.ts";
import {
  advanceRun,
  decideNodeStep,
  createNodeView,
  type ProgressContext,
  type RunContext,
} from "./advance-run.ts";
import { draftNodeStart } from "./node-failure.ts";
import { computeRunStatus } from "./state/run-view.ts";
import { isAtFork, type Interrupt, type WorkflowRun } from "./state/workflow-state.ts";
import { draftSuspension } from "./node-contract/suspension.ts";

/**
 * Drafts the beginning of a fork's own history once it has taken all from its source; empty for any other run, for one
 * that only waits for people, and for one that has begun.
 */
export function draftForkGoingLive(
  run: WorkflowRun,
  context: RunContext,
  process: string,
): readonly WorkflowDraft[] {
  if (!isAtFork(run)) return [];
  // As of its last event: the time between is nobody's.
  const atLastEvent = { ...context, now: run.changedAtMs };
  const rest = draftRestOfAppend(run, atLastEvent);
  const { events, effects, wakeAtMs } = advanceRun(run, atLastEvent, rest);
  const hasSomethingToDo = events.length > 0 || effects.length > 0 || wakeAtMs !== undefined;
  return hasSomethingToDo
    ? [{ type: "run.resuming", payload: { process, fromStatus: computeRunStatus(run) } }, ...rest]
    : [];
}

/**
 * Drafts the events that a fork lacks of the append in which it was cut off, as its source would have appended them;
 * empty where none is missing.
 */
export function draftRestOfAppend(run: WorkflowRun, context: ProgressContext): WorkflowDraft[] {
  return [...run.nodes.values()].flatMap(({ nodeId }) => {
    const view = createNodeView({ ...context, run }, nodeId);
    if (!view) return [];
    // Cut off between a failed attempt and the next one, which a paused run begins when it is resumed.
    const { attempt, isRetrying } = view.nodeRun;
    if (isRetrying) return run.phase.kind === "paused" ? [] : [draftNodeStart(view.node.node, attempt)];
    return view.node.node.typeId === SUPERVISOR
      ? [...draftRestOfTurn(view), ...draftMissingQuestion(view)]
      : draftMissingQuestion(view);
  });
}

/** Drafts what a supervisor's turn lacks that was cut off: the end of its node, or the `terminate` behind it. */
function draftRestOfTurn(view: NodeView): WorkflowDraft[] {
  const { nodeRun, run } = view;
  const { nodeId } = nodeRun;
  const { last, decided, agentId = readNodeAgentId(view) } = run.orchestrator;
  const isDecided = last?.nodeId === nodeId && last.sequence > nodeRun.startedSequence;
  if (isDecided && nodeRun.status === "running") {
    const { decision } = last;
    return [{ type: "node.completed", nodeId, payload: { nodeId, outputs: { decision } } }];
  }
  const decision = isDecided ? undefined : findUnrecordedTerminate(view);
  const payload = decision && { agentId, decision, iteration: decided + 1 };
  return payload ? [{ type: "runOrchestrator.decided", nodeId, payload }] : [];
}

/** Finds the `terminate` of a supervisor that ended last in the log, whose decision is not recorded yet. */
function findUnrecordedTerminate({ nodeRun, run }: NodeView): OrchestratorDecision | undefined {
  if (nodeRun.status !== "completed" || nodeRun.endedSequence !== run.nextSequence - 1) return undefined;
  const { success, data } = decisionSchema.safeParse(nodeRun.outputs?.["decision"]);
  return success && data.kind === "terminate" ? data : undefined;
}

/**
 * Drafts the question that a cut-off branch lacks of a suspended node; empty where the node asks nothing or its
 * question is there.
 */
function draftMissingQuestion(view: NodeView): WorkflowDraft[] {
  const { nodeRun } = view;
  const { interrupt, nodeId } = nodeRun;
  if (!interrupt || interrupt.isAsked) return [];
  const { interrupt: _, ...before } = nodeRun;
  const step = decideNodeStep({
    ...view,
    nodeRun: { ...before, status: "running", interrupts: nodeRun.interrupts - 1 },
  });
  const drafts = step.kind === "suspend" ? draftSuspension(view, step.interrupt) : [];
  const request = drafts.find((draft) => draft.type === "interrupt.requested");
  const { kind, key } = interrupt;
  const payload = request
    ? { ...request.payload, key }
    : { kind, key, data: createStandInQuestion(interrupt, nodeId) };
  return [{ type: "interrupt.requested", nodeId, payload }];
}

/** Creates the question of a node that cannot say it again, because somebody else had asked it. */
function createStandInQuestion(
  { kind, key, reason }: Interrupt,
  nodeId: string,
): Readonly<Record<string, unknown>> {
  const question = reason === undefined ? `${nodeId} waits for an answer.` : `${nodeId} waits: ${reason}.`;
  return kind === "approval"
    ? { artifactId: key, artifactType: "approval", title: question, actions: ["accept", "reject"] }
    : { questions: [{ id: "q1", question }] };
}
