import { OrderedMap } from "immutable";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { coordinationEnvelopeSchema } from "../../src/agents/coordination/contracts/envelope.ts";
import { addMs, DELIVERY_STEP_ID, type EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { decodeEvent, isFact, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { buildEnvelope } from "../../src/agents/coordination/dispatch/build-envelope.ts";
import {
  findNextDeadline,
  planDispatch,
  planRecovery,
} from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { isPlanned, findStopReason } from "../../src/agents/coordination/dispatch/plan-rules.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { isEnded, type Coordination, type Step } from "../../src/agents/coordination/ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../src/agents/coordination/ledger/summary.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import { shareHistories } from "../support/shared-histories.ts";
import { loadOpenWopSchemas } from "./openwop-schemas.ts";
import { answerTo, openChecks, openQuestions, RULINGS, createRulingOn } from "./planned-gate-moves.ts";
import {
  createCommandFor,
  createEndingCommand,
  endings,
  planHistories,
  playPlan,
  timelessPlans,
  type AttemptEnding,
  type RandomPlan,
} from "./planned-arbitraries.ts";
import { planScene, describeDecision } from "./planned-scene.ts";
import { RUN } from "./scene.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 300);
const openWop = loadOpenWopSchemas();
const prove = shareHistories(planHistories, playPlan, RUNS);

type Steps = Exclude<Coordination, { kind: "unopened" }>["steps"];
const stepsOf = (state: Coordination): Steps =>
  state.kind === "unopened" ? OrderedMap<never, never>() : state.steps;

const filterByType = <T extends RunEvent["type"]>(
  log: readonly RunEvent[],
  type: T,
): Extract<RunEvent, { type: T }>[] =>
  log.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);

/** Where a plan's progress must have a step, told from the phases alone. */
function placesOf({ spec, phase, isApproved }: Step, steps: Steps): Record<string, boolean> {
  const { status } = phase;
  const { dependsOn = [], fanIn = 0 } = spec.planned ?? {};
  const phases = dependsOn.flatMap((id) => steps.get(id)?.phase ?? []);
  const met = phases.filter((other) => other.status === "completed").length;
  const lostCount = phases.filter((other) => isEnded(other) && other.status !== "completed").length;
  const isPlannedStep = spec.planned !== undefined;
  return {
    // G2: what its planner doubts is not ready before people say so.
    ready: status === "waiting" && met >= fanIn && (!spec.decision || isApproved === true),
    held: status === "held",
    doomed: status === "waiting" && dependsOn.length - lostCount < fanIn,
    open: !isEnded(phase),
    running: isPlannedStep && ["dispatched", "running"].includes(status),
    timed: isPlannedStep ? ["backoff", "blocked"].includes(status) : !isEnded(phase),
  };
}

const standingOf = (state: Coordination): string => (state.kind === "ended" ? state.status : state.kind);

describe("for every history of a plan", () => {
  it("L2 and L3: sequences are gapless, and every cause is an earlier event", () =>
    prove(({ log }) => {
      const seen = new Set<string>();
      for (const [index, { eventId, sequence, causationId, type }] of log.entries()) {
        expect([sequence, eventId]).toEqual([index, `${RUN}:${index}`]);
        if (causationId === undefined) expect(type).toBe("coordination.created");
        else expect(seen.has(causationId), `${eventId} by ${causationId}`).toBe(true);
        seen.add(eventId);
      }
    }));

  it("L4: the log, as it is stored, folds to the state", () =>
    prove(({ log, state }) => {
      const stored = log.map((event) => decodeEvent(JSON.parse(JSON.stringify(event))));
      expect(stored).toStrictEqual(log);
      expect(fold(RUN, stored)).toStrictEqual(state);
    }));

  it("L5: a ledger of it is verified, and every event and envelope is valid in OpenWOP and here", () =>
    prove(
      async ({ log, state }) => {
        if (state.kind === "unopened") return;
        const store = createMemoryLedger().open(createFakeClock());
        const references = log.flatMap(listEventReferences);
        await store.append({
          runId: RUN,
          events: log,
          summary: summarizeCoordination(state),
          references,
          contents: [],
        });
        const { forkedFrom } = state.created;
        const missing = forkedFrom && `its source ${forkedFrom.coordinationId} is not there`;
        const { problems } = await verifyLedger(store);
        expect(problems.map(({ message }) => message)).toEqual(missing ? [missing] : []);
        for (const event of log) expect(openWop.problemsOf(event)).toEqual([]);
        for (const stepId of state.steps.keys())
          expect(coordinationEnvelopeSchema.safeParse(buildEnvelope(state, stepId)).error).toBeUndefined();
      },
      Math.ceil(RUNS / 3),
    ));

  it("D1: whatever is known of an attempt comes after its dispatch", () =>
    prove(({ log }) => {
      const dispatched = new Set<string>();
      for (const event of log.filter(isFact)) {
        if (!("attempt" in event.payload)) continue;
        const attempt = `${event.payload.stepId}:${event.payload.attempt}`;
        if (event.type === "step.dispatched") dispatched.add(attempt);
        expect(dispatched, event.type).toContain(attempt);
      }
    }));

  it("D2: what was accepted is not accepted again, and no key and no session is used twice", () =>
    prove(({ steps, log }) => {
      for (const [index, { command, decision, after, now }] of steps.entries()) {
        const next = steps[index + 1];
        const isRepeated = next?.command === command && next.now === now;
        if (decision.kind !== "accepted" || !isRepeated || command.type === "settleCoordination") continue;
        expect(next.decision.kind, command.type).not.toBe("accepted");
        if (next.decision.kind !== "refused" || !next.decision.facts) expect(next.after).toBe(after);
      }
      const dispatches = filterByType(log, "step.dispatched").map(({ payload }) => payload);
      const keys = dispatches.map(({ idempotencyKey }) => idempotencyKey);
      expect(new Set(keys).size).toBe(keys.length);
      const sessions = dispatches
        .filter(({ stepId }) => stepId !== DELIVERY_STEP_ID)
        .flatMap(({ targetSession }) => targetSession ?? []);
      expect(new Set(sessions).size).toBe(sessions.length);
    }));

  it("D3: nothing is accepted about an attempt but the present one, and a refusal changes no phase", () =>
    prove(({ steps }) => {
      for (const { command, decision, before, after } of steps) {
        if (decision.kind === "refused")
          for (const [stepId, { phase }] of stepsOf(before))
            expect(stepsOf(after).get(stepId)?.phase).toBe(phase);
        if (!("attempt" in command) || decision.kind !== "accepted" || command.type === "dispatchStep")
          continue;
        expect(stepsOf(before).get(command.stepId)?.phase.attempt).toBe(command.attempt);
      }
    }));

  it("D4: no step is attempted more often than its budget and people allow", () =>
    prove(({ log }) => {
      for (const { payload } of filterByType(log, "step.admitted")) {
        const { stepId, retryBudget } = payload;
        const countOfType = (type: "step.dispatched" | "step.retry_granted" | "result.revised"): number =>
          filterByType(log, type).filter((event) => event.payload.stepId === stepId).length;
        const more = countOfType("step.retry_granted") + countOfType("result.revised");
        expect(countOfType("step.dispatched")).toBeLessThanOrEqual(retryBudget + 1 + more);
        expect(countOfType("result.revised")).toBeLessThanOrEqual(payload.gate?.revisionsMax ?? 0);
      }
    }));

  it("D5: there is at most one end, and nothing after it; what has ended stays as it is", () =>
    prove(({ log, state, steps }) => {
      const terminal = filterByType(log, "coordination.terminal");
      expect(terminal).toHaveLength(state.kind === "ended" ? 1 : 0);
      if (state.kind === "ended") {
        expect(log.findLast(isFact)).toBe(terminal[0]);
        expect([...state.steps.values()].filter(({ phase }) => !isEnded(phase))).toEqual([]);
        expect([...state.escalations.values()].filter(({ closed }) => !closed)).toEqual([]);
        expect([...state.tellings.keys()]).toEqual([]);
      }
      for (const { before, after } of steps) {
        if (before.kind === "ended") expect(after).toBe(before);
        for (const [stepId, { phase }] of stepsOf(before))
          if (isEnded(phase)) expect(stepsOf(after).get(stepId)?.phase).toBe(phase);
      }
    }));

  it("D6: no step begins before enough of its dependencies have completed", () =>
    prove(({ log }) => {
      const completed = new Set<string>();
      const facts = filterByType(log, "step.admitted");
      const admitted = new Map(facts.map(({ payload }) => [payload.stepId, payload]));
      for (const { type, payload } of log) {
        if (type === "step.completed" || (type === "step.admitted" && payload.carried))
          completed.add(payload.stepId);
        if (type !== "step.dispatched") continue;
        const { dependsOn = [], fanIn = 0 } = admitted.get(payload.stepId)?.planned ?? {};
        expect(dependsOn.filter((stepId) => completed.has(stepId)).length).toBeGreaterThanOrEqual(fanIn);
      }
    }));

  it("nothing but the delivery begins once the plan has stopped", () =>
    prove(({ steps }) => {
      for (const { command, decision, before, now } of steps) {
        if (command.type !== "dispatchStep" || decision.kind !== "accepted") continue;
        if (before.kind !== "open" || !isPlanned(before) || command.stepId === DELIVERY_STEP_ID) continue;
        expect(findStopReason(before, now)).toBeUndefined();
        expect(before.plan.budgetQuestion).toBeUndefined();
        expect(before.plan.decisionQuestion).toBeUndefined();
      }
    }));

  it("progress is what the steps say", () =>
    prove(({ state }) => {
      if (state.kind !== "open" || !isPlanned(state)) return;
      const { plan } = state;
      for (const [stepId, step] of state.steps) {
        const places = {
          ready: Object.values(plan.ready).some((lane) => lane.has(stepId)),
          doomed: plan.doomed.has(stepId),
          open: state.openSteps.has(stepId),
          held: state.held.has(stepId),
          running: plan.running.has(stepId),
          timed: plan.timed.has(stepId),
        };
        expect(places).toEqual(placesOf(step, state.steps));
      }
    }));
});

describe("for every state of a plan, what is planned", () => {
  const later = fc.sample(fc.integer({ min: 0, max: 400_000 }), { numRuns: 50, seed: 2 });

  it("is the same twice, with ids of its own, also at start", () =>
    prove(({ state, nowMs }) => {
      for (const plan of [planDispatch, planRecovery]) {
        const planned = plan(state, nowMs);
        expect(plan(state, nowMs)).toEqual(planned);
        const ids = planned.map(({ effectId }) => effectId);
        expect(new Set(ids).size).toBe(ids.length);
      }
    }));

  it("is accepted when it is done, so that nothing is planned for ever", () =>
    prove(({ state, nowMs, plan }) => {
      for (const effect of planDispatch(state, nowMs)) {
        const command = createCommandFor(effect, plan, state);
        expect(decide(state, command, nowMs).kind, JSON.stringify(effect)).toBe("accepted");
      }
    }));

  it("is nothing once the coordination has ended", () =>
    prove(({ state, nowMs }) => {
      if (state.kind !== "ended") return;
      expect(planDispatch(state, addMs(nowMs, 1e9))).toEqual([]);
      expect(findNextDeadline(state)).toBeUndefined();
    }));

  it("is nothing before the next deadline where it is nothing now, and that one lies ahead", () =>
    prove(
      ({ steps }) => {
        for (const { after, now } of steps) {
          if (after.kind !== "open" || planDispatch(after, now).length > 0) continue;
          const due = findNextDeadline(after);
          if (due !== undefined) expect(due).toBeGreaterThan(now);
          for (const ms of later) {
            const at = addMs(now, ms);
            if (due === undefined || at < due) expect(planDispatch(after, at)).toEqual([]);
          }
        }
      },
      Math.ceil(RUNS / 3),
    ));

  it("is something, or something is at work or due, as long as the plan is open", () =>
    prove(({ state, nowMs }) => {
      if (state.kind !== "open" || !isPlanned(state)) return;
      const isMoving = planDispatch(state, nowMs).length > 0 || state.plan.running.size > 0;
      expect(isMoving || findNextDeadline(state) !== undefined).toBe(true);
    }));

  it("histories reach every situation that there is", () => {
    const met = new Set<string>();
    for (const history of fc.sample(planHistories, { numRuns: 1_500, seed: 1 })) {
      const { state, steps, log } = playPlan(history);
      met.add(standingOf(state));
      for (const { phase } of stepsOf(state).values()) met.add(`step ${phase.status}`);
      for (const { decision, before, now } of steps) {
        met.add(describeDecision(decision).split(" ")[0] ?? "");
        for (const { kind } of planDispatch(before, now)) met.add(kind);
      }
      for (const { type } of log) met.add(type);
      for (const { payload } of filterByType(log, "step.skipped")) met.add(`skipped ${payload.because}`);
      for (const { payload } of filterByType(log, "escalation.closed")) met.add(payload.resolution);
    }
    const refusals = [
      ...["UNKNOWN_STEP", "STALE_ATTEMPT", "STEP_ENDED", "OTHER_CHILD", "STEPS_OPEN", "NOT_READY"],
      ...["PLAN_STOPPED", "BUDGET_SPENT", "NOTHING_TO_RETRY", "COORDINATION_ENDED", "replay"],
      ...["NOT_HELD", "QUESTION_CLOSED", "ANSWER_REFUSED", "UNKNOWN_QUESTION"],
    ];
    const facts = [
      ...["step.reported", "step.outcome_refused", "step.skipped", "step.retry_granted"],
      ...["step.child_stopped", "coordination.cancel_requested", "coordination.escalated"],
      ...["result.withheld", "result.held", "result.verified", "verification.failed", "result.revised"],
      ...["session.told", "plan.judged", "escalation.answered", "escalation.notified", "budget.lent"],
    ];
    const kinds = [
      ...["runStep", "stopStep", "stopStray", "admitSteps", "skipSteps", "expireQuestion", "tripBreaker"],
      ...["endCoordination", "verifyResult", "notifyPeople", "tellSession", "judgePlan"],
    ];
    const becauses = ["dependency", "cancelled", "fail_fast", "deadline", "budget", "denied"].map(
      (each) => `skipped ${each}`,
    );
    const phases = [
      ...["waiting", "dispatched", "running", "held", "backoff", "blocked", "completed", "failed"],
      ...["timed_out", "cancelled", "skipped"],
    ].map((each) => `step ${each}`);
    const resolutions = [
      ...["retried", "continued", "expired", "cancelled", "approved", "denied", "answered"],
    ];
    const ends = ["open", "success", "partial", "failed", "escalated"];
    for (const each of [...refusals, ...facts, ...kinds, ...becauses, ...phases, ...resolutions, ...ends])
      expect(met).toContain(each);
  });
});

/** Follows from the step and its attempt alone. */
function outcomeOf({ spec: { stepId }, phase: { attempt } }: Step, ends: readonly AttemptEnding[]): Command {
  const ending = ends[(Number(stepId.slice(1)) * 3 + attempt) % ends.length] ?? "completed";
  return createEndingCommand(stepId, attempt, stepId === DELIVERY_STEP_ID ? "completed" : ending);
}

/** Answers of checks and people follow from the step, its attempt and the check alone. */
function listRulings(state: Coordination): Command[] {
  return openChecks(state).map(({ step, check }) => {
    const { attempt } = step.phase;
    const turn = Number(step.spec.stepId.slice(1)) + attempt * 2 + check.length;
    return createRulingOn(step, check, RULINGS[turn % RULINGS.length] ?? "pass");
  });
}

/** One of three questions gets no answer. */
function listAnswers(state: Coordination): Command[] {
  return openQuestions(state).flatMap((question) => {
    const { stepId = "s0", answers = [], cause } = question;
    const choice = (Number(stepId.slice(1)) + cause.length) % 4;
    const answerKind = answers[choice];
    return answerKind ? [answerTo(question, answerKind)] : [];
  });
}

function nthOf(choices: readonly Command[], order: readonly number[], turn: number): Command | undefined {
  const pick = order[turn % order.length] ?? 0;
  return choices[pick % Math.max(1, choices.length)];
}

/** Runs a plan to its end: what there is to do is done in the order that `order` picks, every attempt ends as `ends` says. */
function runThrough(
  plan: RandomPlan,
  ends: readonly AttemptEnding[],
  order: readonly number[],
): Record<string, string> {
  const scene = planScene(plan.opening);
  for (let turn = 0; scene.state.kind === "open"; turn += 1) {
    expect(turn).toBeLessThan(1_000);
    const { running, timed } = scene.open.plan;
    const outcomes = [...running].map((stepId) => outcomeOf(scene.step(stepId), ends));
    const effects = scene.effects().filter(({ kind }) => kind !== "verifyResult");
    const choices = [
      ...[...effects.map((effect) => createCommandFor(effect, plan, scene.state)), ...outcomes],
      ...[...listRulings(scene.state), ...listAnswers(scene.state)],
    ];
    const chosen = nthOf(choices, order, turn);
    if (chosen) scene.when(chosen, scene.nowMs);
    else {
      expect(timed.size + scene.open.openQuestions.size).toBeGreaterThan(0);
      scene.passes((findNextDeadline(scene.state) ?? (0 as EpochMs)) - scene.open.createdAtMs);
    }
  }
  const { status } = scene.last("coordination.terminal").payload;
  const fates = [...stepsOf(scene.state)].map(([stepId, { phase }]) => [
    stepId,
    `${phase.status} ${phase.attempt}`,
  ]);
  return { ...(Object.fromEntries(fates) as Record<string, string>), status };
}

describe("a plan without a rule about time", () => {
  it("comes to the same end in whatever order things happen", () =>
    fc.assert(
      fc.property(
        timelessPlans,
        fc.array(endings, { minLength: 1, maxLength: 24 }),
        fc.array(fc.nat({ max: 30 }), { minLength: 1, maxLength: 60 }),
        fc.array(fc.nat({ max: 30 }), { minLength: 1, maxLength: 60 }),
        (plan, ends, one, other) => {
          expect(runThrough(plan, ends, one)).toEqual(runThrough(plan, ends, other));
        },
      ),
      { numRuns: RUNS },
    ));
});
