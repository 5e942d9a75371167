import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DELIVERY_STEP_ID, type CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { decodeEvent, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { ReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import { createCounterfactual, type WhatIf } from "../../src/agents/coordination/replay/what-if.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import type { Coordination, Step } from "../../src/agents/coordination/ledger/state.ts";
import { startReplay, continueReplay } from "../../src/agents/coordination/replay/replay-log.ts";
import { claimHistories, playClaims } from "./claims-play.ts";
import { playGates } from "./gates-play.ts";
import { setups } from "./gates-setups.ts";
import { planHistories, playPlan } from "./planned-arbitraries.ts";
import { RUN } from "./scene.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 200);
const NO_OUTPUTS = new Map();

/** As the ledger gives it. */
const storeAndRead = (log: readonly RunEvent[]): RunEvent[] =>
  log.map((event) => decodeEvent(JSON.parse(JSON.stringify(event))));

/** Up to where a play makes up how far its plan came, which no host does. */
function keepHonest(log: readonly RunEvent[]): RunEvent[] {
  let completed = 0;
  const total = new Set<string>();
  const lie = log.findIndex((event) => {
    if (event.type === "step.admitted" && event.payload.planned) total.add(event.payload.stepId);
    if (event.type === "step.completed" && total.has(event.payload.stepId)) completed += 1;
    if (event.type !== "plan.judged") return false;
    return event.payload.successCriteria.some(({ met }) => met !== (completed === total.size));
  });
  return lie === -1 ? [...log] : log.slice(0, lie);
}

const KINDS = [
  ["verdicts and answers", setups.map((setup) => playGates(setup).log)],
  ["claims and conflicts", claimHistories.map((moves) => playClaims(moves).log)],
  ["plans", planHistories.map((history) => playPlan(history).log)],
] as const;

describe.each(KINDS)("a replay of any history of %s", (_, logs) => {
  it("decides, rules and projects everything as it is recorded, from any index", () => {
    fc.assert(
      fc.property(logs, fc.nat({ max: 60 }), (played, from) => {
        const log = keepHonest(played);
        const id = log[0]?.runId ?? RUN;
        const replayed = continueReplay(startReplay(id), storeAndRead(log), { from, outputs: NO_OUTPUTS });
        expect(replayed.difference).toBeUndefined();
        expect(replayed.state.nextSequence).toBe(log.length);
      }),
      { numRuns: RUNS },
    );
  });
});

const idOf = (log: readonly RunEvent[]): CoordinationId => log[0]?.runId ?? RUN;

/** Nothing where no decision is left from there on. */
function replayWhatIf(log: readonly RunEvent[], policy: ReplayPolicy, from = 0): WhatIf | undefined {
  const other = createCounterfactual({ policy });
  let decisions = 0;
  const onDecided = (decided: Parameters<typeof other.take>[0]): void => {
    decisions += 1;
    other.take(decided);
  };
  const replayed = continueReplay(startReplay(idOf(log)), storeAndRead(log), {
    from,
    outputs: NO_OUTPUTS,
    onDecided,
  });
  expect(replayed.difference).toBeUndefined();
  return decisions === 0 ? undefined : other.result();
}

const listCompleted = (state: Coordination): Set<string> =>
  new Set(
    state.kind === "unopened"
      ? []
      : state.steps
          .filter(({ phase }) => phase.status === "completed")
          .keySeq()
          .toArray(),
  );

const listSteps = (other: WhatIf | undefined): Step[] =>
  other && other.state.kind !== "unopened" ? [...other.state.steps.values()] : [];

const copyPlain = (state: Coordination): unknown => JSON.parse(JSON.stringify(state));

const POLICIES: readonly ReplayPolicy[] = [
  { gates: { confidenceThreshold: 1, requireConfidence: true, decisionFloor: 1 } },
  { gates: { enabled: false } },
  { gates: { confidenceThreshold: 0 } },
  { failurePolicy: { retryBudget: 3, timeoutPolicy: "fail_fast", escalationPolicy: "hitl" } },
  { failurePolicy: { retryBudget: 0, timeoutPolicy: "continue_with_partial", escalationPolicy: "none" } },
  { retry: { budget: 2, backoffMs: 60_000 } },
  { retry: { budget: 0, backoffMs: 1 } },
  { gates: { decisionFloor: 0.5 } },
  { conflicts: { strategy: "priority_wins" } },
  { conflicts: { strategy: "manual_review" } },
  { conflicts: { highRisk: ["file:**"] } },
  { escalateMs: 1_000, requireDifferentApprover: true },
];

describe.each(KINDS)("any history of %s, under another policy", (_, logs) => {
  const assertProperty = (check: (log: RunEvent[], from: number, policy: ReplayPolicy) => void): void => {
    const policies = fc.constantFrom(...POLICIES);
    fc.assert(
      fc.property(logs, fc.nat({ max: 40 }), policies, (log, from, policy) =>
        check(keepHonest(log), from, policy),
      ),
      { numRuns: RUNS },
    );
  };

  it("is the same history under the policy that held", () => {
    assertProperty((log, from) => {
      const other = replayWhatIf(log, {}, from);
      if (!other) return;
      expect(other.points).toEqual([]);
      expect(other.leftOut).toBe(0);
      expect(other.uncertain).toEqual([]);
      expect(copyPlain(other.state)).toEqual(copyPlain(fold(idOf(log), storeAndRead(log))));
    });
  });

  it("stays as it is before the index, and comes out the same twice", () => {
    assertProperty((log, from, policy) => {
      const other = replayWhatIf(log, policy, from);
      expect(other?.points.every(({ sequence }) => sequence >= from) ?? true).toBe(true);
      expect(JSON.stringify(replayWhatIf(log, policy, from))).toBe(JSON.stringify(other));
    });
  });

  it("holds nothing where nothing is to be held, and tries nothing again without a budget", () => {
    assertProperty((log) => {
      const open = listSteps(replayWhatIf(log, { gates: { enabled: false } }));
      expect(open.filter(({ phase }) => phase.status === "held")).toEqual([]);
      const once = listSteps(replayWhatIf(log, { retry: { budget: 0 } }));
      const planned = once.filter(({ spec }) => spec.planned && spec.stepId !== DELIVERY_STEP_ID);
      for (const { phase, granted = 0, revisions = 0 } of planned)
        expect(phase.attempt - granted - revisions).toBeLessThanOrEqual(1);
    });
  });

  it("lets no result through under a stricter floor that did not count", () => {
    assertProperty((log, from) => {
      const strict = { gates: { confidenceThreshold: 1, requireConfidence: true, decisionFloor: 1 } };
      const other = replayWhatIf(log, strict, from);
      const then = listCompleted(fold(idOf(log), storeAndRead(log)));
      for (const stepId of listCompleted(other?.state ?? fold(idOf(log), [])))
        expect(then.has(stepId)).toBe(true);
    });
  });
});
