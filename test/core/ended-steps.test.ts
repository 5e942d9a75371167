import { describe, expect, it } from "vitest";
import { updateEndedSteps } from "../../src/agents/coordination/ledger/evolve.ts";
import type { Step } from "../../src/agents/coordination/ledger/state.ts";
import { openAtWork, openOf } from "./claims-scene.ts";
import { stepId } from "./scene.ts";

const createStep = (status: string, step = 1): Step =>
  ({ spec: { stepId: stepId(step) }, phase: { status } }) as unknown as Step;

/** The open steps, and how many ended in which way, of those ways that any step ended in. */
function describeTally({ openSteps, endedSteps }: ReturnType<typeof updateEndedSteps>) {
  const ends = Object.entries(endedSteps).filter(([, count]) => count !== 0);
  return { open: openSteps.toArray(), ends: Object.fromEntries(ends) };
}

describe("the steps that have not ended", () => {
  const atWork = openOf(openAtWork(2));
  const failed = updateEndedSteps(atWork, createStep("running"), createStep("failed"));

  it("are fewer by one that ends, which is counted by its end", () => {
    expect(describeTally(atWork)).toEqual({ open: [stepId(1), stepId(2)], ends: {} });
    expect(describeTally(failed)).toEqual({ open: [stepId(2)], ends: { failed: 1 } });
  });

  it("are more by one that a retry takes up again, which is no longer counted", () => {
    const again = updateEndedSteps(failed, createStep("failed"), createStep("backoff"));
    expect(describeTally(again)).toEqual({ open: [stepId(2), stepId(1)], ends: {} });
  });

  it.each([
    ["running", "held", 2],
    ["failed", "cancelled", 1],
  ])("are the same where a step goes from %s to %s", (before, after, step) => {
    const same = updateEndedSteps(failed, createStep(before, step), createStep(after, step));
    expect(describeTally(same)).toEqual(describeTally(failed));
  });
});
