/**
 * Owns: what each event of the log means for the state. An event already happened, so nothing here refuses: a log
 * that cannot be folded breaks an invariant and is reported as damaged.
 *
 * L2 sequences are gapless. L4 the same log folds to the same state in every release: change the meaning of an old
 * event only by a new event version. D5 terminal states absorb; no fact follows `coordination.terminal`.
 */
import { Map as ImmutableMap, OrderedMap, OrderedSet } from "immutable";
import { invariant, unreachable } from "../contracts/errors.ts";
import type { FactEvent } from "../contracts/run-event.ts";
import { isFact, type OpenWopEvent, type RunEvent } from "../contracts/run-event.ts";
import { epochMsOf, type CoordinationId, type StepId } from "../contracts/ids.ts";
import {
  childOf,
  isEnded,
  unopened,
  type Coordination,
  type EndedPhase,
  type OpenCoordination,
  type Step,
  type StepPhase,
} from "./state.ts";

export function fold(coordinationId: CoordinationId, events: Iterable<RunEvent>): Coordination {
  let state: Coordination = unopened(coordinationId);
  for (const event of events) state = evolve(state, event);
  return state;
}

export function evolve(state: Coordination, event: RunEvent): Coordination {
  invariant(event.runId === state.coordinationId, `L2: ${event.eventId} is not of ${state.coordinationId}`);
  invariant(
    event.sequence === state.nextSequence,
    `L2: expected sequence ${state.nextSequence} at ${event.eventId}`,
  );
  const evolved = isFact(event) ? evolveFact(state, event) : evolveOpenWop(state, event);
  return { ...evolved, nextSequence: event.sequence + 1, changedAtMs: epochMsOf(event.timestamp) };
}

type KnownCoordination = Exclude<Coordination, { kind: "unopened" }>;

function evolveFact(state: Coordination, event: FactEvent): KnownCoordination {
  if (event.type === "coordination.created") return created(state, event);
  invariant(
    state.kind === "open",
    `D5: ${event.type} on a coordination that is ${state.kind}: ${event.eventId}`,
  );
  const open = { ...state, lastFactId: event.eventId };
  switch (event.type) {
    case "step.admitted":
      return admitted(open, event);
    case "step.acknowledged": {
      const { stepId, childSessionKey } = event.payload;
      const acknowledged = { ...open, children: open.children.set(childSessionKey, stepId) };
      return withStep(acknowledged, stepId, (step) => evolveStep(step, event));
    }
    case "step.dispatched":
    case "step.completed":
    case "step.failed":
    case "step.timed_out":
      return withStep(open, event.payload.stepId, (step) => evolveStep(step, event));
    case "conflict.detected":
      return conflictDetected(open, event);
    case "conflict.resolved":
      return conflictResolved(open, event);
    case "coordination.escalated":
      return { ...open, escalations: [...open.escalations, event.payload] };
    case "coordination.terminal":
      return { ...open, kind: "ended", status: event.payload.status, endedAtMs: epochMsOf(event.timestamp) };
    default:
      return unreachable(event, "fact");
  }
}

function created(state: Coordination, event: FactEvent & { type: "coordination.created" }): OpenCoordination {
  invariant(state.kind === "unopened", `created twice: ${event.eventId}`);
  return {
    kind: "open",
    coordinationId: event.runId,
    nextSequence: 1,
    created: event.payload,
    createdEventId: event.eventId,
    createdAtMs: epochMsOf(event.timestamp),
    changedAtMs: epochMsOf(event.timestamp),
    lastFactId: event.eventId,
    steps: OrderedMap(),
    openSteps: OrderedSet(),
    children: ImmutableMap(),
    endedSteps: { completed: 0, failed: 0, cancelled: 0, timed_out: 0 },
    iterations: 0,
    conflicts: [],
    escalations: [],
  };
}

function admitted(state: OpenCoordination, event: FactEvent & { type: "step.admitted" }): OpenCoordination {
  const { stepId } = event.payload;
  invariant(!state.steps.has(stepId), `admitted twice: ${stepId}`);
  const step: Step = {
    spec: event.payload,
    admittedAtMs: epochMsOf(event.timestamp),
    phase: { status: "waiting", attempt: 0 },
    lastFactId: event.eventId,
  };
  return { ...state, steps: state.steps.set(stepId, step), openSteps: state.openSteps.add(stepId) };
}

type StepEvent = FactEvent & {
  type: "step.dispatched" | "step.acknowledged" | "step.completed" | "step.failed" | "step.timed_out";
};

export function evolveStep(step: Step, event: StepEvent): Step {
  const next = { ...step, lastFactId: event.eventId };
  const { phase } = step;
  if (event.type === "step.dispatched") {
    invariant(
      event.payload.attempt === phase.attempt + 1,
      `D3: attempt ${event.payload.attempt} out of order: ${event.eventId}`,
    );
    invariant(
      event.payload.attempt <= step.spec.retryBudget + 1,
      `D4: attempt ${event.payload.attempt} is over the budget: ${event.eventId}`,
    );
    invariant(mayRun(phase), `D5: dispatched while ${phase.status}: ${event.eventId}`);
    const { attempt, deadlineAtMs } = event.payload;
    return {
      ...next,
      phase: { status: "dispatched", attempt, dispatchedAtMs: epochMsOf(event.timestamp), deadlineAtMs },
    };
  }
  invariant(
    event.payload.attempt === phase.attempt,
    `D3: outcome of attempt ${event.payload.attempt}: ${event.eventId}`,
  );
  if (event.type !== "step.acknowledged") return { ...next, phase: ended(phase, event) };
  invariant(phase.status === "dispatched", `acknowledged while ${phase.status}: ${event.eventId}`);
  const { childSessionKey, childRunId } = event.payload;
  const { attempt, dispatchedAtMs, deadlineAtMs } = phase;
  return {
    ...next,
    acknowledgedEventId: event.eventId,
    phase: {
      status: "running",
      attempt,
      dispatchedAtMs,
      acknowledgedAtMs: epochMsOf(event.timestamp),
      deadlineAtMs,
      childSessionKey,
      childRunId,
    },
  };
}

/** D5: work that goes on, was completed or was cancelled is not begun again. */
function mayRun({ status }: StepPhase): boolean {
  return status === "waiting" || status === "failed" || status === "timed_out";
}

function ended(
  phase: StepPhase,
  event: Exclude<StepEvent, { type: "step.dispatched" | "step.acknowledged" }>,
): EndedPhase {
  invariant(
    phase.status === "dispatched" || phase.status === "running",
    `D5: ${event.type} while ${phase.status}: ${event.eventId}`,
  );
  const child = childOf(phase);
  const common = {
    attempt: phase.attempt,
    dispatchedAtMs: phase.dispatchedAtMs,
    ...(phase.status === "running" && { acknowledgedAtMs: phase.acknowledgedAtMs }),
    deadlineAtMs: phase.deadlineAtMs,
    endedAtMs: epochMsOf(event.timestamp),
    ...(child && { child: { childSessionKey: child.childSessionKey, childRunId: child.childRunId } }),
  };
  switch (event.type) {
    case "step.completed":
      return {
        status: "completed",
        ...common,
        ...(event.payload.output && { output: event.payload.output }),
      };
    case "step.failed":
      return {
        status: event.payload.cancelled ? "cancelled" : "failed",
        ...common,
        error: event.payload.error,
      };
    case "step.timed_out":
      return { status: "timed_out", ...common };
    default:
      return unreachable(event, "outcome");
  }
}

function conflictDetected(
  state: OpenCoordination,
  event: FactEvent & { type: "conflict.detected" },
): OpenCoordination {
  invariant(
    state.conflicts.every(({ conflictId }) => conflictId !== event.payload.conflictId),
    `A3: conflict ${event.payload.conflictId} detected twice: ${event.eventId}`,
  );
  return { ...state, conflicts: [...state.conflicts, { ...event.payload, detectedEventId: event.eventId }] };
}

function conflictResolved(
  state: OpenCoordination,
  event: FactEvent & { type: "conflict.resolved" },
): OpenCoordination {
  const index = state.conflicts.findIndex((conflict) => conflict.conflictId === event.payload.conflictId);
  const conflict = state.conflicts[index];
  invariant(
    conflict !== undefined && !conflict.resolution,
    `A3: resolution without an open conflict: ${event.eventId}`,
  );
  return { ...state, conflicts: state.conflicts.with(index, { ...conflict, resolution: event.payload }) };
}

function evolveOpenWop(state: Coordination, event: OpenWopEvent): KnownCoordination {
  invariant(state.kind !== "unopened", `L5: ${event.type} before coordination.created: ${event.eventId}`);
  if (event.type === "runOrchestrator.decided") {
    const decided = { ...state, iterations: event.payload.iteration };
    return event.payload.decision.nextWorkerIds.reduce((next, id) => chained(next, id, event), decided);
  }
  return event.type === "core.workflowChain.event" ? chained(state, event.payload.workerId, event) : state;
}

function chained(state: KnownCoordination, workerId: string, event: OpenWopEvent): KnownCoordination {
  return withStep(state, workerId as StepId, (step) => ({ ...step, chainEventId: event.eventId }));
}

function withStep<S extends KnownCoordination>(state: S, stepId: StepId, change: (step: Step) => Step): S {
  const step = state.steps.get(stepId);
  invariant(step !== undefined, `no step ${stepId} in ${state.coordinationId}`);
  const changed = change(step);
  return { ...state, steps: state.steps.set(stepId, changed), ...tallied(state, step, changed) };
}

function counted(counts: Tally["endedSteps"], status: EndedPhase["status"], by: number): Tally["endedSteps"] {
  return { ...counts, [status]: counts[status] + by };
}

type Tally = Pick<KnownCoordination, "openSteps" | "endedSteps">;

/** A step ends, or a retry takes it up again. */
function tallied(
  { openSteps, endedSteps }: Tally,
  { spec, phase: before }: Step,
  { phase: after }: Step,
): Tally {
  const { stepId } = spec;
  if (isEnded(after) && !isEnded(before)) {
    return { openSteps: openSteps.remove(stepId), endedSteps: counted(endedSteps, after.status, 1) };
  }
  if (isEnded(before) && !isEnded(after)) {
    return { openSteps: openSteps.add(stepId), endedSteps: counted(endedSteps, before.status, -1) };
  }
  return { openSteps, endedSteps };
}
