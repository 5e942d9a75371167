import { OrderedMap } from "immutable";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import type { Decision } from "../../src/agents/coordination/dispatch/decision.ts";
import type { Coordination, OpenCoordination } from "../../src/agents/coordination/ledger/state.ts";
import {
  acknowledge,
  timeAt,
  nameChild,
  complete,
  createDispatched,
  fail,
  openScene,
  OPEN,
  SETTLE,
  spawn,
  stepId,
  timeOut,
  TIMEOUT_MS,
  openWaitingScene,
  type Scene,
} from "./scene.ts";

/** The types of the facts that were accepted, or the refusal's code. */
function describeOutcome(decision: Decision): string {
  if (decision.kind === "accepted") return decision.facts.map(({ type }) => type).join(" ");
  return decision.kind === "refused" ? decision.code : "replay";
}

const step1 =
  (...commands: readonly Command[]): (() => Scene) =>
  () =>
    openScene(OPEN, spawn("a"), ...commands);

const SITUATIONS: Readonly<Record<string, () => Scene>> = {
  unopened: () => openScene(),
  "without the step": () => openScene(OPEN),
  waiting: () => openWaitingScene(),
  dispatched: step1(),
  running: step1(acknowledge(1)),
  completed: step1(acknowledge(1), complete(1)),
  refused: step1(fail(1, "spawn_refused")),
  failed: step1(acknowledge(1), fail(1)),
  cancelled: step1(acknowledge(1), fail(1, "child_cancelled")),
  "timed out unacknowledged": step1(timeOut(1)),
  "timed out": step1(acknowledge(1), timeOut(1)),
  ended: step1(acknowledge(1), complete(1), SETTLE),
};

const COMMANDS: Readonly<Record<string, Command>> = {
  open: OPEN,
  "admit another": spawn("b"),
  "admit again": spawn("a"),
  acknowledge: acknowledge(1),
  "acknowledge with another child": acknowledge(1, "other"),
  complete: complete(1),
  fail: fail(1),
  refuse: fail(1, "spawn_refused"),
  cancel: fail(1, "child_cancelled"),
  "time out": timeOut(1),
  settle: SETTLE,
};

const ADMITTED = "step.admitted step.dispatched";
const ENDED = "COORDINATION_ENDED";
const order = Object.keys(COMMANDS);

/** One line per situation: what each command comes to, in the order of COMMANDS. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  unopened: ["coordination.created", ...order.slice(1).map(() => "NOT_OPENED")],
  "without the step": [
    ...["ALREADY_OPENED", ADMITTED, ADMITTED, "UNKNOWN_STEP", "UNKNOWN_STEP", "UNKNOWN_STEP", "UNKNOWN_STEP"],
    ...["UNKNOWN_STEP", "UNKNOWN_STEP", "UNKNOWN_STEP", "coordination.terminal"],
  ],
  waiting: [
    ...[
      "ALREADY_OPENED",
      ADMITTED,
      ADMITTED,
      "STALE_ATTEMPT",
      "STALE_ATTEMPT",
      "STALE_ATTEMPT",
      "STALE_ATTEMPT",
    ],
    ...["STALE_ATTEMPT", "STALE_ATTEMPT", "STALE_ATTEMPT", "STEPS_OPEN"],
  ],
  dispatched: [
    ...[
      "ALREADY_OPENED",
      ADMITTED,
      "replay",
      "step.acknowledged",
      "step.acknowledged",
      "step.completed",
      "step.failed",
    ],
    ...["step.failed", "step.failed", "step.timed_out", "STEPS_OPEN"],
  ],
  running: [
    ...["ALREADY_OPENED", ADMITTED, ADMITTED, "replay", "OTHER_CHILD", "step.completed", "step.failed"],
    ...["ALREADY_RUNNING", "step.failed", "step.timed_out", "STEPS_OPEN"],
  ],
  completed: [
    ...["ALREADY_OPENED", ADMITTED, ADMITTED, "replay", "OTHER_CHILD", "replay", "STEP_ENDED"],
    ...["STEP_ENDED", "STEP_ENDED", "STEP_ENDED", "coordination.terminal"],
  ],
  refused: [
    ...["ALREADY_OPENED", ADMITTED, ADMITTED, "STEP_ENDED", "STEP_ENDED", "STEP_ENDED", "replay"],
    ...["replay", "replay", "STEP_ENDED", "coordination.terminal"],
  ],
  failed: [
    ...["ALREADY_OPENED", ADMITTED, ADMITTED, "replay", "OTHER_CHILD", "STEP_ENDED", "replay"],
    ...["replay", "replay", "STEP_ENDED", "coordination.terminal"],
  ],
  cancelled: [
    ...["ALREADY_OPENED", ADMITTED, ADMITTED, "replay", "OTHER_CHILD", "STEP_ENDED", "replay"],
    ...["replay", "replay", "STEP_ENDED", "coordination.terminal"],
  ],
  "timed out unacknowledged": [
    ...["ALREADY_OPENED", ADMITTED, ADMITTED, "STEP_ENDED", "STEP_ENDED", "STEP_ENDED", "STEP_ENDED"],
    ...["STEP_ENDED", "STEP_ENDED", "replay", "coordination.terminal"],
  ],
  "timed out": [
    ...["ALREADY_OPENED", ADMITTED, ADMITTED, "replay", "OTHER_CHILD", "STEP_ENDED", "STEP_ENDED"],
    ...["STEP_ENDED", "STEP_ENDED", "replay", "coordination.terminal"],
  ],
  ended: ["ALREADY_OPENED", ENDED, ENDED, ENDED, ENDED, ENDED, ENDED, ENDED, ENDED, ENDED, "replay"],
};

describe.each(Object.entries(SITUATIONS))("a coordination whose step is %s", (situation, make) => {
  it.each(order.map((name, index) => [name, EXPECTED[situation]?.[index]]))(
    "answers %s with %s",
    (name, expected) => {
      const scene = make();
      const before = scene.state;
      const decision = scene.when(COMMANDS[name]!);
      expect(describeOutcome(decision)).toBe(expected);
      if (decision.kind !== "accepted") expect(scene.state).toBe(before);
    },
  );
});

describe("D2: a duplicate", () => {
  it("of a spawn that the host has not answered yet is the same step", () => {
    const scene = openScene(OPEN, spawn("a"), spawn("b"));
    expect(scene.when(spawn("a"))).toEqual({ kind: "replay", stepId: stepId(1) });
    expect(scene.when(spawn("b"))).toEqual({ kind: "replay", stepId: stepId(2) });
  });

  it.each([
    ["from another session", { sourceSession: nameChild("x") }],
    ["of another turn", { call: { toolCallId: "a", runId: "run-2" } }],
    ["of another call", { call: { toolCallId: "b", runId: "run-1" } }],
    ["with another task", { input: { sha256: "0".repeat(64), bytes: 1 } }],
    ["whose call has no id", { call: { runId: "run-1" } }],
    ["whose turn has no id", { call: { toolCallId: "a" } }],
  ])("is not a spawn %s", (_, change) => {
    const scene = openScene(OPEN, spawn("a"));
    expect(describeOutcome(scene.when(spawn("a", change)))).toBe(ADMITTED);
  });

  it("is the adoption of a child that has a step already", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1, "A"));
    const child = { childSessionKey: nameChild("B"), childRunId: "run-of-B" };
    expect(describeOutcome(scene.when(spawn("a", { child })))).toBe(`${ADMITTED} step.acknowledged`);
    expect(scene.when(spawn("a", { child }))).toEqual({ kind: "replay", stepId: stepId(2) });
  });
});

describe("D3 and H3: an outcome", () => {
  it.each([acknowledge(1, 1, 2), complete(1, 2), timeOut(1, 2), complete(1, 0)])(
    "of another attempt is refused: %o",
    (command) => {
      expect(describeOutcome(openScene(OPEN, spawn("a")).when(command))).toBe("STALE_ATTEMPT");
      expect(describeOutcome(openScene(OPEN, spawn("a"), acknowledge(1)).when(command))).toBe(
        "STALE_ATTEMPT",
      );
    },
  );

  it("of the first attempt is refused once the second has begun", () => {
    const scene = openWaitingScene(1);
    scene.happened([createDispatched(1)]);
    scene.when(timeOut(1));
    scene.happened([createDispatched(2)]);
    expect(describeOutcome(scene.when(complete(1, 1)))).toBe("STALE_ATTEMPT");
    expect(describeOutcome(scene.when(acknowledge(1, "late", 1)))).toBe("STALE_ATTEMPT");
    expect(describeOutcome(scene.when(acknowledge(1, "fresh", 2)))).toBe("step.acknowledged");
  });

  it("with a child that works on another step is refused", () => {
    const scene = openScene(OPEN, spawn("a"), spawn("b"), acknowledge(1, "A"));
    expect(describeOutcome(scene.when(acknowledge(2, "A")))).toBe("CHILD_TAKEN");
    scene.when(complete(1));
    expect(describeOutcome(scene.when(acknowledge(2, "A")))).toBe("CHILD_TAKEN");
    expect(describeOutcome(scene.when(acknowledge(2, "B")))).toBe("step.acknowledged");
  });
});

describe("an admitted spawn", () => {
  it("is dispatched at once on the data lane, with its idempotency key and its deadline", () => {
    const decision = openScene(OPEN).when(spawn("a", { name: "research", parentStepId: stepId(9) }), 5_000);
    expect(decision).toMatchObject({
      stepId: "step-1",
      facts: [
        {
          type: "step.admitted",
          payload: {
            lane: "data",
            deliveryMode: "at_least_once",
            priority: "normal",
            retryBudget: 0,
            name: "research",
          },
        },
        {
          type: "step.dispatched",
          payload: { attempt: 1, idempotencyKey: "co-1:step-1:1", deadlineAtMs: timeAt(5_000 + TIMEOUT_MS) },
        },
      ],
    });
  });

  it("gets the next number, nested or not", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1));
    scene.when(spawn("b", { parentStepId: stepId(1), sourceSession: nameChild(1) }));
    scene.when(spawn("c"));
    const { steps } = scene.state as OpenCoordination;
    expect([...steps.keys()]).toEqual(["step-1", "step-2", "step-3"]);
    expect(steps.get(stepId(2))?.spec).toMatchObject({ parentStepId: "step-1", sourceSession: nameChild(1) });
  });

  it("is refused when the coordination is full", () => {
    const scene = openScene(OPEN, spawn("a"));
    const open = scene.state as OpenCoordination;
    const [step] = open.steps.values();
    const ids = Array.from({ length: BOUNDS.stepsPerCoordinationMax }, (_, index) => stepId(index + 1));
    const full: Coordination = { ...open, steps: OrderedMap(ids.map((id) => [id, step!])) };
    expect(decide(full, spawn("b"), timeAt(0))).toMatchObject({
      kind: "refused",
      code: "TOO_MANY_STEPS",
      reason: `a coordination holds at most ${BOUNDS.stepsPerCoordinationMax} steps`,
    });
  });
});

describe("D5: settling", () => {
  const createCounts = (completed: number, failed: number, timedOut: number, cancelled: number): object => ({
    total: completed + failed + timedOut + cancelled,
    completed,
    failed,
    timedOut,
    cancelled,
  });

  it.each([
    ["success", [complete(1), complete(2)], createCounts(2, 0, 0, 0)],
    ["partial", [complete(1), fail(2)], createCounts(1, 1, 0, 0)],
    ["partial", [timeOut(1), complete(2)], createCounts(1, 0, 1, 0)],
    ["failed", [fail(1), timeOut(2)], createCounts(0, 1, 1, 0)],
    ["failed", [fail(1, "child_cancelled"), fail(2)], createCounts(0, 1, 0, 1)],
    ["cancelled", [fail(1, "child_cancelled"), fail(2, "child_cancelled")], createCounts(0, 0, 0, 2)],
  ])("ends as %s what came to %j", (status, ends, steps) => {
    const scene = openScene(OPEN, spawn("a"), spawn("b"), acknowledge(1), acknowledge(2), ...ends);
    expect(scene.when(SETTLE)).toEqual({
      kind: "accepted",
      facts: [{ type: "coordination.terminal", payload: { status, steps } }],
    });
  });

  it("ends a coordination without steps as a success", () => {
    expect(openScene(OPEN).when(SETTLE)).toMatchObject({ facts: [{ payload: { status: "success" } }] });
  });

  it("happens once, and is a replay from then on", () => {
    const scene = openScene(OPEN, SETTLE);
    expect(scene.when(SETTLE)).toEqual({ kind: "replay" });
    expect(scene.log.filter(({ type }) => type === "coordination.terminal")).toHaveLength(1);
  });

  it("names the step that is still open", () => {
    expect(openScene(OPEN, spawn("a"), fail(1), spawn("b")).when(SETTLE)).toMatchObject({
      code: "STEPS_OPEN",
      reason: "step step-2 is dispatched",
    });
  });
});

describe("an outcome's fact", () => {
  it("carries the output, the error and the deadline", () => {
    const output = { sha256: "0".repeat(64), bytes: 3 };
    expect(
      openScene(OPEN, spawn("a"), acknowledge(1)).when({ ...complete(1), output } as Command),
    ).toMatchObject({
      facts: [{ payload: { stepId: "step-1", attempt: 1, via: "hook", output } }],
    });
    expect(openScene(OPEN, spawn("a")).when(fail(1))).toMatchObject({
      facts: [{ payload: { error: { code: "child_failed", message: "it went wrong" }, cancelled: false } }],
    });
    expect(openScene(OPEN, spawn("a")).when(timeOut(1), 99_000)).toMatchObject({
      facts: [{ payload: { deadlineAtMs: timeAt(1_000 + TIMEOUT_MS), via: "deadline" } }],
    });
  });
});

describe("decide", () => {
  it("answers the same question with the same answer and leaves the state alone", () => {
    const { state } = openScene(OPEN, spawn("a"), acknowledge(1));
    const text = JSON.stringify([...(state as OpenCoordination).steps]);
    for (const command of Object.values(COMMANDS))
      expect(decide(state, command, timeAt(9_000))).toEqual(decide(state, command, timeAt(9_000)));
    expect(JSON.stringify([...(state as OpenCoordination).steps])).toBe(text);
  });
});
