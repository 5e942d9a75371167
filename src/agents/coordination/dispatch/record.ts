/**
 * Owns: turning drafts of facts into events of the log, each with its cause and followed by its OpenWOP counterparts.
 *
 * L2 sequences are gapless. L3 every `causationId` names an earlier event of the log. L5 the events behind a fact are
 * `project(fact, state)`.
 */
import { assertNever } from "../contracts/errors.ts";
import { createEventId, formatTimestamp, type EpochMs, type EventId, type StepId } from "../contracts/ids.ts";
import type { FactDraft, FactEvent, OpenWopDraft, RunEvent } from "../contracts/run-event.ts";
import { evolve } from "../ledger/evolve.ts";
import type { Coordination, KnownCoordination, Step } from "../ledger/state.ts";
import { projectFact } from "../openwop/project.ts";

/** Facts as events of the log, and the coordination as it is behind them. */
export interface RecordedFacts {
  readonly events: readonly RunEvent[];
  readonly state: Coordination;
}

/**
 * Returns the events for these facts, each followed by the OpenWOP events projected from it, and the state after them;
 * nothing is stored.
 */
export function recordFacts(before: Coordination, facts: readonly FactDraft[], now: EpochMs): RecordedFacts {
  const events: RunEvent[] = [];
  const timestamp = formatTimestamp(now);
  let state = before;
  const append = (draft: FactDraft | OpenWopDraft): RunEvent => {
    const event = createEvent(state, draft, timestamp);
    state = evolve(state, event);
    events.push(event);
    return event;
  };
  for (const draft of facts) {
    const causationId = findCauseOfFact(draft, state);
    const fact = append({
      ...draft,
      ...pickNodeId(draft),
      ...(causationId && { causationId }),
    }) as FactEvent;
    if (state.kind !== "unopened") for (const counterpart of projectFact(fact, state)) append(counterpart);
  }
  return { events, state };
}

function createEvent(state: Coordination, draft: FactDraft | OpenWopDraft, timestamp: string): RunEvent {
  const place = {
    eventId: createEventId(state.coordinationId, state.nextSequence),
    runId: state.coordinationId,
    sequence: state.nextSequence,
    timestamp,
  };
  return { ...place, ...draft };
}

/** Returns the step of a fact as the node id of its event; empty where the fact is about no step. */
function pickNodeId(draft: FactDraft): { nodeId?: string } {
  return "stepId" in draft.payload && draft.payload.stepId ? { nodeId: draft.payload.stepId } : {};
}

/** Returns the event that caused a fact. It follows from the state before the fact (L3). */
function findCauseOfFact(draft: FactDraft, state: Coordination): EventId | undefined {
  if (state.kind === "unopened" || draft.type === "coordination.created") return undefined;
  switch (draft.type) {
    case "step.admitted":
      return findCauseOfAdmission(state, draft.payload.parentStepId);
    case "step.dispatched":
      return findCauseOfDispatch(state, draft.payload.stepId);
    case "step.acknowledged":
    case "step.completed":
    case "step.failed":
    case "step.timed_out":
    case "step.reported":
    case "step.progressed":
    case "child.observed":
    case "child.differed":
    case "step.outcome_refused":
    case "step.skipped":
    case "step.retry_granted":
    case "step.child_stopped":
    case "result.withheld":
    case "result.shortened":
    case "message.suppressed":
    case "budget.lent":
    case "result.held":
    case "result.verified":
    case "verification.failed":
    case "result.revised":
    case "worktree.opened":
    case "worktree.merge_begun":
    case "worktree.merged":
    case "worktree.conflicted":
    case "worktree.removed":
      return state.steps.get(draft.payload.stepId)?.lastFactId;
    case "claim.acquired":
    case "claim.renewed":
    case "resource.changed":
    case "write.undetermined":
    case "privilege.refused":
    case "usage.recorded":
    case "budget.reached":
      return state.steps.get(draft.payload.stepId)?.lastFactId ?? state.createdEventId;
    case "conflict.resolved":
      return findConflictDetection(state, draft.payload.conflictId);
    case "claim.released":
    case "conflict.detected":
    case "coordination.escalated":
    case "coordination.cancel_requested":
    case "escalation.answered":
    case "escalation.notified":
    case "escalation.forwarded":
    case "escalation.closed":
    case "session.told":
    case "plan.judged":
    case "coordination.terminal":
      return state.lastFactId;
    default:
      return assertNever(draft, "fact draft");
  }
}

function findConflictDetection(state: KnownCoordination, id: string): EventId | undefined {
  return state.conflicts.find(({ conflictId }) => conflictId === id)?.detectedEventId;
}

/** Finds the cause of an admission: that the parent's child was there, or the coordination itself. */
function findCauseOfAdmission(state: KnownCoordination, parentStepId: StepId | undefined): EventId {
  const parent = parentStepId && state.steps.get(parentStepId);
  return parent?.acknowledgedEventId ?? state.createdEventId;
}

/** Finds the cause of a dispatch. A planned step begins because of the dependency that completed last. */
function findCauseOfDispatch(state: KnownCoordination, stepId: StepId): EventId | undefined {
  const step = state.steps.get(stepId);
  const dependsOn = step?.spec.planned?.dependsOn;
  if (!step || step.phase.status !== "waiting" || !dependsOn?.length) return step?.lastFactId;
  return dependsOn
    .flatMap((dependency) => listCompletion(state.steps.get(dependency)))
    .reduce((newest, fact) => (parseSequence(fact) > parseSequence(newest) ? fact : newest), step.lastFactId);
}

/** Returns the event that completed the step; empty where it has not completed. */
function listCompletion(step: Step | undefined): EventId[] {
  return step?.phase.status === "completed" ? [step.lastFactId] : [];
}

function parseSequence(eventId: EventId): number {
  return Number(eventId.slice(eventId.lastIndexOf(":") + 1));
}
