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
import { agentIdOf, type NodeView } from "./node-contract/node-type.ts";
import { advanceRun, stepOf, viewOf, type ProgressContext, type RunContext } from "./advance-run.ts";
import { draftNodeStart } from "./node-failure.ts";
import { statusOf } from "./state/run-view.ts";
import { isAtFork, type Interrupt, type WorkflowRun } from "./state/workflow-state.ts";
import { draftSuspension } from "./node-contract/suspension.ts";

/**
 * Drafts the beginning of a fork's own history; empty for a run that only waits for people, and for one that has
 * begun.
 */
export function draftGoingLive(
  run: WorkflowRun,
  context: RunContext,
  process: string,
): readonly WorkflowDraft[] {
  if (!isAtFork(run)) return [];
  // As of its last event: the time between is nobody's.
  const then = { ...context, now: run.changedAtMs };
  const rest = restOf(run, then);
  const { events, effects, wakeAtMs } = advanceRun(run, then, rest);
  const works = events.length > 0 || effects.length > 0 || wakeAtMs !== undefined;
  return works ? [{ type: "run.resuming", payload: { process, fromStatus: statusOf(run) } }, ...rest] : [];
}

/** Drafts what follows from the last event of a fork, as its source would have appended it. */
export function restOf(run: WorkflowRun, context: ProgressContext): WorkflowDraft[] {
  return [...run.nodes.values()].flatMap(({ nodeId }) => {
    const view = viewOf({ ...context, run }, nodeId);
    if (!view) return [];
    // Cut off between a failed attempt and the next one, which a paused run begins when it is resumed.
    const { attempt, isRetrying } = view.nodeRun;
    if (isRetrying) return run.phase.kind === "paused" ? [] : [draftNodeStart(view.node.node, attempt)];
    return view.node.node.typeId === SUPERVISOR
      ? [...draftRestOfTurn(view), ...draftMissingQuestion(view)]
      : draftMissingQuestion(view);
  });
}

/** A decision comes with the end of its node, the last one behind it. */
function draftRestOfTurn(view: NodeView): WorkflowDraft[] {
  const { nodeRun, run } = view;
  const { nodeId } = nodeRun;
  const { last, decided, agentId = agentIdOf(view) } = run.orchestrator;
  const isDecided = last?.nodeId === nodeId && last.sequence > nodeRun.startedSequence;
  if (isDecided && nodeRun.status === "running") {
    const { decision } = last;
    return [{ type: "node.completed", nodeId, payload: { nodeId, outputs: { decision } } }];
  }
  const decision = isDecided ? undefined : findLoopEnd(view);
  const payload = decision && { agentId, decision, iteration: decided + 1 };
  return payload ? [{ type: "runOrchestrator.decided", nodeId, payload }] : [];
}

/** The last decision, where the log ends with the node that made it. */
function findLoopEnd({ nodeRun, run }: NodeView): OrchestratorDecision | undefined {
  if (nodeRun.status !== "completed" || nodeRun.endedSequence !== run.nextSequence - 1) return undefined;
  const { success, data } = decisionSchema.safeParse(nodeRun.outputs?.["decision"]);
  return success && data.kind === "terminate" ? data : undefined;
}

/** Suspended, and cut off before it was told what is asked. */
function draftMissingQuestion(view: NodeView): WorkflowDraft[] {
  const { nodeRun } = view;
  const { interrupt, nodeId } = nodeRun;
  if (!interrupt || interrupt.isAsked) return [];
  const { interrupt: _, ...before } = nodeRun;
  const step = stepOf({
    ...view,
    nodeRun: { ...before, status: "running", interrupts: nodeRun.interrupts - 1 },
  });
  const drafts = step.kind === "suspend" ? draftSuspension(view, step.interrupt) : [];
  const request = drafts.find((draft) => draft.type === "interrupt.requested");
  const { kind, key } = interrupt;
  const payload = request ? { ...request.payload, key } : { kind, key, data: questionOf(interrupt, nodeId) };
  return [{ type: "interrupt.requested", nodeId, payload }];
}

/** Returns the question of a node that cannot say it again, because somebody else had asked it. */
function questionOf({ kind, key, reason }: Interrupt, nodeId: string): Readonly<Record<string, unknown>> {
  const question = reason === undefined ? `${nodeId} waits for an answer.` : `${nodeId} waits: ${reason}.`;
  return kind === "approval"
    ? { artifactId: key, artifactType: "approval", title: question, actions: ["accept", "reject"] }
    : { questions: [{ id: "q1", question }] };
}
