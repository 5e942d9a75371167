import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { FactPayloads } from "../../src/agents/coordination/contracts/facts.ts";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import { admit, openPlan, planStep } from "./planned-scene.ts";
import {
  createContentRef,
  nameChild,
  openScene,
  openWaitingScene,
  stepId,
  timeAt,
  type Scene,
} from "./scene.ts";
import {
  OUTPUT,
  CHILD,
  TIMES,
  BLOCKED,
  attemptOf,
  createAgain,
  createDiffered,
  createAcknowledged,
  createFailed,
  createTimedOut,
  createGranted,
  createReported,
  createProgressed,
  createObserved,
  openRunning,
  stepOf,
  playOn,
} from "./step-scene.ts";

describe("an attempt that begins", () => {
  it("has no more than was said of it", () => {
    expect(playOn(openWaitingScene(), createAgain(1)).phase).toStrictEqual({
      status: "dispatched",
      attempt: 1,
      dispatchedAtMs: timeAt(5_000),
      deadlineAtMs: timeAt(60_000),
    });
  });

  it("knows its session, its message and its gateway, and so does the child that is heard of", () => {
    const targetSession = nameChild(1);
    const begun = { targetSession, message: createContentRef("message"), gateway: "gateway-1" };
    const scene = openWaitingScene();
    expect(playOn(scene, createAgain(1, begun)).phase).toMatchObject(begun);
    scene.happened([createAcknowledged()], 6_000);
    expect(stepOf(scene).phase).toStrictEqual({
      status: "running",
      attempt: 1,
      dispatchedAtMs: timeAt(5_000),
      acknowledgedAtMs: timeAt(6_000),
      deadlineAtMs: timeAt(60_000),
      gateway: "gateway-1",
      ...CHILD,
    });
    expect(stepOf(scene).acknowledgedEventId).toBe(stepOf(scene).lastFactId);
  });

  it("has no gateway once it is heard of, where it had none", () => {
    expect(stepOf(openRunning()).phase).toStrictEqual({
      ...TIMES,
      status: "running",
      acknowledgedAtMs: timeAt(2_000),
      ...CHILD,
    });
  });

  it("knows nothing of what the child of the attempt before it said and did", () => {
    const scene = openWaitingScene(1);
    const noted = playOn(
      scene,
      createAgain(1),
      createAcknowledged(),
      createReported("one"),
      createProgressed(50),
      createObserved({ model: "mock/other" }),
      createDiffered("model"),
      { type: "result.withheld", payload: { ...attemptOf(), text: OUTPUT } },
      {
        type: "message.suppressed",
        payload: { ...attemptOf(), through: "reply", channel: "chat", chars: 1, media: 0 },
      },
      createTimedOut(),
    );
    const names = ["report", "reports", "progress", "observed", "differences", "withheldCount"] as const;
    for (const name of names) expect(noted).toHaveProperty(name);
    const again = playOn(scene, createAgain(2));
    for (const name of names) expect(again).not.toHaveProperty(name);
    expect(again).toMatchObject({ suppressed: 1, withheld: { attempt: 1, text: OUTPUT } });
  });

  it.each([
    ["failed", createFailed()],
    ["ran out of time", createTimedOut()],
  ])("may come after one that %s, though nobody had said that there would be one", (_, ended) => {
    const scene = openWaitingScene(1);
    expect(playOn(scene, createAgain(1), ended, createAgain(2)).phase.attempt).toBe(2);
  });

  it.each([
    ["of a plan's step tells when the step began", true],
    ["of a spawn does not", false],
  ])("%s", (_, isPlanned) => {
    const step = { ...planStep("step-1"), stepId: stepId(1), retryBudget: 1 };
    const scene = isPlanned ? openScene(openPlan({ steps: 1 }), admit(step)) : openWaitingScene(1);
    const begunAtMs = isPlanned ? timeAt(5_000) : undefined;
    expect(playOn(scene, createAgain(1)).begunAtMs).toBe(begunAtMs);
    scene.happened([createTimedOut({ retryAtMs: timeAt(7_000) }), createAgain(2)], 7_000);
    expect(stepOf(scene).begunAtMs).toBe(begunAtMs);
    expect("begunAtMs" in stepOf(scene)).toBe(isPlanned);
  });
});

describe("D4: no attempt begins beyond the budget", () => {
  const describeExcess = (attempt: number): string => `D4: attempt ${attempt} is over the budget: co-1:`;
  const refused = { code: "provider_refused", message: "busy" } as const;
  const endAttempt = (attempt: number, rest: Partial<FactPayloads["step.failed"]> = {}): FactDraft =>
    createFailed({ attempt, retryAtMs: timeAt(5_000), ...rest });
  const openPlanned = (retryBudget: number): Scene =>
    openScene(openPlan({ steps: 1 }), admit({ ...planStep("x"), stepId: stepId(1), retryBudget }));

  it("of retries", () => {
    const scene = openWaitingScene(1);
    playOn(scene, createAgain(1), endAttempt(1), createAgain(2), endAttempt(2));
    expect(() => playOn(scene, createAgain(3))).toThrow(describeExcess(3));
  });

  it("to which each grant of people adds one", () => {
    const scene = openWaitingScene();
    playOn(scene, createAgain(1));
    for (const attempt of [1, 2]) {
      scene.happened([createFailed({ attempt, escalated: BLOCKED })]);
      scene.happened([createGranted()], 8_000);
      expect(stepOf(scene)).toMatchObject({ granted: attempt });
      scene.happened([createAgain(attempt + 1)]);
    }
    scene.happened([endAttempt(3)]);
    expect(() => playOn(scene, createAgain(4))).toThrow(describeExcess(4));
  });

  it("to which each refusal of a provider adds one, as long as there are not too many", () => {
    const scene = openPlanned(0);
    playOn(scene, createAgain(1));
    for (let attempt = 1; attempt <= BOUNDS.refusedAttemptsMax; attempt += 1) {
      const after = playOn(scene, endAttempt(attempt, { error: refused }), createAgain(attempt + 1));
      expect(after.refusals).toBe(attempt);
    }
    const last = BOUNDS.refusedAttemptsMax + 1;
    expect(playOn(scene, endAttempt(last, { error: refused })).refusals).toBe(BOUNDS.refusedAttemptsMax);
    expect(() => playOn(scene, createAgain(last + 1))).toThrow(describeExcess(last + 1));
  });

  it.each<readonly [string, () => Scene, FactDraft]>([
    ["nothing is added by another failure", () => openPlanned(0), endAttempt(1)],
    ["nothing is added by a time-out", () => openPlanned(0), createTimedOut({ retryAtMs: timeAt(5_000) })],
    [
      "nothing is added where no plan tries again",
      () => openWaitingScene(),
      endAttempt(1, { error: refused }),
    ],
  ])("to which %s", (_, open, ended) => {
    const scene = open();
    expect(playOn(scene, createAgain(1), ended)).not.toHaveProperty("refusals");
    expect(() => playOn(scene, createAgain(2))).toThrow(describeExcess(2));
  });
});
