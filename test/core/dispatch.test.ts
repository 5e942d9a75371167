import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import {
  coordinationEnvelopeSchema,
  UNBOUND_TARGET,
} from "../../src/agents/coordination/contracts/envelope.ts";
import type { Observation } from "../../src/agents/coordination/contracts/observation.ts";
import { buildEnvelope } from "../../src/agents/coordination/dispatch/build-envelope.ts";
import {
  findNextDeadline,
  planDispatch,
  planRecovery,
} from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import {
  commandFromOutcome,
  ruleOnObservation,
} from "../../src/agents/coordination/dispatch/effects/rule-on-observation.ts";
import { createUnopenedCoordination } from "../../src/agents/coordination/ledger/state.ts";
import {
  nameChildReference,
  listEventReferences,
  summarizeCoordination,
  nameTraceReference,
} from "../../src/agents/coordination/ledger/summary.ts";
import {
  acknowledge,
  ACKNOWLEDGE_MS,
  timeAt,
  nameChild,
  complete,
  createContentRef,
  fail,
  openScene,
  OPEN,
  OWNER,
  RUN,
  SETTLE,
  SETTLE_MS,
  spawn,
  stepId,
  timeOut,
  TIMEOUT_MS,
  openWaitingScene,
} from "./scene.ts";

const dispatchedScene = openScene(OPEN, spawn("a"));
const runningScene = openScene(OPEN, spawn("a"), acknowledge(1));
/** The host enforces its own limit, from a later start: it is given this long to tell. */
const OVERDUE_MS = 1_000 + TIMEOUT_MS + ACKNOWLEDGE_MS;

describe("planDispatch", () => {
  it.each([
    ["an unopened coordination", createUnopenedCoordination(RUN)],
    ["an ended coordination", openScene(OPEN, SETTLE).state],
  ])("plans nothing for %s, ever", (_, state) => {
    expect(findNextDeadline(state)).toBeUndefined();
    expect(planDispatch(state, timeAt(1e12))).toEqual([]);
    expect(planRecovery(state, timeAt(0))).toEqual([]);
  });

  it("asks about a spawn that was not acknowledged in time", () => {
    const { state } = dispatchedScene;
    const due = timeAt(1_000 + ACKNOWLEDGE_MS);
    expect(findNextDeadline(state)).toBe(due);
    expect(planDispatch(state, timeAt(999 + ACKNOWLEDGE_MS))).toEqual([]);
    expect(planDispatch(state, due)).toEqual([
      { kind: "askHost", effectId: "co-1:step-1:1:ask", stepId: "step-1", attempt: 1 },
    ]);
  });

  it("asks about a child whose deadline has passed", () => {
    const { state } = runningScene;
    expect(findNextDeadline(state)).toBe(timeAt(OVERDUE_MS));
    expect(planDispatch(state, timeAt(OVERDUE_MS - 1))).toEqual([]);
    expect(planDispatch(state, timeAt(OVERDUE_MS))).toHaveLength(1);
  });

  it("ends a coordination without open steps after a quiet time", () => {
    const { state } = openScene(OPEN, spawn("a"), fail(1));
    expect(findNextDeadline(state)).toBe(timeAt(2_000 + SETTLE_MS));
    expect(planDispatch(state, timeAt(1_999 + SETTLE_MS))).toEqual([]);
    expect(planDispatch(state, timeAt(2_000 + SETTLE_MS))).toEqual([
      { kind: "endCoordination", effectId: "co-1:end" },
    ]);
  });

  it("looks at each open step by its own time, and at the earliest first", () => {
    const { state } = openScene(OPEN, spawn("a"), acknowledge(1), spawn("b", { timeoutMs: 1 }), spawn("c"));
    expect(findNextDeadline(state)).toBe(timeAt(3_000 + ACKNOWLEDGE_MS));
    const planned = planDispatch(state, timeAt(4_000 + ACKNOWLEDGE_MS));
    expect(planned.map((effect) => effect.effectId)).toEqual(["co-1:step-2:1:ask", "co-1:step-3:1:ask"]);
  });

  it("recovers every open step, due or not, and no other", () => {
    const { state } = openScene(OPEN, spawn("a"), acknowledge(1), spawn("b"), spawn("c"), fail(3));
    expect(planRecovery(state, timeAt(0)).map(({ effectId }) => effectId)).toEqual([
      "co-1:step-1:1:ask",
      "co-1:step-2:1:ask",
    ]);
  });

  it("has a deadline for a step that is not dispatched yet", () => {
    expect(findNextDeadline(openWaitingScene().state)).toBeDefined();
  });
});

describe("ruleOnObservation", () => {
  const seenChild = { childSessionKey: nameChild("seen"), childRunId: "run-seen" };
  const RUNNING: Observation = { kind: "running", ...seenChild };
  const createEnded = (outcome: "completed" | "failed" | "cancelled" | "timed_out"): Observation => ({
    kind: "ended",
    ...seenChild,
    outcome,
  });
  const rule = (running: boolean, ms: number, seen: Observation): string[] =>
    ruleOnObservation(
      (running ? runningScene : dispatchedScene).state,
      { stepId: stepId(1), attempt: 1, now: timeAt(ms) },
      seen,
    ).map((command) => {
      const code = command.type === "failStep" ? ` ${command.error.code}` : "";
      return `${command.type}${code}${"via" in command ? ` ${command.via}` : ""}`;
    });

  const early = 2_000;
  const unconfirmed = 2_000 + ACKNOWLEDGE_MS;
  const late = OVERDUE_MS;
  const ack = "acknowledgeStep reconciled";
  const over = "timeOutStep deadline";

  interface ObservedStep {
    readonly running: boolean;
    readonly ms: number;
    readonly seen: Observation;
    readonly expected: readonly string[];
  }

  it.each<[string, ObservedStep]>([
    [
      "concludes nothing from silence",
      { running: false, ms: early, seen: { kind: "unknown" }, expected: [] },
    ],
    [
      "concludes nothing from silence about a child",
      { running: true, ms: unconfirmed, seen: { kind: "unknown" }, expected: [] },
    ],
    [
      "times out what is silent past its deadline",
      { running: false, ms: late, seen: { kind: "unknown" }, expected: [over] },
    ],
    [
      "times out a child that is silent past its deadline",
      { running: true, ms: late, seen: { kind: "unknown" }, expected: [over] },
    ],
    ["gives a spawn time to appear", { running: false, ms: early, seen: { kind: "absent" }, expected: [] }],
    [
      "fails a spawn that did not appear",
      {
        running: false,
        ms: unconfirmed,
        seen: { kind: "absent" },
        expected: ["failStep spawn_not_confirmed reconciled"],
      },
    ],
    ["gives a child time to appear", { running: true, ms: early, seen: { kind: "absent" }, expected: [] }],
    [
      "gives a child all its time from when it was heard of",
      { running: true, ms: unconfirmed - 1, seen: { kind: "absent" }, expected: [] },
    ],
    [
      "calls a child lost that the host forgot",
      {
        running: true,
        ms: unconfirmed,
        seen: { kind: "absent" },
        expected: ["failStep child_lost reconciled"],
      },
    ],
    ["acknowledges what the host runs", { running: false, ms: early, seen: RUNNING, expected: [ack] }],
    ["leaves a running child alone", { running: true, ms: unconfirmed, seen: RUNNING, expected: [] }],
    [
      "times out a child that runs past its deadline",
      { running: true, ms: late, seen: RUNNING, expected: [over] },
    ],
    [
      "acknowledges and times out what runs past its deadline",
      { running: false, ms: late, seen: RUNNING, expected: [ack, over] },
    ],
    [
      "records an end that it missed",
      { running: true, ms: early, seen: createEnded("completed"), expected: ["completeStep reconciled"] },
    ],
    [
      "records a child and its end",
      {
        running: false,
        ms: early,
        seen: createEnded("completed"),
        expected: [ack, "completeStep reconciled"],
      },
    ],
    [
      "records an end past the deadline as what it was",
      { running: true, ms: late, seen: createEnded("completed"), expected: ["completeStep reconciled"] },
    ],
    [
      "records a failure",
      {
        running: true,
        ms: early,
        seen: createEnded("failed"),
        expected: ["failStep child_failed reconciled"],
      },
    ],
    [
      "records a cancellation",
      {
        running: true,
        ms: early,
        seen: createEnded("cancelled"),
        expected: ["failStep child_cancelled reconciled"],
      },
    ],
    [
      "records the host's time-out",
      { running: true, ms: early, seen: createEnded("timed_out"), expected: ["timeOutStep reconciled"] },
    ],
  ])("%s", (_, { running, ms, seen, expected }) => {
    expect(rule(running, ms, seen)).toEqual(expected);
  });

  it("calls a child lost that ran in a gateway which is gone, and names that", () => {
    const attempt = { stepId: stepId(1), attempt: 1, now: timeAt(unconfirmed), away: "east" };
    const error = { code: "child_lost", message: "the child ran in gateway east, which is gone" };
    expect(ruleOnObservation(dispatchedScene.state, attempt, { kind: "absent" })).toEqual([
      { type: "failStep", stepId: "step-1", attempt: 1, error, cancelled: false, via: "reconciled" },
    ]);
  });

  it.each([
    ["a coordination that was never opened", createUnopenedCoordination(RUN), 1],
    ["a coordination that ended", openScene(OPEN, spawn("a"), fail(1), SETTLE).state, 1],
    ["a step that ended", openScene(OPEN, spawn("a"), fail(1)).state, 1],
    ["another attempt", runningScene.state, 2],
    ["a step that it does not know", openScene(OPEN).state, 1],
    ["a step that was never dispatched", openWaitingScene().state, 0],
  ])("rules nothing on %s", (_, state, attempt) => {
    expect(
      ruleOnObservation(state, { stepId: stepId(1), attempt, now: timeAt(late) }, createEnded("failed")),
    ).toEqual([]);
  });

  it.each(["failed", "cancelled"] as const)(
    "keeps the host's sentence about a %s child within its bound",
    (outcome) => {
      const about = { stepId: stepId(1), attempt: 1 };
      const message = `${"x".repeat(BOUNDS.errorMessageCharsMax - 1)}🜁 and more`;
      const command = commandFromOutcome(about, { outcome, message }, "hook") as Command & {
        type: "failStep";
      };
      expect(command.error.message.length).toBeLessThanOrEqual(BOUNDS.errorMessageCharsMax);
      expect(command.error.message.isWellFormed()).toBe(true);
      expect(command).toMatchObject({ type: "failStep", cancelled: outcome === "cancelled" });
      const silent = commandFromOutcome(about, { outcome }, "hook") as Command & { type: "failStep" };
      expect(silent.error.message).toMatch(/^the child run/u);
    },
  );
});

describe("envelopeOf", () => {
  it("is the ledger's record of a step", () => {
    const { state } = openScene(OPEN, spawn("a", { parentStepId: stepId(7) }), acknowledge(1));
    const envelope = buildEnvelope(state, stepId(1));
    expect(envelope).toEqual({
      coordinationId: "co-1",
      stepId: "step-1",
      parentStepId: "step-7",
      sourceSession: OWNER,
      targetSession: nameChild(1),
      intent: "execute",
      priority: "normal",
      deliveryMode: "at_least_once",
      deadlineMs: timeAt(1_000 + TIMEOUT_MS),
      createdAtMs: timeAt(1_000),
      trace: { runId: "run-1", spanId: "span-1", causalRef: "co-1:6" },
    });
    expect(coordinationEnvelopeSchema.parse(envelope)).toEqual(envelope);
  });

  it("has no target before the acknowledgement and no deadline after the end", () => {
    expect(buildEnvelope(dispatchedScene.state, stepId(1))).toMatchObject({ targetSession: UNBOUND_TARGET });
    const after = buildEnvelope(openScene(OPEN, spawn("a"), acknowledge(1), complete(1)).state, stepId(1));
    expect(after).toMatchObject({ targetSession: nameChild(1) });
    expect(after).not.toHaveProperty("deadlineMs");
    expect(buildEnvelope(openScene(OPEN, spawn("a", { call: {} })).state, stepId(1))?.trace).toEqual({
      causalRef: "co-1:4",
    });
  });

  it("is nothing for a step that the ledger does not know", () => {
    expect(buildEnvelope(createUnopenedCoordination(RUN), stepId(1))).toBeUndefined();
    expect(buildEnvelope(openScene(OPEN).state, stepId(1))).toBeUndefined();
  });
});

describe("L3: the cause of", () => {
  const parent = nameChild(1);
  const { log } = openScene(
    ...[OPEN, spawn("a"), acknowledge(1), spawn("b", { parentStepId: stepId(1), sourceSession: parent })],
    ...[fail(2, "spawn_refused"), complete(1), SETTLE],
  );
  const find = (type: string, step?: number): (typeof log)[number] | undefined =>
    log.find((event) => event.type === type && (!step || event.nodeId === `step-${step}`));
  const findPhase = (name: string, step: number): (typeof log)[number] | undefined =>
    log.find(
      (event) => "phase" in event.payload && event.payload.phase === name && event.nodeId === `step-${step}`,
    );

  it("the opening is nothing", () => {
    expect(log[0]).not.toHaveProperty("causationId");
  });

  it.each([
    ["a spawn of the owner", find("step.admitted", 1), find("coordination.created")],
    ["a spawn of a child", find("step.admitted", 2), find("step.acknowledged", 1)],
    ["a dispatch", find("step.dispatched", 2), find("step.admitted", 2)],
    ["an acknowledgement", find("step.acknowledged", 1), find("step.dispatched", 1)],
    ["a completion", find("step.completed", 1), find("step.acknowledged", 1)],
    ["a failed spawn", find("step.failed", 2), find("step.dispatched", 2)],
    ["the end", find("coordination.terminal"), find("step.completed", 1)],
    ["dispatch.began", findPhase("dispatch.began", 1), find("runOrchestrator.decided")],
    ["dispatch.succeeded", findPhase("dispatch.succeeded", 1), findPhase("dispatch.began", 1)],
    ["child.completed", findPhase("child.completed", 1), findPhase("dispatch.succeeded", 1)],
    ["dispatch.failed", findPhase("dispatch.failed", 2), findPhase("dispatch.began", 2)],
    ["run.completed", find("run.completed"), find("coordination.terminal")],
  ])("%s is the event that brought it about", (_, effect, cause) => {
    expect(effect?.causationId).toBeDefined();
    expect(effect?.causationId).toBe(cause?.eventId);
  });

  it("a spawn whose parent is not acknowledged is the opening", () => {
    const scene = openScene(OPEN, spawn("a"), spawn("b", { parentStepId: stepId(1) }));
    const admitted = scene.log.filter(({ type }) => type === "step.admitted");
    expect(admitted.map(({ causationId }) => causationId)).toEqual(["co-1:0", "co-1:0"]);
  });
});

describe("what is kept beside the log", () => {
  it("is a summary that counts open and failed steps", () => {
    const scene = openScene(
      OPEN,
      spawn("a"),
      spawn("b"),
      spawn("c"),
      spawn("d"),
      acknowledge(2),
      complete(2),
      fail(3),
      timeOut(4),
    );
    const { state } = scene;
    if (state.kind === "unopened") throw new Error("unopened");
    expect(summarizeCoordination(state)).toEqual({
      status: "running",
      ownerSession: OWNER,
      objective: createContentRef("objective"),
      createdAtMs: timeAt(0),
      steps: { total: 4, open: 1, failed: 2 },
    });
    const over = openScene(OPEN, SETTLE).state;
    if (over.kind === "unopened") throw new Error("unopened");
    expect(summarizeCoordination(over).status).toBe("success");
  });

  it("is a reference for the trace and one for each child, and no other", () => {
    const { log } = openScene(OPEN, spawn("a"), acknowledge(1), complete(1), SETTLE);
    expect(log.flatMap(listEventReferences)).toEqual([
      { name: nameTraceReference({ session: OWNER, gateway: undefined }, "trace-1") },
      { name: nameChildReference(nameChild(1)), stepId: "step-1" },
    ]);
    expect(openScene({ ...OPEN, trace: {} } as typeof OPEN).log.flatMap(listEventReferences)).toEqual([]);
    const { log: named } = openScene({ ...OPEN, gateway: "a" } as typeof OPEN);
    expect(named.flatMap(listEventReferences)).toEqual([
      { name: nameTraceReference({ session: OWNER, gateway: "a" }, "trace-1") },
    ]);
  });

  it("never takes a trace for a child, or for that of another gateway", () => {
    const names = [undefined, "a", "b"].map((gateway) =>
      nameTraceReference({ session: OWNER, gateway }, "x"),
    );
    expect(new Set([...names, nameChildReference(OWNER)]).size).toBe(4);
  });
});
