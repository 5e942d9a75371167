import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addMs, type EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { decodeEvent, isFact, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import {
  findNextDeadline,
  planDispatch,
  planRecovery,
} from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { evolve, fold } from "../../src/agents/coordination/ledger/evolve.ts";
import {
  createUnopenedCoordination,
  type Coordination,
  type OpenCoordination,
} from "../../src/agents/coordination/ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../src/agents/coordination/ledger/summary.ts";
import { projectFact } from "../../src/agents/coordination/openwop/project.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import { shareHistories } from "../support/shared-histories.ts";
import {
  findEndedTwice,
  findEndedWrongly,
  findOutlived,
  findRuledTooLate,
  findRuledTwice,
  specsOf,
  findWronglyBegun,
  findWronglyLetThrough,
} from "./gates-oracle.ts";
import { createCommandForEffect, playGates } from "./gates-play.ts";
import { filterByType } from "./gates-scene.ts";
import { setups, type Setup } from "./gates-setups.ts";
import { loadOpenWopSchemas } from "./openwop-schemas.ts";
import { RUN } from "./scene.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 600);
const openWop = loadOpenWopSchemas();
const prove = shareHistories(setups, playGates, RUNS);

describe("for every history of verdicts, answers, deadlines and crashes", () => {
  it("G1: no result counts whose gate was not satisfied, by its checks and confidences or by people in time", () =>
    prove((history) => {
      expect(findWronglyLetThrough(history)).toEqual([]);
    }));

  it("G2 and G3: no decision that people were to make is carried out without them, and none twice", () =>
    prove((history) => {
      expect(findWronglyBegun(history)).toEqual([]);
    }));

  it("no verdict counts about a result that people are asked about already", () =>
    prove((history) => {
      expect(findRuledTooLate(history)).toEqual([]);
    }));

  it("no attempt ends in two ways", () =>
    prove((history) => {
      expect(findEndedTwice(history)).toEqual([]);
    }));

  it("E1: a question is closed at most once, by at most one answer that counts", () =>
    prove((history) => {
      expect(findRuledTwice(history)).toEqual([]);
    }));

  it("E2 and G3: no question expires before its deadline, and what people withheld is not begun again", () =>
    prove((history) => {
      expect(findEndedWrongly(history)).toEqual([]);
    }));

  it("no question about a result outlives its step, and nothing is left to ask or to tell at the end", () =>
    prove((history) => {
      expect(findOutlived(history)).toEqual([]);
      const { state, played } = history;
      if (state.kind !== "ended") return;
      expect([state.openQuestions.size, state.tellings.size, state.held.size]).toEqual([0, 0, 0]);
      const last = played.findLast(({ events }) =>
        events.some(({ type }) => type === "coordination.terminal"),
      );
      if (last?.before.kind !== "open" || last.before.plan || last.before.cancelledBy) return;
      expect(last.before.openQuestions.size).toBe(0);
    }));

  it("a step that was cancelled waits for nothing: it has ended, or is at work and to be stopped", () =>
    prove(({ state }) => {
      if (state.kind !== "open") return;
      const cancelled = [...state.steps.values()].filter(
        ({ cancelledBy }) => cancelledBy ?? (!state.plan && state.cancelledBy),
      );
      const waiting = cancelled.filter(({ phase }) =>
        ["waiting", "held", "backoff", "blocked"].includes(phase.status),
      );
      expect(waiting).toEqual([]);
    }));

  it("results go back no more often than they may, and no session is told the same twice", () =>
    prove((history) => {
      const specs = specsOf(history);
      for (const [stepId, { gate }] of specs) {
        const revisions = filterByType(history, "result.revised").filter(
          ({ payload }) => payload.stepId === stepId,
        );
        expect(revisions.length).toBeLessThanOrEqual(gate?.revisionsMax ?? 0);
      }
      const messages = filterByType(history, "session.told").map(({ payload }) => payload.tellingId);
      expect(new Set(messages).size).toBe(messages.length);
    }));

  it("every answer that was given is in the log, with who gave it", () =>
    prove(({ played }) => {
      for (const { command, decision, events } of played) {
        if (command.type !== "answerEscalation" || decision.kind === "replay") continue;
        if (decision.kind === "refused" && ["UNKNOWN_QUESTION", "COORDINATION_ENDED"].includes(decision.code))
          continue;
        const [answered] = events;
        expect(answered).toMatchObject({ type: "escalation.answered", payload: { by: command.by } });
      }
    }));

  it("L4: the log, as it is stored, folds to the state, which knows what is held and what is asked", () =>
    prove(({ log, state }) => {
      const stored = log.map((event) => decodeEvent(JSON.parse(JSON.stringify(event))));
      expect(stored).toStrictEqual(log);
      expect(fold(RUN, stored)).toStrictEqual(state);
      if (state.kind === "unopened") return;
      const heldSteps = [...state.steps.values()].filter(({ phase }) => phase.status === "held");
      expect([...state.held].toSorted()).toEqual(heldSteps.map(({ spec }) => spec.stepId).toSorted());
      const open = [...state.escalations.values()].filter(({ closed }) => !closed);
      expect([...state.openQuestions.keys()]).toEqual(open.map(({ escalationId }) => escalationId));
    }));

  it("L5: what follows a fact is its projection, the same every time, and valid in OpenWOP", () =>
    prove(
      async ({ log, state }) => {
        if (state.kind === "unopened") return;
        let before: Coordination = createUnopenedCoordination(RUN);
        for (const [index, event] of log.entries()) {
          before = evolve(before, event);
          if (!isFact(event) || before.kind === "unopened") continue;
          const drafts = projectFact(event, before);
          expect(projectFact(event, before)).toEqual(drafts);
          const behind = log.slice(index + 1, index + 1 + drafts.length).map(({ type }) => type);
          expect(behind).toEqual(drafts.map(({ type }) => type));
        }
        for (const event of log) expect(openWop.problemsOf(event)).toEqual([]);
        const store = createMemoryLedger().open(createFakeClock());
        const references = log.flatMap(listEventReferences);
        await store.append({
          runId: RUN,
          events: log,
          summary: summarizeCoordination(state),
          references,
          contents: [],
        });
        expect((await verifyLedger(store)).problems).toEqual([]);
      },
      Math.ceil(RUNS / 6),
    ));

  it("an interrupt is raised for every question before anything else happens, and resolved at most once", () =>
    prove(({ log }) => {
      const raised = new Map<string, number>();
      for (const [index, event] of log.entries()) {
        if (event.type === "coordination.escalated") {
          const rest = log.slice(index + 1).map(({ type }) => type);
          const doubts = rest[0] === "core.workflowChain.confidence-escalated" ? 1 : 0;
          expect(rest.slice(doubts, doubts + 2)).toEqual(["interrupt.requested", "node.suspended"]);
          if (doubts === 1)
            // RFC 0044: the kind that is advertised is the kind of every one of them.
            expect(log.slice(index + 1, index + 3)).toMatchObject([
              { payload: { escalationKind: "escalate" } },
              { payload: { kind: "approval" } },
            ]);
          raised.set(event.payload.escalationId, 0);
        }
        if (event.type !== "interrupt.resolved") continue;
        const { interruptId } = event.payload;
        expect(raised.get(interruptId)).toBe(0);
        raised.set(interruptId, 1);
      }
    }));

  it("success is said of no plan with a step that did not complete, or a criterion that was not met", () =>
    prove(({ log, state }) => {
      if (state.kind !== "ended" || state.status !== "success") return;
      const { steps, successCriteria = [] } = filterByType({ log }, "coordination.terminal")[0]!.payload;
      expect(steps.completed).toBe(steps.total);
      expect(successCriteria.every(({ met }) => met)).toBe(true);
    }));
});

describe("for every state, what is planned", () => {
  it("is the same twice, with ids of its own, also at start", () =>
    prove(({ state, now }) => {
      for (const plan of [planDispatch, planRecovery]) {
        const planned = plan(state, now);
        expect(plan(state, now)).toEqual(planned);
        const ids = planned.map(({ effectId }) => effectId);
        expect(new Set(ids).size).toBe(ids.length);
      }
    }));

  it("is accepted when it is done, so that nothing is planned for ever", () =>
    prove(({ state, now, setup }) => {
      if (state.kind !== "open") return;
      for (const effect of planDispatch(state, now)) {
        const command = createCommandForEffect(state, effect, setup);
        if (command)
          expect(decide(state, command, now), JSON.stringify(effect)).toMatchObject({ kind: "accepted" });
      }
    }));

  it("is nothing before the next deadline where it is nothing now, and that one lies ahead", () =>
    prove(
      ({ played }) => {
        for (const { before, now } of played) {
          if (before.kind !== "open" || planDispatch(before, now).length > 0) continue;
          const due = findNextDeadline(before);
          if (due !== undefined) expect(due).toBeGreaterThan(now);
          for (const ms of [1, 999, 49_999, 119_999, 400_000])
            if (due === undefined || now + ms < due) expect(planDispatch(before, addMs(now, ms))).toEqual([]);
        }
      },
      Math.ceil(RUNS / 6),
    ));

  it("leads to an end though nobody answers, no check rules and no agent says anything more", () =>
    prove(({ state, now, setup }) => {
      expect(endOf(state, now, setup).kind).not.toBe("open");
    }));
});

/** Only time passes, and what is due is done. */
function endOf(from: Coordination, now: EpochMs, setup: Setup): Coordination {
  let state = from;
  let time = now;
  for (let turn = 0; state.kind === "open"; turn += 1) {
    expect(turn, `still open: ${JSON.stringify(planDispatch(state, time))}`).toBeLessThan(400);
    const commands = planDispatch(state, time).flatMap((effect) => {
      const isHeld =
        effect.kind === "verifyResult" && time < verifyByOf(state as OpenCoordination, effect.stepId);
      return (isHeld ? undefined : createCommandForEffect(state as OpenCoordination, effect, setup)) ?? [];
    });
    const before: Coordination = state;
    for (const command of [...commands, ...listOverdue(state, time)]) {
      const decision = decide(state, command, time);
      if (decision.kind === "accepted") state = recordFacts(state, decision.facts, time).state;
    }
    if (state === before) time = nextOf(state, time);
  }
  return state;
}

function verifyByOf(state: OpenCoordination, stepId: string): number {
  const phase = state.steps.find(({ spec }) => spec.stepId === stepId)?.phase;
  return (phase?.status === "held" && phase.verifyByMs) || 0;
}

const listAtWork = (state: OpenCoordination) =>
  [...state.steps.values()].flatMap(({ spec, phase }) =>
    phase.status === "dispatched" || phase.status === "running" ? [{ stepId: spec.stepId, ...phase }] : [],
  );

/** Whoever started an attempt ends it at its deadline. */
function listOverdue(state: OpenCoordination, now: EpochMs) {
  return listAtWork(state)
    .filter(({ deadlineAtMs }) => now >= deadlineAtMs)
    .map(({ stepId, attempt }) => ({ type: "timeOutStep", stepId, attempt, via: "deadline" }) as const);
}

function nextOf(state: OpenCoordination, now: EpochMs): EpochMs {
  const heldUntil = [...state.held].map((stepId) => verifyByOf(state, stepId));
  const deadlines = listAtWork(state).map(({ deadlineAtMs }) => deadlineAtMs);
  const due = [findNextDeadline(state, now), ...heldUntil, ...deadlines].filter(
    (each) => each !== undefined && each > now,
  );
  expect(due, "nothing is due, and nothing has ended").not.toEqual([]);
  return Math.min(...(due as number[])) as EpochMs;
}

describe("the histories", () => {
  it("reach every situation that there is", () => {
    const met = new Set<string>();
    for (const setup of fc.sample(setups, { numRuns: 1_200, seed: 1 })) {
      const { state, played, log } = playGates(setup);
      met.add(state.kind === "ended" ? `ended ${state.status}` : state.kind);
      for (const { decision, before, now } of played) {
        met.add(decision.kind === "refused" ? decision.code : decision.kind);
        for (const { kind } of planDispatch(before, now)) met.add(kind);
      }
      for (const event of log) for (const each of listSeenIn(event)) met.add(each);
    }
    const expected = [
      ...["released at once", "released verified", "released approved", "released replaced"],
      ...["failed verification_failed", "failed withheld", "failed child_cancelled", "skipped denied"],
      ...["approved", "denied", "answered", "expired", "cancelled", "retried"].map(
        (each) => `closed ${each}`,
      ),
      ...["not", "closed", "expired", "not_an_answer", "same_session"].map((each) => `refused ${each}`),
      ...["confidence decision", "confidence result", "confidence verdict", "verifier", "agent"].map(
        (each) => `asked ${each}`,
      ),
      ...["asked retries_exhausted", "asked deadline", "result.revised", "result.withheld", "session.told"],
      ...[
        "verifyResult",
        "expireQuestion",
        "notifyPeople",
        "tellSession",
        "runStep",
        "skipSteps",
        "judgePlan",
      ],
      ...[
        "UNKNOWN_QUESTION",
        "QUESTION_CLOSED",
        "ANSWER_REFUSED",
        "TOO_MANY_QUESTIONS",
        "NOT_HELD",
        "QUESTIONS_OPEN",
      ],
      ...[
        "STALE_ATTEMPT",
        "STEP_ENDED",
        "NOT_READY",
        "PLAN_STOPPED",
        "STEPS_OPEN",
        "replay",
        "escalation.notified",
      ],
      ...["ended success", "ended partial", "ended failed", "ended cancelled", "ended escalated", "open"],
    ];
    expect(expected.filter((each) => !met.has(each))).toEqual([]);
  });
});

/** The traits of an event. */
function listSeenIn({ type, payload }: RunEvent): string[] {
  switch (type) {
    case "step.completed":
      return [type, `released ${payload.released ?? "at once"}`];
    case "escalation.closed":
      return [type, `closed ${payload.resolution}`];
    case "escalation.answered":
      return [type, `refused ${payload.refused ?? "not"}`];
    case "coordination.escalated":
      return [type, `asked ${payload.cause} ${payload.confidence?.of ?? ""}`.trim()];
    case "step.failed":
      return [type, `failed ${payload.error.code}`];
    case "step.skipped":
      return [type, `skipped ${payload.because}`];
    default:
      return [type];
  }
}
