import { describe, expect, it } from "vitest";
import {
  OWNER_STEP_ID,
  type CoordinationId,
  type EventId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft, RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { evolve, fold } from "../../src/agents/coordination/ledger/evolve.ts";
import {
  createUnopenedCoordination,
  type Coordination,
  type Step,
} from "../../src/agents/coordination/ledger/state.ts";
import {
  acknowledge,
  timeAt,
  nameChild,
  complete,
  createDispatched,
  fail,
  openScene,
  OPEN,
  RUN,
  SETTLE,
  spawn,
  stepId,
  timeOut,
  openWaitingScene,
} from "./scene.ts";
import { usageOf } from "./usage-scene.ts";

const stepOf = (state: Coordination, number = 1): Step => {
  const step = state.kind === "unopened" ? undefined : state.steps.get(stepId(number));
  if (!step) throw new Error("no such step");
  return step;
};

describe("the state after", () => {
  const dispatchedAt = timeAt(1_000);
  const deadline = timeAt(61_000);

  it.each([
    [
      "a dispatch",
      [],
      { status: "dispatched", attempt: 1, dispatchedAtMs: dispatchedAt, deadlineAtMs: deadline },
    ],
    [
      "an acknowledgement",
      [acknowledge(1)],
      {
        status: "running",
        attempt: 1,
        dispatchedAtMs: dispatchedAt,
        acknowledgedAtMs: timeAt(2_000),
        deadlineAtMs: deadline,
        childSessionKey: nameChild(1),
        childRunId: "run-of-1",
      },
    ],
    ["a completion", [acknowledge(1), complete(1)], { status: "completed", endedAtMs: timeAt(3_000) }],
    [
      "a refusal",
      [fail(1, "spawn_refused")],
      { status: "failed", error: { code: "spawn_refused" }, endedAtMs: timeAt(2_000) },
    ],
    ["a cancellation", [acknowledge(1), fail(1, "child_cancelled")], { status: "cancelled" }],
    ["a time-out", [acknowledge(1), timeOut(1)], { status: "timed_out" }],
  ])("%s holds what is known then", (_, commands, phase) => {
    expect(stepOf(openScene(OPEN, spawn("a"), ...commands).state).phase).toMatchObject(phase);
  });

  it("the end keeps the child, where there was one", () => {
    const ended = stepOf(openScene(OPEN, spawn("a"), acknowledge(1), timeOut(1)).state).phase;
    expect(ended).toHaveProperty("child", { childSessionKey: nameChild(1), childRunId: "run-of-1" });
    expect(stepOf(openScene(OPEN, spawn("a"), timeOut(1)).state).phase).not.toHaveProperty("child");
  });

  it("the terminal event is ended, with its status and time", () => {
    const { state } = openScene(OPEN, spawn("a"), fail(1), SETTLE);
    expect(state).toMatchObject({
      kind: "ended",
      status: "failed",
      endedAtMs: timeAt(3_000),
      changedAtMs: timeAt(3_000),
    });
  });

  it("a retry is the next attempt of the same step", () => {
    const scene = openWaitingScene(1);
    scene.happened([createDispatched(1)]);
    scene.when(timeOut(1));
    scene.happened([createDispatched(2)]);
    expect(stepOf(scene.state).phase).toMatchObject({ status: "dispatched", attempt: 2 });
  });
});

describe("a log that cannot be", () => {
  const { log } = openScene(OPEN, spawn("a"), acknowledge(1), complete(1), SETTLE);
  const foldBroken = (events: readonly RunEvent[]) => () => fold(RUN, events);

  it("L2: has a gap, a repetition or events out of order", () => {
    expect(foldBroken(log.toSpliced(3, 1))).toThrow("L2: expected sequence 3 at co-1:4");
    expect(foldBroken(log.toSpliced(3, 0, log[2]!))).toThrow("L2");
    expect(foldBroken(log.toReversed())).toThrow("L2");
  });

  it("L2: has an event of another run", () => {
    expect(() => fold("co-2" as CoordinationId, log)).toThrow("L2: co-1:0 is not of co-2");
  });

  it("L5: begins with a projection", () => {
    const [, first] = log;
    expect(foldBroken([{ ...first!, sequence: 0 }])).toThrow("L5: run.started before coordination.created");
  });

  it("D5: begins with the usage of a run", () => {
    const { log: used } = openScene(OPEN, { type: "recordUsage", ...usageOf(OWNER_STEP_ID, 1) });
    expect(foldBroken([{ ...used.at(-1)!, sequence: 0 }])).toThrow(
      "D5: usage.recorded on a coordination that is unopened: co-1:",
    );
  });

  it.each<[string, readonly FactDraft[]]>([
    ["created twice", [{ type: "coordination.created", payload: createOpeningPayload() }]],
    ["D4: attempt 2 is over the budget", [createFailedFact(), createDispatched(2)]],
    ["D3: attempt 1 out of order", [createDispatched(1)]],
    ["D3: attempt 3 out of order", [createDispatched(3)]],
    [
      "no step step-9",
      [{ ...createFailedFact(), payload: { ...createFailedFact().payload, stepId: stepId(9) } }],
    ],
    [
      "D3: outcome of attempt 2",
      [{ ...createFailedFact(), payload: { ...createFailedFact().payload, attempt: 2 } }],
    ],
    ["D5: step.failed while failed", [createFailedFact(), createFailedFact()]],
    ["A3: resolution without an open conflict", [createResolved()]],
    ["A3: resolution without an open conflict", [createDetected(), createResolved(), createResolved()]],
    ["A3: conflict c-1 detected twice", [createDetected(), createDetected()]],
  ])("is refused: %s", (message, facts) => {
    const scene = openScene(OPEN, spawn("a"));
    expect(() => {
      scene.happened(facts);
    }).toThrow(message);
  });

  it("D5: goes on after its terminal event", () => {
    const scene = openScene(OPEN, SETTLE);
    expect(() => {
      scene.happened([createDetected()]);
    }).toThrow("D5: conflict.detected on a coordination that is ended");
  });

  it.each([
    ["running", []],
    ["completed", [complete(1)]],
    ["cancelled", [fail(1, "child_cancelled")]],
  ])("D5: begins again what is %s", (status, ends) => {
    const scene = openWaitingScene(5);
    scene.happened([createDispatched(1)]);
    for (const command of [acknowledge(1), ...ends]) scene.when(command);
    expect(() => {
      scene.happened([createDispatched(2)]);
    }).toThrow(`D5: dispatched while ${status}`);
  });
});

function createOpeningPayload(): Extract<FactDraft, { type: "coordination.created" }>["payload"] {
  const { type: _, ...payload } = OPEN as typeof OPEN & { type: "openCoordination" };
  return payload;
}
function createFailedFact(): Extract<FactDraft, { type: "step.failed" }> {
  const error = { code: "child_failed", message: "x" } as const;
  return {
    type: "step.failed",
    payload: { stepId: stepId(1), attempt: 1, error, cancelled: false, via: "hook" },
  };
}
function createDetected(): FactDraft {
  const claims = [1, 2].map((number) => ({
    stepId: stepId(number),
    priority: "low" as const,
    claimedSequence: number,
  }));
  return { type: "conflict.detected", payload: { conflictId: "c-1", resource: "file:/a", claims } };
}
function createResolved(): FactDraft {
  return {
    type: "conflict.resolved",
    payload: { conflictId: "c-1", strategy: "owner_wins", losers: [stepId(2)], because: "first" },
  };
}

describe("a state", () => {
  it("is never changed by what comes after it", () => {
    const { log } = openScene(OPEN, spawn("a"), acknowledge(1), spawn("b"), complete(1), fail(2), SETTLE);
    const texts: string[] = [];
    const states: Coordination[] = [createUnopenedCoordination(RUN)];
    const printState = (state: Coordination): string =>
      JSON.stringify(state, (_, value: unknown) => (value instanceof Map ? [...value] : value));
    for (const event of log) {
      const last = states.at(-1)!;
      texts.push(printState(last));
      states.push(evolve(last, event));
    }
    expect(states.slice(0, -1).map(printState)).toEqual(texts);
  });

  it("knows the newest fact, by which the terminal event is caused", () => {
    const { log } = openScene(OPEN, spawn("a"), fail(1), SETTLE);
    const terminal = log.find(({ type }) => type === "coordination.terminal");
    const failed = log.find(({ type }) => type === "step.failed");
    expect(terminal?.causationId).toBe(failed?.eventId satisfies EventId | undefined);
  });
});
