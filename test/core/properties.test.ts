import { OrderedMap } from "immutable";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { coordinationEnvelopeSchema } from "../../src/agents/coordination/contracts/envelope.ts";
import { addMs, type EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { decodeEvent, isFact, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { buildEnvelope } from "../../src/agents/coordination/dispatch/build-envelope.ts";
import {
  findNextDeadline,
  planDispatch,
  planRecovery,
} from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { evolve, fold } from "../../src/agents/coordination/ledger/evolve.ts";
import {
  isEnded,
  createUnopenedCoordination,
  type Coordination,
} from "../../src/agents/coordination/ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../src/agents/coordination/ledger/summary.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { histories, playMoves, RUN, type Move, type PlayedMoves } from "../support/arbitraries.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import { loadOpenWopSchemas } from "./openwop-schemas.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 300);

const openWop = loadOpenWopSchemas();

function prove(check: (played: PlayedMoves) => void | Promise<void>, numRuns = RUNS): Promise<void> {
  const property = fc.asyncProperty(histories, async (moves: Move[]) => check(playMoves(moves)));
  return fc.assert(property, { numRuns });
}

const REFUSALS = ["step.outcome_refused", "escalation.answered"];

/** Cancelled work is stopped, and held results are looked after, whatever the time is. */
const ANY_TIME: ReadonlySet<string> = new Set(["stopObserved", "verifyResult", "tellSession", "runStep"]);

const filterByType = <T extends RunEvent["type"]>(
  log: readonly RunEvent[],
  type: T,
): Extract<RunEvent, { type: T }>[] =>
  log.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);

const stepsOf = (state: Coordination): Exclude<Coordination, { kind: "unopened" }>["steps"] =>
  state.kind === "unopened" ? OrderedMap<never, never>() : state.steps;

describe("for every history of commands", () => {
  it("L2: sequences are gapless, ids follow from them, and times are the command's", () =>
    prove(({ log }) => {
      for (const [index, event] of log.entries()) {
        expect(event).toMatchObject({ sequence: index, eventId: `${RUN}:${index}`, runId: RUN });
      }
    }));

  it("L3: every cause is an earlier event, and only the opening has none", () =>
    prove(({ log }) => {
      const seen = new Set<string>();
      for (const { eventId, causationId, type } of log) {
        if (causationId === undefined) expect(type).toBe("coordination.created");
        else expect(seen.has(causationId), `${eventId} by ${causationId}`).toBe(true);
        seen.add(eventId);
      }
    }));

  it("L4: the log folds in one go to what it folded to step by step, also out of its JSON", () =>
    prove(({ log, state }) => {
      expect(fold(RUN, log)).toStrictEqual(state);
      const stored = log.map((event) => decodeEvent(JSON.parse(JSON.stringify(event))));
      expect(stored).toStrictEqual(log);
      expect(fold(RUN, stored)).toStrictEqual(state);
      let piecewise: Coordination = createUnopenedCoordination(RUN);
      for (const event of stored) piecewise = evolve(piecewise, event);
      expect(piecewise).toStrictEqual(state);
    }));

  it("L5: a ledger of it is verified", () =>
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
        expect((await verifyLedger(store)).problems).toEqual([]);
      },
      Math.ceil(RUNS / 3),
    ));

  it("every event is valid in OpenWOP, and so is every envelope here", () =>
    prove(
      ({ log, state }) => {
        for (const event of log) expect(openWop.problemsOf(event)).toEqual([]);
        for (const stepId of stepsOf(state).keys())
          expect(coordinationEnvelopeSchema.safeParse(buildEnvelope(state, stepId)).error).toBeUndefined();
      },
      Math.ceil(RUNS / 3),
    ));

  it("D2: a command that was accepted is never accepted again as it is, but for new work", () =>
    prove(({ steps }) => {
      for (const [index, { command, decision, after }] of steps.entries()) {
        const next = steps[index + 1];
        if (decision.kind !== "accepted" || next?.command !== command || command.type === "admitSpawn")
          continue;
        expect(next.decision.kind).not.toBe("accepted");
        if (next.decision.kind !== "refused" || !next.decision.facts) expect(next.after).toBe(after);
      }
    }));

  it("D2: a spawn that is repeated before the host answered is the same step, and no key is used twice", () =>
    prove(({ steps, log }) => {
      for (const [index, { command, decision }] of steps.entries()) {
        const next = steps[index + 1];
        if (decision.kind !== "accepted" || next?.command !== command || command.type !== "admitSpawn")
          continue;
        if (command.call.toolCallId)
          expect(next.decision).toEqual({ kind: "replay", stepId: decision.stepId });
      }
      const keys = filterByType(log, "step.dispatched").map(({ payload }) => payload.idempotencyKey);
      expect(new Set(keys).size).toBe(keys.length);
      const children = filterByType(log, "step.acknowledged").map(({ payload }) => payload.childSessionKey);
      expect(new Set(children).size).toBe(children.length);
    }));

  it("D3: nothing is accepted about an attempt but the present one", () =>
    prove(({ steps }) => {
      for (const { command, decision, before } of steps) {
        if (!("attempt" in command) || decision.kind !== "accepted") continue;
        expect(stepsOf(before).get(command.stepId)?.phase.attempt).toBe(command.attempt);
      }
    }));

  it("D4: no step is attempted more often than its budget allows", () =>
    prove(({ state }) => {
      for (const { spec, phase } of stepsOf(state).values())
        expect(phase.attempt).toBeLessThanOrEqual(spec.retryBudget + 1);
    }));

  it("D5: there is at most one end, every step ends at most once, and no fact follows the end", () =>
    prove(({ log, state }) => {
      const terminal = filterByType(log, "coordination.terminal");
      expect(terminal).toHaveLength(state.kind === "ended" ? 1 : 0);
      if (state.kind === "ended") expect(log.findLast(isFact)).toBe(terminal[0]);
      const ends = log.filter(({ type }) =>
        ["step.completed", "step.failed", "step.timed_out"].includes(type),
      );
      expect(new Set(ends.map(({ nodeId }) => nodeId)).size).toBe(ends.length);
      if (state.kind === "ended")
        expect([...state.steps.values()].filter(({ phase }) => !isEnded(phase))).toEqual([]);
    }));

  it("D5: an end absorbs whatever comes after it", () =>
    prove(({ steps }) => {
      for (const { before, after, decision } of steps) {
        if (before.kind !== "ended") continue;
        expect(after).toBe(before);
        expect(decision.kind).not.toBe("accepted");
      }
    }));

  it("an answer other than acceptance leaves no trace but the refusal that it records, which changes no phase", () =>
    prove(({ steps }) => {
      for (const { before, after, decision } of steps) {
        if (decision.kind === "accepted") continue;
        if (decision.kind === "replay" || !decision.facts) expect(after).toBe(before);
        else expect(REFUSALS).toContain(decision.facts.map(({ type }) => type).join(" "));
        for (const [stepId, { phase }] of stepsOf(before))
          expect(stepsOf(after).get(stepId)?.phase).toBe(phase);
      }
    }));

  it("effects are planned the same twice, with ids that differ from each other", () =>
    prove(({ state, steps }) => {
      const now = addMs(steps.at(-1)?.now ?? (0 as EpochMs), 1e9);
      const planned = planDispatch(state, now);
      expect(planDispatch(fold(RUN, []), now)).toEqual([]);
      expect(planDispatch(state, now)).toEqual(planned);
      const ids = planned.map(({ effectId }) => effectId);
      expect(new Set(ids).size).toBe(ids.length);
      const recovered = planRecovery(state, now).map(({ effectId }) => effectId);
      expect(recovered.every((id) => ids.includes(id))).toBe(true);
    }));

  it("nothing is planned before the next deadline, something is at it, and what is open has one", () =>
    prove(({ steps }) => {
      for (const { after } of steps) {
        const due = findNextDeadline(after);
        expect(due !== undefined).toBe(after.kind === "open");
        if (due === undefined) continue;
        const before = planDispatch(after, addMs(due, -1));
        expect(before.filter(({ kind }) => !ANY_TIME.has(kind))).toEqual([]);
        if (before.length > 0 && after.kind === "open") expect(due).toBeLessThanOrEqual(after.changedAtMs);
        expect(planDispatch(after, due).length).toBeGreaterThan(0);
      }
    }));

  it("histories reach every situation that there is", () => {
    const met = new Set<string>();
    for (const moves of fc.sample(histories, { numRuns: 4_000, seed: 1 })) {
      const { state, steps } = playMoves(moves);
      met.add(state.kind === "ended" ? state.status : state.kind);
      for (const { phase } of stepsOf(state).values()) met.add(`step ${phase.status}`);
      for (const { decision } of steps) met.add(decision.kind === "refused" ? decision.code : decision.kind);
    }
    const refusals = ["NOT_OPENED", "ALREADY_OPENED", "COORDINATION_ENDED", "UNKNOWN_STEP", "STALE_ATTEMPT"];
    const more = [
      "STEP_ENDED",
      "OTHER_CHILD",
      "CHILD_TAKEN",
      "ALREADY_RUNNING",
      "STEPS_OPEN",
      "NOT_HELD",
      "UNKNOWN_QUESTION",
      "accepted",
      "replay",
    ];
    const phases = ["dispatched", "running", "held", "completed", "failed", "cancelled", "timed_out"];
    for (const each of [...refusals, ...more, ...phases.map((phase) => `step ${phase}`)])
      expect(met).toContain(each);
    for (const status of ["open", "success", "partial", "failed", "cancelled"]) expect(met).toContain(status);
  });
});
