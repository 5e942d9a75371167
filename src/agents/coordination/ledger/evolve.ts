/**
 * Owns: what each event of the log means for the state. An event already happened, so nothing here refuses: a log
 * that cannot be folded breaks an invariant and is reported as damaged.
 *
 * L2 sequences are gapless. L4 the same log folds to the same state in every release: change the meaning of an old
 * event only by a new event version. D5 terminal states absorb; no fact follows `coordination.terminal` but what was used.
 */
import { Map as ImmutableMap, OrderedMap, OrderedSet, Set as ImmutableSet } from "immutable";
import { assertInvariant } from "../contracts/errors.ts";
import type { Usage } from "../contracts/fact-fields.ts";
import { type FactEvent, isFact, type OpenWopEvent, type RunEvent } from "../contracts/run-event.ts";
import { epochMsOf, type CoordinationId, type EpochMs, type StepId } from "../contracts/ids.ts";
import { evolveClaims, type ClaimEvent } from "./evolve-claims.ts";
import { setVerdictTarget } from "./evolve-held.ts";
import { evolveQuestion, type QuestionEvent } from "./evolve-questions.ts";
import { evolveStep, type StepEvent } from "./evolve-step.ts";
import { createEmptyBill } from "./bill.ts";
import { addSpawnToBill, evolveUsage, updateBillAfterSpending, takeSpawnOffBill } from "./evolve-usage.ts";
import { evolveWorktree, expectWorktree, type WorktreeEvent } from "./evolve-worktrees.ts";
import {
  addAdmittedStep,
  updateAfterPhaseChange,
  isDelivery,
  createEmptyProgress,
  ONE_SPAWN,
  spentFromUsage,
  removeStray,
  addSpawnSpending,
  takeSpawnOffPlan,
  addStepSpending,
  addStray,
} from "./plan-progress.ts";
import {
  isEnded,
  createUnopenedCoordination,
  type CarriedPhase,
  type Coordination,
  type EndStatus,
  type OpenCoordination,
  type Step,
  type KnownCoordination,
} from "./state.ts";
import { createResultTelling } from "./tellings.ts";

/** Returns the state of a coordination after all of these events, from the first one on. */
export function fold(coordinationId: CoordinationId, events: Iterable<RunEvent>): Coordination {
  let state: Coordination = createUnopenedCoordination(coordinationId);
  for (const event of events) state = evolve(state, event);
  return state;
}

/** Returns the state after the next event of the log; throws where the log is damaged. */
export function evolve(state: Coordination, event: RunEvent): Coordination {
  assertInvariant(
    event.runId === state.coordinationId,
    `L2: ${event.eventId} is not of ${state.coordinationId}`,
  );
  assertInvariant(
    event.sequence === state.nextSequence,
    `L2: expected sequence ${state.nextSequence} at ${event.eventId}`,
  );
  const evolved = isFact(event) ? evolveFact(state, event) : evolveOpenWopEvent(state, event);
  const nextSequence = event.sequence + 1;
  // Whoever waits for quiet waits for no bill.
  if (event.type === "usage.recorded") return { ...evolved, nextSequence };
  return { ...evolved, nextSequence, changedAtMs: epochMsOf(event.timestamp) };
}

function evolveFact(state: Coordination, event: FactEvent): KnownCoordination {
  if (event.type === "coordination.created") return evolveCoordinationCreated(state, event);
  if (event.type === "usage.recorded" && state.kind !== "unopened") return evolveUsage(state, event);
  assertInvariant(
    state.kind === "open" && event.type !== "usage.recorded",
    `D5: ${event.type} on a coordination that is ${state.kind}: ${event.eventId}`,
  );
  const open = { ...state, lastFactId: event.eventId };
  switch (event.type) {
    case "step.admitted":
      return evolveStepAdmitted(open, event);
    case "claim.acquired":
    case "claim.renewed":
    case "claim.released":
    case "resource.changed":
    case "write.undetermined":
    case "conflict.detected":
    case "conflict.resolved":
      return evolveClaims(open, event satisfies ClaimEvent);
    case "coordination.escalated":
    case "escalation.answered":
    case "escalation.notified":
    case "escalation.forwarded":
    case "escalation.closed":
    case "session.told":
      return evolveQuestion(open, event satisfies QuestionEvent, updateStep);
    case "privilege.refused":
      return evolveRefusedCall(open, event);
    case "worktree.opened":
    case "worktree.merge_begun":
    case "worktree.merged":
    case "worktree.conflicted":
    case "worktree.removed":
      return evolveWorktree(open, event satisfies WorktreeEvent);
    case "step.child_stopped":
      return evolveChildStopped(open, event);
    case "coordination.cancel_requested":
      return evolveCancelRequested(open, event);
    case "plan.judged":
      return { ...open, successCriteria: event.payload.successCriteria };
    case "budget.reached":
      return { ...open, bill: { ...open.bill, stops: [...open.bill.stops, event.payload] } };
    case "coordination.terminal":
      return { ...open, kind: "ended", status: event.payload.status, endedAtMs: epochMsOf(event.timestamp) };
    default:
      return evolveStepFact(open, event satisfies StepEvent);
  }
}

function evolveCoordinationCreated(
  state: Coordination,
  event: FactEvent & { type: "coordination.created" },
): OpenCoordination {
  assertInvariant(state.kind === "unopened", `created twice: ${event.eventId}`);
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
    endedSteps: { completed: 0, failed: 0, cancelled: 0, timed_out: 0, skipped: 0 },
    iterations: 0,
    conflicts: [],
    reviews: ImmutableMap(),
    claims: OrderedMap(),
    claimCounts: ImmutableMap(),
    newestToken: 0,
    holdings: ImmutableMap(),
    changes: ImmutableMap(),
    escalations: OrderedMap(),
    openQuestions: OrderedMap(),
    held: OrderedSet(),
    tellings: OrderedMap(),
    untold: ImmutableSet(),
    bill: createEmptyBill(),
    worktrees: OrderedMap(),
    ...(event.payload.plan && { plan: createEmptyProgress(epochMsOf(event.timestamp)) }),
  };
}

function evolveStepAdmitted(
  state: OpenCoordination,
  event: FactEvent & { type: "step.admitted" },
): OpenCoordination {
  const { stepId } = event.payload;
  assertInvariant(!state.steps.has(stepId), `admitted twice: ${stepId}`);
  const step: Step = {
    spec: event.payload,
    admittedAtMs: epochMsOf(event.timestamp),
    phase: { status: "waiting", attempt: 0 },
    lastFactId: event.eventId,
  };
  const admittedState = {
    ...state,
    steps: state.steps.set(stepId, step),
    openSteps: state.openSteps.add(stepId),
  };
  const { parentStepId, planned, carried } = event.payload;
  assertInvariant(
    !carried || (state.plan !== undefined && planned !== undefined),
    `a result for what is no step of a plan: ${event.eventId}`,
  );
  if (state.plan && planned)
    return evolveResultCarried(
      { ...admittedState, plan: addAdmittedStep(state.plan, step, state.steps) },
      event,
    );
  const counted = addSpawnToBill(admittedState, step);
  if (!state.plan) return counted;
  const plan = { ...state.plan, timed: state.plan.timed.add(stepId) };
  return addSpawnSpending({ ...counted, plan }, parentStepId);
}

/** Completes a step whose result a fork carries from its source, from its admission on (D6). */
function evolveResultCarried(
  state: OpenCoordination,
  { payload, eventId, timestamp }: FactEvent & { type: "step.admitted" },
): OpenCoordination {
  const { stepId, carried } = payload;
  if (!carried) return state;
  assertInvariant(state.created.forkedFrom !== undefined, `a result from nowhere: ${eventId}`);
  const { eventId: carriedFrom, output, released } = carried;
  const phase: CarriedPhase = {
    status: "completed",
    attempt: 0,
    endedAtMs: epochMsOf(timestamp),
    carriedFrom,
    ...(output && { output }),
    ...(released && { released }),
  };
  return updateStep(state, stepId, (step) => ({ ...step, phase }));
}

/** Returns the state after a fact about one step: its phase, who works on it, what it used. */
function evolveStepFact(state: OpenCoordination, event: StepEvent): OpenCoordination {
  const { stepId } = event.payload;
  const before = state.steps.get(stepId);
  assertInvariant(before !== undefined, `no step ${stepId} in ${state.coordinationId}`);
  const changed = takeSpawnOffBill(
    updateStep(state, stepId, (step) => evolveStep(step, event)),
    before,
  );
  const withChildKnown = noteChildSession(changed, before, event);
  if (!withChildKnown.plan) return withChildKnown;
  switch (event.type) {
    case "step.dispatched": {
      const wait = state.plan?.waits.get(stepId);
      const fanIn = before.spec.planned?.fanIn ?? 0;
      assertInvariant(!wait || wait.met >= fanIn, `D6: dispatched too early: ${event.eventId}`);
      return expectWorktree(addStepSpending(withChildKnown, stepId, ONE_SPAWN), event);
    }
    case "step.failed":
      return addAttemptUsage(
        takeSpawnOffPlan(withChildKnown, before, event.payload),
        stepId,
        event.payload.usage,
      );
    case "step.completed":
    case "result.held":
      return addAttemptUsage(withChildKnown, stepId, event.payload.usage);
    case "step.timed_out":
      return noteStray(addAttemptUsage(withChildKnown, stepId, event.payload.usage), before, event);
    default:
      return withChildKnown;
  }
}

/** Notes that the child of an attempt that was given up at its deadline may still be at work (D3). */
function noteStray(
  state: OpenCoordination,
  step: Step,
  { payload: { via } }: FactEvent & { type: "step.timed_out" },
): OpenCoordination {
  if (via !== "deadline" || step.spec.planned === undefined || !state.plan) return state;
  return { ...state, plan: addStray(state.plan, step) };
}

/** Removes a stray that was stopped, and books what it used where the end of its attempt could not. */
function evolveChildStopped(
  state: OpenCoordination,
  { payload: { stepId, childSessionKey, usage } }: FactEvent & { type: "step.child_stopped" },
): OpenCoordination {
  const counted = addAttemptUsage(state, stepId, usage);
  return { ...counted, ...(counted.plan && { plan: removeStray(counted.plan, childSessionKey) }) };
}

/** Books what an attempt used, as its runner says. */
function addAttemptUsage(
  state: OpenCoordination,
  stepId: StepId,
  usage: Usage | undefined,
): OpenCoordination {
  if (!usage) return state;
  return updateBillAfterSpending(state, addStepSpending(state, stepId, spentFromUsage(usage)), stepId);
}

/** Notes which session works on the step (H3). The owner's session does not: it is only told. */
function noteChildSession(state: OpenCoordination, step: Step, event: StepEvent): OpenCoordination {
  if (isDelivery(step)) return state;
  const session =
    event.type === "step.acknowledged"
      ? event.payload.childSessionKey
      : event.type === "step.dispatched"
        ? event.payload.targetSession
        : undefined;
  return session ? { ...state, children: state.children.set(session, step.spec.stepId) } : state;
}

function evolveCancelRequested(
  state: OpenCoordination,
  event: FactEvent & { type: "coordination.cancel_requested" },
): OpenCoordination {
  const { by, stepId } = event.payload;
  if (stepId === undefined) return { ...state, cancelledBy: by };
  return updateStep(state, stepId, (step) => ({ ...step, cancelledBy: by, lastFactId: event.eventId }));
}

/** Notes a tool call that was refused. It changes nothing of the step, so nothing is caused by it. */
function evolveRefusedCall(
  state: OpenCoordination,
  { payload, timestamp }: FactEvent & { type: "privilege.refused" },
): OpenCoordination {
  const { stepId, ...call } = payload;
  const refused = { ...call, atMs: epochMsOf(timestamp) };
  return updateStep(state, stepId, (step) => ({
    ...step,
    refusedCalls: [...(step.refusedCalls ?? []), refused],
  }));
}

function evolveOpenWopEvent(state: Coordination, event: OpenWopEvent): KnownCoordination {
  assertInvariant(
    state.kind !== "unopened",
    `L5: ${event.type} before coordination.created: ${event.eventId}`,
  );
  if (event.type === "runOrchestrator.decided") {
    const decided = { ...state, iterations: event.payload.iteration };
    const { decision } = event.payload;
    if (decision.kind === "terminate") return decided;
    return decision.nextWorkerIds.reduce((next, id) => noteChainEvent(next, id, event), decided);
  }
  if (event.type === "agent.decided" && event.nodeId)
    return updateStep(state, event.nodeId as StepId, (step) => setVerdictTarget(step, event.eventId));
  return event.type === "core.workflowChain.event"
    ? noteChainEvent(state, event.payload.workerId, event)
    : state;
}

/** Notes with a step the OpenWOP event that names it as a worker. */
function noteChainEvent(state: KnownCoordination, workerId: string, event: OpenWopEvent): KnownCoordination {
  return updateStep(state, workerId as StepId, (step) => ({ ...step, chainEventId: event.eventId }));
}

/** Changes a step, and with its phase all that the state keeps of ended, held and planned steps. */
function updateStep<S extends KnownCoordination>(state: S, stepId: StepId, change: (step: Step) => Step): S {
  const before = state.steps.get(stepId);
  assertInvariant(before !== undefined, `no step ${stepId} in ${state.coordinationId}`);
  const after = change(before);
  const changed = { ...state, steps: state.steps.set(stepId, after) };
  if (after.phase === before.phase) return changed;
  const moved = {
    ...changed,
    ...updateEndedSteps(state, before, after),
    ...updateHeldAndTellings(changed, before, after),
  };
  if (moved.kind !== "open" || !moved.plan) return moved;
  const open = moved as S & OpenCoordination & Required<Pick<OpenCoordination, "plan">>;
  return {
    ...open,
    plan: updateAfterPhaseChange(open, { before, after, atMs: findPhaseTime(after, state) }),
  };
}

type StepEnds = Pick<KnownCoordination, "openSteps" | "endedSteps">;

/** Updates which steps are open and how many ended in which way, where a step ends or a retry takes it up again. */
export function updateEndedSteps(
  { openSteps, endedSteps }: StepEnds,
  { spec, phase: before }: Step,
  { phase: after }: Step,
): StepEnds {
  const { stepId } = spec;
  if (isEnded(after) && !isEnded(before)) {
    return { openSteps: openSteps.remove(stepId), endedSteps: countEnded(endedSteps, after.status, 1) };
  }
  if (isEnded(before) && !isEnded(after)) {
    return { openSteps: openSteps.add(stepId), endedSteps: countEnded(endedSteps, before.status, -1) };
  }
  return { openSteps, endedSteps };
}

function countEnded(counts: StepEnds["endedSteps"], status: EndStatus, by: number): StepEnds["endedSteps"] {
  return { ...counts, [status]: counts[status] + by };
}

/**
 * Updates which results are held, and which parents are still to hear what became of a result that was kept from
 * them.
 */
function updateHeldAndTellings(
  { held: heldSteps, tellings }: KnownCoordination,
  { phase: before }: Step,
  step: Step,
): Pick<KnownCoordination, "held" | "tellings"> {
  const { stepId } = step.spec;
  const next = step.phase.status === "held" ? heldSteps.add(stepId) : heldSteps.remove(stepId);
  const telling = isEnded(before) ? undefined : createResultTelling(step);
  return { held: next, tellings: telling ? tellings.set(telling.tellingId, telling) : tellings };
}

/** Returns when the step came into its phase: the time of its end, or of the newest change of the coordination. */
function findPhaseTime({ phase }: Step, { changedAtMs }: KnownCoordination): EpochMs {
  return "endedAtMs" in phase ? phase.endedAtMs : changedAtMs;
}
