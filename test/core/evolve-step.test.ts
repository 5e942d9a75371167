import { describe, expect, it } from "vitest";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import { createContentRef, openWaitingScene, timeAt, type Scene } from "./scene.ts";
import {
  OUTPUT,
  ERROR,
  CHILD,
  TIMES,
  BLOCKED,
  attemptOf,
  createAcknowledged,
  createCompleted,
  createDiffered,
  createFailed,
  createTimedOut,
  createGranted,
  createSkipped,
  createReported,
  createProgressed,
  createObserved,
  openDispatched,
  openRunning,
  stepOf,
  playOn,
} from "./step-scene.ts";

describe("an attempt that is over", () => {
  it("has all that is known of it", () => {
    expect(
      playOn(openRunning(), createCompleted({ output: OUTPUT, released: "approved" })).phase,
    ).toStrictEqual({
      ...TIMES,
      status: "completed",
      acknowledgedAtMs: timeAt(2_000),
      endedAtMs: timeAt(5_000),
      child: CHILD,
      output: OUTPUT,
      released: "approved",
    });
  });

  it.each<readonly [string, FactDraft, object]>([
    ["a completion", createCompleted(), { status: "completed" }],
    ["a failure", createFailed(), { status: "failed", error: ERROR }],
    ["a cancellation", createFailed({ cancelled: true }), { status: "cancelled", error: ERROR }],
    ["a time-out", createTimedOut(), { status: "timed_out" }],
  ])("has no more than that: %s of which no child was heard", (_, ended, end) => {
    expect(playOn(openDispatched(), ended).phase).toStrictEqual({
      ...TIMES,
      endedAtMs: timeAt(5_000),
      ...end,
    });
  });

  it("keeps when its held result was heard of", () => {
    const heldFact: FactDraft = { type: "result.held", payload: { ...attemptOf(), via: "hook" } };
    expect(playOn(openRunning(), heldFact, createCompleted()).phase).toStrictEqual({
      ...TIMES,
      status: "completed",
      acknowledgedAtMs: timeAt(2_000),
      endedAtMs: timeAt(5_000),
      child: CHILD,
    });
  });

  it.each<readonly [string, FactDraft, object]>([
    ["failed", createFailed({ retryAtMs: timeAt(7_000) }), { cause: "failed", error: ERROR }],
    ["ran out of time", createTimedOut({ retryAtMs: timeAt(7_000) }), { cause: "timed_out" }],
  ])("is tried again at the time that was said where it %s", (_, ended, cause) => {
    expect(playOn(openRunning(), ended).phase).toStrictEqual({
      ...TIMES,
      status: "backoff",
      retryAtMs: timeAt(7_000),
      acknowledgedAtMs: timeAt(2_000),
      endedAtMs: timeAt(5_000),
      child: CHILD,
      ...cause,
    });
  });

  it.each<readonly [string, FactDraft, object]>([
    ["failed", createFailed({ escalated: BLOCKED }), { cause: "failed", error: ERROR }],
    ["ran out of time", createTimedOut({ escalated: BLOCKED }), { cause: "timed_out" }],
  ])("waits for people where it %s and they are asked", (_, ended, cause) => {
    expect(playOn(openRunning(), ended).phase).toStrictEqual({
      ...TIMES,
      ...BLOCKED,
      status: "blocked",
      acknowledgedAtMs: timeAt(2_000),
      endedAtMs: timeAt(5_000),
      child: CHILD,
      ...cause,
    });
  });
});

describe("a retry that people grant", () => {
  it("is due now where the next attempt was due later", () => {
    const step = playOn(openRunning(), createFailed({ retryAtMs: timeAt(90_000) }), createGranted());
    expect(step.phase).toMatchObject({ status: "backoff", retryAtMs: timeAt(5_000), cause: "failed" });
    expect(step).not.toHaveProperty("granted");
  });

  it("ends the wait for an answer", () => {
    const step = playOn(openRunning(), createFailed({ escalated: BLOCKED }), createGranted());
    expect(step.granted).toBe(1);
    expect(step.phase).toStrictEqual({
      ...TIMES,
      status: "backoff",
      cause: "failed",
      retryAtMs: timeAt(5_000),
      acknowledgedAtMs: timeAt(2_000),
      endedAtMs: timeAt(5_000),
      child: CHILD,
      error: ERROR,
    });
  });
});

describe("a step that will not run any more", () => {
  it("is skipped where it never ran, with the reason", () => {
    expect(playOn(openWaitingScene(), createSkipped("dependency")).phase).toStrictEqual({
      status: "skipped",
      attempt: 0,
      endedAtMs: timeAt(5_000),
      because: "dependency",
    });
  });

  it.each<readonly [string, FactDraft, object]>([
    [
      "waits for its next attempt",
      createFailed({ retryAtMs: timeAt(90_000) }),
      { status: "failed", error: ERROR },
    ],
    ["waits for people", createTimedOut({ escalated: BLOCKED }), { status: "timed_out" }],
  ])("ends as its last attempt did where it %s", (_, ended, end) => {
    const scene = openRunning();
    playOn(scene, ended);
    scene.happened([createSkipped("deadline")], 9_000);
    expect(stepOf(scene).phase).toStrictEqual({
      ...TIMES,
      acknowledgedAtMs: timeAt(2_000),
      endedAtMs: timeAt(5_000),
      child: CHILD,
      ...end,
    });
  });

  it("is cancelled where that is why, and has no child where there was none", () => {
    const ended = createTimedOut({ retryAtMs: timeAt(90_000) });
    expect(playOn(openDispatched(), ended, createSkipped("cancelled")).phase).toStrictEqual({
      ...TIMES,
      status: "cancelled",
      endedAtMs: timeAt(5_000),
    });
  });
});

describe("what is noted of a step", () => {
  it("is the newest report, and how many there were", () => {
    const step = playOn(openRunning(), createReported("one"), createReported("two"));
    expect(step.reports).toBe(2);
    expect(step.report).toStrictEqual({ attempt: 1, outcome: "completed", output: createContentRef("two") });
  });

  it("is the newest progress, with its time", () => {
    const step = playOn(openRunning(), createProgressed(10), createProgressed(0));
    expect(step.progress).toStrictEqual({ percent: 0, line: createContentRef("line"), atMs: timeAt(5_000) });
  });

  it("is the child that runs, with each change", () => {
    const scene = openRunning();
    const first = createObserved({ model: "mock/one", folder: "/a" });
    expect(playOn(scene, first).observed).toStrictEqual({
      ran: { model: "mock/one", folder: "/a" },
      changes: 1,
    });
    const second = createObserved({ model: "mock/two" }, { refused: true });
    expect(playOn(scene, second).observed).toStrictEqual({
      ran: { model: "mock/two", folder: "/a" },
      changes: 2,
      refused: true,
    });
  });

  it("is each difference, each outcome that came too late, and each text of which a part was shown", () => {
    const shorten = (chars: number): FactDraft => ({
      type: "result.shortened",
      payload: { ...attemptOf(), text: OUTPUT, chars, shownChars: 1 },
    });
    const refuse = (attempt: number, outcome: "completed" | "failed"): FactDraft => ({
      type: "step.outcome_refused",
      payload: { ...attemptOf(attempt), outcome, because: "stale_attempt" },
    });
    const step = playOn(
      openRunning(),
      ...[
        createDiffered("model"),
        createDiffered("folder"),
        refuse(1, "failed"),
        refuse(2, "completed"),
        shorten(5),
        shorten(6),
      ],
    );
    expect(step.differences).toStrictEqual(
      ["model", "folder"].map((field) => ({ field, asked: "a", ran: "b" })),
    );
    expect(step.late).toEqual(["1:failed", "2:completed"]);
    expect(step.shortened).toStrictEqual(
      [5, 6].map((chars) => ({ attempt: 1, text: OUTPUT, chars, shownChars: 1 })),
    );
  });
});

describe("a fact about a step", () => {
  const suppress: FactDraft = {
    type: "message.suppressed",
    payload: { ...attemptOf(), through: "reply", channel: "chat", chars: 1, media: 0 },
  };

  it.each<readonly [boolean, string, FactDraft]>([
    [true, "its report", createReported("one")],
    [true, "its withheld words", { type: "result.withheld", payload: { ...attemptOf(), text: OUTPUT } }],
    [false, "its progress", createProgressed(10)],
    [false, "the child that runs", createObserved({})],
    [false, "a difference", createDiffered("model")],
    [
      false,
      "an outcome too late",
      {
        type: "step.outcome_refused",
        payload: { ...attemptOf(), outcome: "failed", because: "stale_attempt" },
      },
    ],
    [false, "a message to no chat", suppress],
  ])("is the cause of the next one (%s): %s", (isCause, _, fact) => {
    const scene = openRunning();
    const before = stepOf(scene).lastFactId;
    const after = playOn(scene, fact).lastFactId;
    expect(after === before).toBe(!isCause);
  });
});

describe("a log is damaged in which", () => {
  it.each<readonly [string, () => Scene, readonly FactDraft[], string]>([
    ["a child is heard of twice", openRunning, [createAcknowledged()], "acknowledged while running: co-1:"],
    [
      "a child is heard of in another attempt",
      openDispatched,
      [createAcknowledged(2)],
      "D3: outcome of attempt 2",
    ],
    ["another attempt reports", openRunning, [createReported("one", 2)], "D3: outcome of attempt 2: co-1:"],
    [
      "another attempt makes progress",
      openRunning,
      [createProgressed(1, 2)],
      "D3: outcome of attempt 2: co-1:",
    ],
    [
      "another attempt's child is seen",
      openRunning,
      [createObserved({}, { attempt: 2 })],
      "D3: outcome of attempt 2: co-1:",
    ],
    [
      "another attempt's child differs",
      openRunning,
      [createDiffered("model", 2)],
      "D3: outcome of attempt 2: co-1:",
    ],
    [
      "what did not begin ends",
      openWaitingScene,
      [createFailed({ attempt: 0 })],
      "D5: step.failed while waiting: co-1:",
    ],
    [
      "what was cancelled is tried again",
      openRunning,
      [createFailed({ cancelled: true, retryAtMs: timeAt(7_000) })],
      "D5: a retry of what is cancelled: co-1:",
    ],
    [
      "a retry is granted of what is at work",
      openRunning,
      [createGranted()],
      "a retry granted while running: co-1:",
    ],
    ["what is at work is skipped", openRunning, [createSkipped("deadline")], "skipped while running: co-1:"],
  ])("%s", (_, open, facts, message) => {
    expect(() => playOn(open(), ...facts)).toThrow(message);
  });
});
