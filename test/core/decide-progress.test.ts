/** Owns: how often an agent may say how far it is, and when it may not at all. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { addMs } from "../../src/agents/coordination/contracts/ids.ts";
import {
  findNextProgressTime,
  PROGRESS_EVERY_MS,
} from "../../src/agents/coordination/dispatch/decide-progress.ts";
import {
  acknowledge,
  complete,
  createContentRef,
  OPEN,
  openScene,
  spawn,
  stepId,
  timeAt,
  describeReason,
  type Scene,
} from "./scene.ts";

const tell = (percent?: number, attempt = 1): Command => ({
  type: "recordProgress",
  stepId: stepId(1),
  attempt,
  line: createContentRef("line"),
  ...(percent !== undefined && { percent }),
});

const createRunning = (timeoutMs?: number): Scene =>
  openScene(OPEN, spawn("a", timeoutMs === undefined ? {} : { timeoutMs }), acknowledge(1));

function stepOf({ state }: Scene) {
  const step = state.kind === "unopened" ? undefined : state.steps.get(stepId(1));
  return step ?? expect.fail("no step");
}

describe("progress", () => {
  it("is recorded as it is said, also backwards, and changes nothing of the step", () => {
    const scene = createRunning();
    const before = stepOf(scene);
    scene.when(tell(80), 10_000);
    scene.when(tell(20), 20_000);
    const { progress, ...after } = stepOf(scene);
    expect(progress).toEqual({ percent: 20, line: createContentRef("line"), atMs: timeAt(20_000) });
    expect(after).toEqual(before);
    expect(scene.log.filter(({ type }) => type === "step.progressed")).toHaveLength(2);
    expect(scene.when(complete(1), 21_000).kind).toBe("accepted");
  });

  it("that comes too soon is refused with the time of the next one, and is not recorded", () => {
    const scene = createRunning();
    scene.when(tell(), 10_000);
    const decision = scene.when(tell(), 10_000 + PROGRESS_EVERY_MS - 1);
    expect(decision).toMatchObject({ kind: "refused", code: "TOO_SOON" });
    expect(decision.kind === "refused" && decision.reason).toContain("2026-01-02T03:04:20.678Z");
    expect(decision).not.toHaveProperty("facts");
    expect(scene.when(tell(), 10_000 + PROGRESS_EVERY_MS)).toMatchObject({
      kind: "accepted",
      stepId: "step-1",
    });
  });

  it.each<readonly [string, Command, string]>([
    [
      "of an attempt that there is not yet",
      tell(1, 2),
      "STALE_ATTEMPT: attempt 2 of step step-1 was given up; end your turn",
    ],
    [
      "of an unknown step",
      { ...tell(), stepId: stepId(7) } as Command,
      "UNKNOWN_STEP: there is no step step-7",
    ],
  ])("%s is refused with the reason", (_, command, reason) => {
    expect(describeReason(createRunning().when(command, 10_000))).toBe(reason);
  });

  it("of a step that has ended is refused", () => {
    const scene = createRunning();
    scene.when(complete(1), 5_000);
    expect(describeReason(scene.when(tell(), 6_000))).toBe(
      "STEP_ENDED: step step-1 is completed; end your turn",
    );
  });

  it("is taken before the host has confirmed the child", () => {
    expect(openScene(OPEN, spawn("a")).when(tell(), 10_000).kind).toBe("accepted");
  });

  it("waits for a hundredth of the attempt's age, counted from its dispatch and rounded up", () => {
    const scene = createRunning(BOUNDS.durationMsMax);
    const dispatchedMs = 1_000;
    scene.when(tell(), dispatchedMs + 500_000);
    expect(findNextProgressTime(stepOf(scene))).toBe(timeAt(dispatchedMs + 505_000));
    scene.when(tell(), dispatchedMs + 600_001);
    expect(findNextProgressTime(stepOf(scene))).toBe(timeAt(dispatchedMs + 600_001 + 6_001));
  });

  it("may be told at any time by an agent that told none", () => {
    expect(findNextProgressTime(stepOf(createRunning()))).toBeUndefined();
  });

  it("of a child that never stops telling grows the log by less than a thousand facts in the longest attempt", () => {
    const scene = createRunning(BOUNDS.durationMsMax);
    const dispatchedAtMs = timeAt(1_000);
    let count = 0;
    for (let nowMs = dispatchedAtMs; nowMs < addMs(dispatchedAtMs, BOUNDS.durationMsMax); count += 1) {
      expect(scene.when(tell(), nowMs - timeAt(0)).kind).toBe("accepted");
      nowMs = findNextProgressTime(stepOf(scene)) ?? expect.fail("nothing was told");
    }
    expect(count).toBeGreaterThan(100);
    expect(count).toBeLessThan(1_000);
  });

  it("is never recorded twice within its time, whenever a child tells it", () => {
    const times = fc.array(fc.integer({ min: 2_000, max: 600_000 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(times, (tries) => {
        const scene = createRunning(BOUNDS.durationMsMax);
        for (const ms of tries.toSorted((a, b) => a - b)) scene.when(tell(), ms);
        const recordedAtMs = scene.log
          .filter(({ type }) => type === "step.progressed")
          .map(({ timestamp }) => Date.parse(timestamp));
        for (const [index, atMs] of recordedAtMs.entries())
          if (index > 0)
            expect(atMs - (recordedAtMs[index - 1] ?? 0)).toBeGreaterThanOrEqual(PROGRESS_EVERY_MS);
      }),
    );
  });
});
