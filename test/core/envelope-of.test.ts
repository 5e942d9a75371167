import { describe, expect, it } from "vitest";
import { buildEnvelope } from "../../src/agents/coordination/dispatch/build-envelope.ts";
import { settleObservedSpawns } from "../../src/agents/coordination/dispatch/settle-plan.ts";
import type { Coordination, OpenCoordination } from "../../src/agents/coordination/ledger/state.ts";
import { RUN, stepId } from "./scene.ts";

function findEnvelope(phase: object, spec: object = {}) {
  const step = { spec: { call: {}, ...spec }, phase };
  const state = { kind: "open", coordinationId: RUN, steps: new Map([[stepId(1), step]]) };
  return buildEnvelope(state as unknown as Coordination, stepId(1));
}

describe("the envelope of a step", () => {
  it.each([
    ["dispatched", 7],
    ["running", 7],
    ["completed", undefined],
  ])("that is %s has the deadline %s", (status, deadlineMs) => {
    expect(findEnvelope({ status, deadlineAtMs: 7 })?.deadlineMs).toBe(deadlineMs);
  });

  it("is a report where the owner is told, and work elsewhere", () => {
    const intents = ["owner", "subagent"].map(
      (runner) => findEnvelope({ status: "waiting" }, { runner })?.intent,
    );
    expect(intents).toEqual(["report", "execute"]);
  });
});

describe("the end of observed spawns", () => {
  const settle = (fields: object) =>
    settleObservedSpawns({
      openSteps: { toArray: () => [] },
      tellings: new Map(),
      openQuestions: new Map(),
      steps: new Map(),
      ...fields,
    } as unknown as OpenCoordination);

  it("waits for sessions to be told, and for answers of people, and says so", () => {
    expect(settle({ tellings: new Map([[1, 1]]) })).toEqual({
      kind: "refused",
      code: "STEPS_OPEN",
      reason: "a session has not been told its result or answer yet",
    });
    expect(settle({ openQuestions: new Map([[1, 1]]) })).toEqual({
      kind: "refused",
      code: "QUESTIONS_OPEN",
      reason: "people were asked and have not answered yet",
    });
  });
});
