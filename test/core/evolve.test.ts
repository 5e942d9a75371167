import { describe, expect, it } from "vitest";
import type { CoordinationId, EventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft, RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { evolve, fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { createUnopened, type Coordination, type Step } from "../../src/agents/coordination/ledger/state.ts";
import {
  ack,
  at,
  childKey,
  complete,
  dispatched,
  fail,
  given,
  OPEN,
  RUN,
  SETTLE,
  spawn,
  stepId,
  timeOut,
  waiting,
} from "./scene.ts";

const stepOf = (state: Coordination, number = 1): Step => {
  const step = state.kind === "unopened" ? undefined : state.steps.get(stepId(number));
  if (!step) throw new Error("no such step");
  return step;
};

describe("the state after", () => {
  const dispatchedAt = at(1_000);
  const deadline = at(61_000);

  it.each([
    [
      "a dispatch",
      [],
      { status: "dispatched", attempt: 1, dispatchedAtMs: dispatchedAt, deadlineAtMs: deadline },
    ],
    [
      "an acknowledgement",
      [ack(1)],
      {
        status: "running",
        attempt: 1,
        dispatchedAtMs: dispatchedAt,
        acknowledgedAtMs: at(2_000),
        deadlineAtMs: deadline,
        childSessionKey: childKey(1),
        childRunId: "run-of-1",
      },
    ],
    ["a completion", [ack(1), complete(1)], { status: "completed", endedAtMs: at(3_000) }],
    [
      "a refusal",
      [fail(1, "spawn_refused")],
      { status: "failed", error: { code: "spawn_refused" }, endedAtMs: at(2_000) },
    ],
    ["a cancellation", [ack(1), fail(1, "child_cancelled")], { status: "cancelled" }],
    ["a time-out", [ack(1), timeOut(1)], { status: "timed_out" }],
  ])("%s holds what is known then", (_, commands, phase) => {
    expect(stepOf(given(OPEN, spawn("a"), ...commands).state).phase).toMatchObject(phase);
  });

  it("the end keeps the child, where there was one", () => {
    const ended = stepOf(given(OPEN, spawn("a"), ack(1), timeOut(1)).state).phase;
    expect(ended).toHaveProperty("child", { childSessionKey: childKey(1), childRunId: "run-of-1" });
    expect(stepOf(given(OPEN, spawn("a"), timeOut(1)).state).phase).not.toHaveProperty("child");
  });

  it("the terminal event is ended, with its status and time", () => {
    const { state } = given(OPEN, spawn("a"), fail(1), SETTLE);
    expect(state).toMatchObject({
      kind: "ended",
      status: "failed",
      endedAtMs: at(3_000),
      changedAtMs: at(3_000),
    });
  });

  it("a retry is the next attempt of the same step", () => {
    const scene = waiting(1);
    scene.happened([dispatched(1)]);
    scene.when(timeOut(1));
    scene.happened([dispatched(2)]);
    expect(stepOf(scene.state).phase).toMatchObject({ status: "dispatched", attempt: 2 });
  });
});

describe("a log that cannot be", () => {
  const { log } = given(OPEN, spawn("a"), ack(1), complete(1), SETTLE);
  const broken = (events: readonly RunEvent[]) => () => fold(RUN, events);

  it("L2: has a gap, a repetition or events out of order", () => {
    expect(broken(log.toSpliced(3, 1))).toThrow("L2: expected sequence 3 at co-1:4");
    expect(broken(log.toSpliced(3, 0, log[2]!))).toThrow("L2");
    expect(broken(log.toReversed())).toThrow("L2");
  });

  it("L2: has an event of another run", () => {
    expect(() => fold("co-2" as CoordinationId, log)).toThrow("L2: co-1:0 is not of co-2");
  });

  it("L5: begins with a projection", () => {
    const [, first] = log;
    expect(broken([{ ...first!, sequence: 0 }])).toThrow("L5: run.started before coordination.created");
  });

  it.each<[string, readonly FactDraft[]]>([
    ["created twice", [{ type: "coordination.created", payload: createdPayload() }]],
    ["D4: attempt 2 is over the budget", [failedFact(), dispatched(2)]],
    ["D3: attempt 1 out of order", [dispatched(1)]],
    ["D3: attempt 3 out of order", [dispatched(3)]],
    ["no step step-9", [{ ...failedFact(), payload: { ...failedFact().payload, stepId: stepId(9) } }]],
    ["D3: outcome of attempt 2", [{ ...failedFact(), payload: { ...failedFact().payload, attempt: 2 } }]],
    ["D5: step.failed while failed", [failedFact(), failedFact()]],
    ["A3: resolution without an open conflict", [resolved()]],
    ["A3: resolution without an open conflict", [detected(), resolved(), resolved()]],
    ["A3: conflict c-1 detected twice", [detected(), detected()]],
  ])("is refused: %s", (message, facts) => {
    const scene = given(OPEN, spawn("a"));
    expect(() => {
      scene.happened(facts);
    }).toThrow(message);
  });

  it("D5: goes on after its terminal event", () => {
    const scene = given(OPEN, SETTLE);
    expect(() => {
      scene.happened([detected()]);
    }).toThrow("D5: conflict.detected on a coordination that is ended");
  });

  it.each([
    ["running", []],
    ["completed", [complete(1)]],
    ["cancelled", [fail(1, "child_cancelled")]],
  ])("D5: begins again what is %s", (status, ends) => {
    const scene = waiting(5);
    scene.happened([dispatched(1)]);
    for (const command of [ack(1), ...ends]) scene.when(command);
    expect(() => {
      scene.happened([dispatched(2)]);
    }).toThrow(`D5: dispatched while ${status}`);
  });
});

function createdPayload(): Extract<FactDraft, { type: "coordination.created" }>["payload"] {
  const { type: _, ...payload } = OPEN as typeof OPEN & { type: "openCoordination" };
  return payload;
}
function failedFact(): Extract<FactDraft, { type: "step.failed" }> {
  const error = { code: "child_failed", message: "x" } as const;
  return {
    type: "step.failed",
    payload: { stepId: stepId(1), attempt: 1, error, cancelled: false, via: "hook" },
  };
}
function detected(): FactDraft {
  const claims = [1, 2].map((number) => ({
    stepId: stepId(number),
    priority: "low" as const,
    claimedSequence: number,
  }));
  return { type: "conflict.detected", payload: { conflictId: "c-1", resource: "file:/a", claims } };
}
function resolved(): FactDraft {
  return {
    type: "conflict.resolved",
    payload: { conflictId: "c-1", strategy: "owner_wins", losers: [stepId(2)], because: "first" },
  };
}

describe("a state", () => {
  it("is never changed by what comes after it", () => {
    const { log } = given(OPEN, spawn("a"), ack(1), spawn("b"), complete(1), fail(2), SETTLE);
    const texts: string[] = [];
    const states: Coordination[] = [createUnopened(RUN)];
    const text = (state: Coordination): string =>
      JSON.stringify(state, (_, value: unknown) => (value instanceof Map ? [...value] : value));
    for (const event of log) {
      const last = states.at(-1)!;
      texts.push(text(last));
      states.push(evolve(last, event));
    }
    expect(states.slice(0, -1).map(text)).toEqual(texts);
  });

  it("knows the newest fact, by which the terminal event is caused", () => {
    const { log } = given(OPEN, spawn("a"), fail(1), SETTLE);
    const terminal = log.find(({ type }) => type === "coordination.terminal");
    const failed = log.find(({ type }) => type === "step.failed");
    expect(terminal?.causationId).toBe(failed?.eventId satisfies EventId | undefined);
  });
});
