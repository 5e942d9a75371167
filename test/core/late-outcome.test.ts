import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { refuseAndRecordLate } from "../../src/agents/coordination/dispatch/late-outcome.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
import { stepId } from "./scene.ts";

type Outcome = Parameters<typeof refuseAndRecordLate>[1]["outcome"];

const createStep = (status: string, late?: readonly string[]): Step =>
  ({ spec: { stepId: stepId(1) }, phase: { status, attempt: 2 }, ...(late && { late }) }) as unknown as Step;

/** The code, the reason and why it is recorded, if it is. */
function describeRefusal(step: Step, attempt: number, outcome: Outcome): readonly string[] {
  const decision = refuseAndRecordLate(step, { attempt, outcome });
  if (decision.kind !== "refused") throw new Error(`it is ${decision.kind}`);
  const reasons = (decision.facts ?? []).map(({ payload }) => (payload as { because: string }).because);
  return [decision.code, decision.reason, ...reasons];
}

const OTHER = ["NOT_HELD", "the verdict is about another result than the one that step step-1 is held for"];

describe("an outcome that came too late", () => {
  it.each(["dispatched", "running", "held"])(
    "is about another result where it is a verdict on a step that is %s",
    (status) => {
      expect(describeRefusal(createStep(status), 2, "verified")).toEqual([...OTHER, "other_target"]);
    },
  );

  it("is about a step that ended, where it did, whatever the outcome is", () => {
    const ended = ["STEP_ENDED", "step step-1 is completed", "step_ended"];
    expect(describeRefusal(createStep("completed"), 2, "verified")).toEqual(ended);
    expect(describeRefusal(createStep("completed"), 2, "completed")).toEqual(ended);
    expect(describeRefusal(createStep("held"), 2, "completed")[0]).toBe("STEP_ENDED");
  });

  it("is of another attempt, a verdict, too", () => {
    const stale = [
      "STALE_ATTEMPT",
      "attempt 1 of step step-1 is not the current attempt, which is 2",
      "stale_attempt",
    ];
    expect(describeRefusal(createStep("running"), 1, "completed")).toEqual(stale);
    expect(describeRefusal(createStep("running"), 1, "verified")).toEqual(stale);
  });

  it("is recorded once, within the bound, and only of an attempt that there was", () => {
    const isRecorded = (attempt: number, late?: readonly string[]): boolean =>
      describeRefusal(createStep("completed", late), attempt, "failed").length > 2;
    const most = Array.from({ length: BOUNDS.lateOutcomesPerStepMax }, (_, index) => `${index}:x`);
    expect(isRecorded(2, ["2:completed"])).toBe(true);
    expect(isRecorded(2, ["2:failed"])).toBe(false);
    expect(isRecorded(2, most)).toBe(false);
    expect(isRecorded(2, most.slice(1))).toBe(true);
    expect([0, 1, 2, 3].map((attempt) => isRecorded(attempt))).toEqual([false, true, true, false]);
  });
});
