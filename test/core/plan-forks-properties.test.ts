import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { decodeEvent, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { planDispatch } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { createUnopenedCoordination, type Coordination } from "../../src/agents/coordination/ledger/state.ts";
import type { LedgerStore } from "../../src/agents/coordination/ports/ledger-store.ts";
import { listDecidedFacts } from "../../src/agents/coordination/replay/decide-again.ts";
import {
  listCarriedResults,
  createForkSources,
} from "../../src/agents/coordination/runtime/log/carried-results.ts";
import { findProblemsOfFork } from "../../src/agents/coordination/runtime/verify-fork.ts";
import { planHistories, playPlan, type RandomPlan } from "./planned-arbitraries.ts";
import { admit } from "./planned-scene.ts";
import { RUN, START } from "./scene.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 300);
const FORK = "co-fork" as typeof RUN;

/** A fork of what is told there, as it begins. */
function forkOf(
  log: readonly RunEvent[],
  { opening, steps }: RandomPlan,
): { log: RunEvent[]; state: Coordination } {
  const carried = listCarriedResults(fold(RUN, log));
  const forkedFrom = { coordinationId: RUN, sequence: log.length };
  const ownSteps = steps.map(({ carried: _, decision, ...spec }) => {
    const result = carried.get(spec.stepId);
    return { ...spec, ...(result ? { carried: result } : decision && { decision }) };
  });
  const commands: Command[] = [
    { ...(opening as Command & { type: "openCoordination" }), forkedFrom },
    admit(...ownSteps),
  ];
  const forked: { log: RunEvent[]; state: Coordination } = {
    log: [],
    state: createUnopenedCoordination(FORK),
  };
  for (const command of commands) {
    const recorded = recordFacts(forked.state, listDecidedFacts(decide(forked.state, command, START)), START);
    forked.log.push(...recorded.events);
    forked.state = recorded.state;
  }
  return forked;
}

/** A store that has this log and no other. */
function readingOf(log: readonly RunEvent[]): LedgerStore["read"] {
  return (id, { from, limit }) => Promise.resolve(id === RUN ? log.slice(from, from + limit) : []);
}

const listCompleted = (state: Coordination): string[] =>
  state.kind === "unopened"
    ? []
    : state.steps
        .filter(({ phase }) => phase.status === "completed")
        .keySeq()
        .toArray();

/** Forks of any history of a plan, at any index. */
function prove(check: (input: { log: readonly RunEvent[]; plan: RandomPlan }) => void): void {
  fc.assert(
    fc.property(planHistories, fc.nat({ max: 80 }), (history, index) => {
      const { log } = playPlan(history);
      check({ log: log.slice(0, Math.min(index, log.length)), plan: history.plan });
    }),
    { numRuns: RUNS },
  );
}

describe("a fork of any history of a plan, from any index", () => {
  it("has exactly what had completed, and begins only what that allows", () =>
    prove(({ log, plan }) => {
      const source = fold(RUN, log);
      const { state } = forkOf(log, plan);
      const ofPlan = new Set(plan.steps.map(({ stepId }) => String(stepId)));
      const kept = listCompleted(source).filter((stepId) => ofPlan.has(stepId));
      expect(new Set(listCompleted(state))).toEqual(new Set(kept));
      for (const effect of planDispatch(state, START)) {
        if (effect.kind !== "runStep") continue;
        expect(kept).not.toContain(effect.stepId);
        const { dependsOn = [], fanIn = 0 } =
          plan.steps.find(({ stepId }) => stepId === effect.stepId)?.planned ?? {};
        expect(dependsOn.filter((stepId) => kept.includes(stepId)).length).toBeGreaterThanOrEqual(fanIn);
      }
    }));

  it("names, for each, the event of its source that completed it, with the same result", () =>
    prove(({ log, plan }) => {
      for (const event of forkOf(log, plan).log) {
        if (event.type !== "step.admitted" || !event.payload.carried) continue;
        const { eventId, output } = event.payload.carried;
        const knownRun = log.find((other) => other.eventId === eventId);
        const report =
          knownRun?.type === "step.admitted"
            ? knownRun.payload.carried
            : knownRun?.type === "step.completed"
              ? knownRun.payload
              : undefined;
        expect(report?.output).toEqual(output);
        expect(knownRun?.nodeId).toBe(event.payload.stepId);
      }
    }));

  it("L4: folds, as it is stored, to the state", () =>
    prove(({ log, plan }) => {
      const forked = forkOf(log, plan);
      const stored = forked.log.map((event) => decodeEvent(JSON.parse(JSON.stringify(event))));
      expect(fold(FORK, stored)).toStrictEqual(forked.state);
    }));

  it("is proved against its source, and no other one is", () =>
    fc.assert(
      fc.asyncProperty(
        planHistories,
        fc.nat({ max: 80 }),
        fc.nat({ max: 80 }),
        async (history, index, claimed) => {
          const { log } = playPlan(history);
          const at = Math.min(index + 1, log.length);
          const place = Math.min(claimed + 1, log.length);
          const { state } = forkOf(log.slice(0, at), history.plan);
          if (state.kind === "unopened") return;
          const sources = createForkSources({ store: { read: readingOf(log) } });
          const steps = [...state.steps.values()].map(({ spec }) => ({ ...spec, sequence: 0 }));
          const forkedFrom = { coordinationId: RUN, sequence: place };
          const problems = await findProblemsOfFork(sources, { runId: FORK, forkedFrom, steps });
          const there = listCarriedResults(fold(RUN, log.slice(0, place)));
          const differing = steps.filter(
            ({ stepId, carried }) => carried?.eventId !== there.get(stepId)?.eventId,
          );
          expect(problems.map(({ message }) => message.split(" ")[0])).toEqual(
            differing.map(({ stepId }) => stepId),
          );
        },
      ),
      { numRuns: RUNS },
    ));
});
