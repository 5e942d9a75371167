import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { recordRefusedCall } from "../../src/agents/coordination/dispatch/decide-words.ts";
import type { OpenCoordination } from "../../src/agents/coordination/ledger/state.ts";
import { stepId } from "./scene.ts";

type Call = Parameters<typeof recordRefusedCall>[1];

const CALL = { stepId: stepId(1), tool: "exec" };
const record = (step: object | undefined) => {
  const steps = new Map(step ? [[stepId(1), step]] : []);
  return recordRefusedCall(
    { steps } as unknown as OpenCoordination,
    { type: "recordRefusedCall", ...CALL } as unknown as Call,
  );
};

describe("a call that the privileges of a session do not allow", () => {
  it("is recorded with its step", () => {
    expect(record({})).toMatchObject({
      kind: "accepted",
      stepId: stepId(1),
      facts: [{ type: "privilege.refused", payload: CALL }],
    });
  });

  it("is recorded up to a bound, because a model may try for ever", () => {
    const recordAfter = (length: number) => record({ refusedCalls: Array.from({ length }) });
    expect(recordAfter(BOUNDS.privilegeRefusalsMax - 1).kind).toBe("accepted");
    expect(recordAfter(BOUNDS.privilegeRefusalsMax)).toEqual({ kind: "replay", stepId: stepId(1) });
  });

  it("of an unknown step is refused", () => {
    expect(record(undefined)).toMatchObject({
      kind: "refused",
      code: "UNKNOWN_STEP",
      reason: "there is no step step-1",
    });
  });
});
