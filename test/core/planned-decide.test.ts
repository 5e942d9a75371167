import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { planDispatch } from "../../src/agents/coordination/dispatch/plan-dispatch.ts";
import { ack, at, complete, contentRef, fail, given, OPEN, SETTLE, spawn, stepId } from "./scene.ts";
import {
  admit,
  cancel,
  DELIVERY,
  dispatch,
  expire,
  finish,
  goWrong,
  openPlan,
  plannedStep,
  planScene,
  report,
  retry,
  runOut,
  sessionOfAttempt,
  skip,
  started,
  stopped,
  TRIP,
  type Opened,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";

/** A plan of two steps: `x` waits for `root`. */
const waiting =
  (fields: StepFields = {}, opened: Partial<Opened> = {}) =>
  (): PlanScene =>
    planScene(
      openPlan({ steps: 2, ...opened }),
      admit(plannedStep("root"), plannedStep("x", { after: ["root"], ...fields })),
    );
const after =
  (make: () => PlanScene, ...commands: readonly Command[]) =>
  (): PlanScene =>
    make().then(...commands);

const ROOT = [dispatch("root"), started("root"), finish("root")];
const ready = after(waiting(), ...ROOT);
const dispatched = after(ready, dispatch("x"));
const running = after(dispatched, started("x"));
const retried = after(waiting({ retryBudget: 1 }), ...ROOT, dispatch("x"), started("x"));
const asking = after(
  waiting({}, { policy: { escalationPolicy: "hitl" } }),
  ...ROOT,
  dispatch("x"),
  started("x"),
);

const SITUATIONS = {
  waiting: waiting(),
  ready,
  dispatched,
  running,
  reported: after(running, report("x")),
  backoff: after(retried, goWrong("x")),
  "long backoff": after(
    waiting({ retryBudget: 1, backoffMs: 600_000 }),
    ...ROOT,
    ...[dispatch("x"), started("x"), goWrong("x")],
  ),
  again: after(retried, goWrong("x"), dispatch("x", 2)),
  blocked: after(asking, goWrong("x")),
  completed: after(running, finish("x")),
  failed: after(running, goWrong("x")),
  timedOut: after(running, runOut("x")),
  cancelled: after(running, goWrong("x", 1, "child_cancelled")),
  skipped: after(waiting(), cancel("x")),
} as const satisfies Record<string, () => PlanScene>;
type Situation = keyof typeof SITUATIONS;

const COMMANDS: Readonly<Record<string, Command>> = {
  open: OPEN,
  admit: admit(plannedStep("root"), plannedStep("x", { after: ["root"] })),
  "admit too many": admit(plannedStep("y")),
  spawn: spawn("a"),
  "dispatch 1": dispatch("x", 1),
  "dispatch 2": dispatch("x", 2),
  "dispatch 3": dispatch("x", 3),
  acknowledge: started("x"),
  "acknowledge elsewhere": started("x", 1, sessionOfAttempt("elsewhere")),
  complete: finish("x"),
  fail: goWrong("x"),
  refuse: goWrong("x", 1, "spawn_refused"),
  "cancel child": goWrong("x", 1, "child_cancelled"),
  "time out": runOut("x"),
  report: report("x"),
  "report else": report("x", 1, { outcome: "failed" }),
  skip: skip("x"),
  retry: retry("x"),
  "retry all": retry(),
  cancel: cancel("x"),
  "cancel all": cancel(),
  expire: expire(),
  trip: TRIP,
  "stop child": stopped("x"),
  settle: SETTLE,
};

/** What each command comes to: in every situation, but for those that are named. */
type Row = { readonly all: string } & Partial<Record<Situation, string>>;

const over = (code: string): Partial<Record<Situation, string>> => {
  const ended = [
    "backoff",
    "long backoff",
    "blocked",
    "completed",
    "failed",
    "timedOut",
    "cancelled",
  ] as const;
  return Object.fromEntries(ended.map((situation) => [situation, code]));
};
const NOT_BEGUN = { waiting: "STALE_ATTEMPT", ready: "STALE_ATTEMPT", skipped: "STALE_ATTEMPT" };
const LATE = "STEP_ENDED step.outcome_refused";
const STALE = "STALE_ATTEMPT step.outcome_refused";
const GRANTED = "step.retry_granted";
const CANCELLING = "coordination.cancel_requested";

const EXPECTED: Readonly<Record<keyof typeof COMMANDS, Row>> = {
  open: { all: "ALREADY_OPENED" },
  admit: { all: "replay" },
  "admit too many": { all: "TOO_MANY_STEPS" },
  spawn: { all: "step.admitted step.dispatched" },
  "dispatch 1": { all: "replay", waiting: "NOT_READY", ready: "step.dispatched", skipped: "STEP_ENDED" },
  "dispatch 2": {
    all: "NOT_READY",
    ...{ waiting: "STALE_ATTEMPT", ready: "STALE_ATTEMPT", skipped: "STALE_ATTEMPT" },
    ...{ backoff: "step.dispatched", again: "replay", completed: "STEP_ENDED", failed: "STEP_ENDED" },
    ...{ timedOut: "STEP_ENDED", cancelled: "STEP_ENDED" },
  },
  "dispatch 3": { all: "STALE_ATTEMPT", again: "NOT_READY" },
  acknowledge: {
    all: "replay",
    ...{ waiting: "STALE_ATTEMPT", ready: "STALE_ATTEMPT", skipped: "STALE_ATTEMPT", again: "STALE_ATTEMPT" },
    dispatched: "step.acknowledged",
  },
  "acknowledge elsewhere": {
    all: "OTHER_CHILD",
    ...{ waiting: "STALE_ATTEMPT", ready: "STALE_ATTEMPT", skipped: "STALE_ATTEMPT", again: "STALE_ATTEMPT" },
  },
  complete: { all: "step.completed", ...over(LATE), ...NOT_BEGUN, again: STALE, completed: "replay" },
  fail: {
    all: "step.failed",
    ...over("replay"),
    ...NOT_BEGUN,
    again: STALE,
    completed: LATE,
    timedOut: LATE,
  },
  refuse: {
    ...{ all: "step.failed", ...over("replay"), ...NOT_BEGUN, again: STALE, completed: LATE, timedOut: LATE },
    ...{ running: "ALREADY_RUNNING", reported: "ALREADY_RUNNING" },
  },
  "cancel child": {
    ...{ all: "step.failed", ...over("replay"), ...NOT_BEGUN, again: STALE, completed: LATE, timedOut: LATE },
  },
  "time out": { all: "step.timed_out", ...over(LATE), ...NOT_BEGUN, again: STALE, timedOut: "replay" },
  report: { all: "step.reported", ...over(LATE), ...NOT_BEGUN, again: STALE, reported: "replay" },
  "report else": { all: "step.reported", ...over(LATE), ...NOT_BEGUN, again: STALE },
  skip: { all: "replay" },
  retry: {
    all: "NOTHING_TO_RETRY",
    "long backoff": GRANTED,
    backoff: "replay",
    blocked: `escalation.closed ${GRANTED}`,
  },
  "retry all": {
    all: "NOTHING_TO_RETRY",
    "long backoff": GRANTED,
    backoff: "replay",
    blocked: `escalation.closed ${GRANTED}`,
  },
  cancel: {
    ...{ all: `${CANCELLING} step.skipped`, ...over("STEP_ENDED") },
    ...{ dispatched: CANCELLING, running: CANCELLING, reported: CANCELLING, again: CANCELLING },
    ...{ backoff: `${CANCELLING} step.skipped`, "long backoff": `${CANCELLING} step.skipped` },
    ...{ blocked: `${CANCELLING} escalation.closed`, skipped: "replay" },
  },
  "cancel all": { all: CANCELLING },
  expire: { all: "replay", blocked: "NOT_READY" },
  trip: { all: "NOT_READY" },
  "stop child": { all: "replay", timedOut: "step.child_stopped" },
  settle: {
    ...{ all: "STEPS_OPEN", completed: "step.admitted", failed: "step.admitted", cancelled: "step.admitted" },
  },
};

describe.each(Object.entries(SITUATIONS))("a planned step that is %s", (situation, make) => {
  it.each(Object.entries(COMMANDS).map(([name, command]) => [name, command] as const))(
    "answers %s as the table says",
    (name, command) => {
      const scene = make();
      const before = scene.state;
      const { all, ...but } = EXPECTED[name] ?? { all: "nothing" };
      const said = scene.says(command);
      expect(said).toBe(but[situation as Situation] ?? all);
      if (!said.includes(".")) expect(scene.state).toBe(before);
    },
  );

  it.each(Object.entries(COMMANDS).filter(([name]) => name !== "spawn"))(
    "D2: does not take %s twice",
    (_, command) => {
      const scene = make();
      const first = scene.when(command, scene.nowMs + 1_000);
      const { state } = scene;
      const again = scene.when(command, scene.nowMs);
      expect(scene.state).toBe(state);
      // The first of them admitted the step that tells the owner; that one is open now.
      const isRefused = first.kind === "refused" || command.type === "settleCoordination";
      expect(again.kind).toBe(isRefused ? "refused" : "replay");
    },
  );
});

describe("a plan that has ended", () => {
  const ended = (): PlanScene =>
    planScene(openPlan({ steps: 1 }), admit(plannedStep("x")), dispatch("x"), finish("x")).then(
      ...[SETTLE, dispatch(DELIVERY), started(DELIVERY), finish(DELIVERY), SETTLE],
    );

  it.each(Object.entries(COMMANDS))("D5: answers %s with a refusal and does not change", (name, command) => {
    const scene = ended();
    const { state } = scene;
    const expected = { open: "ALREADY_OPENED", settle: "replay" }[name] ?? "COORDINATION_ENDED";
    expect(scene.says(command)).toBe(expected);
    expect(scene.state).toBe(state);
  });
});

describe("a coordination that runs no plan", () => {
  const OF_PLANS = ["admit", "dispatch 1", "skip", "retry", "retry all", "expire", "trip", "stop child"];

  it.each(OF_PLANS)("refuses to %s", (name) => {
    const scene = given(OPEN, spawn("a"), ack(1));
    expect(scene.when(COMMANDS[name]!)).toMatchObject({ kind: "refused", code: "NOT_PLANNED" });
  });

  it("can be cancelled as a whole and step by step, and ends as cancelled", () => {
    const scene = given(OPEN, spawn("a"), ack(1));
    const all: Command = { type: "cancelCoordination", by: "agent" };
    const one: Command = { ...all, stepId: stepId(1) };
    for (const command of [one, all]) {
      expect(scene.when(command).kind).toBe("accepted");
      expect(scene.when(command).kind).toBe("replay");
    }
    expect(planDispatch(scene.state, at(0)).map(({ kind }) => kind)).toEqual(["stopObserved"]);
    scene.when(fail(1, "child_cancelled"));
    expect(scene.when(SETTLE)).toMatchObject({ facts: [{ payload: { status: "cancelled" } }] });
  });

  it("takes the report of a step's child, and its output where the host tells none", () => {
    const scene = given(OPEN, spawn("a"), ack(1));
    expect(scene.when(report("step-1")).kind).toBe("accepted");
    expect(scene.when(complete(1))).toMatchObject({ facts: [{ payload: { output: contentRef("out") } }] });
  });
});

describe("a run that ends well", () => {
  const FAILED = { outcome: "failed" } as const;

  it("has failed where the newest report of its child says so, of a plan or not", () => {
    const scene = running().then(report("x", 1, FAILED), finish("x", 1, { output: contentRef("out") }));
    expect(scene.last("step.failed").payload).toMatchObject({ error: { code: "reported_failed" } });
    expect(scene.says(finish("x"))).toBe("replay");
    const spawned = given(OPEN, spawn("a"), ack(1), report("step-1", 1, FAILED));
    expect(spawned.when(complete(1))).toMatchObject({ facts: [{ type: "step.failed" }] });
  });

  it("is a success where a later report says so, and an attempt is not held by the one before", () => {
    const scene = running().then(report("x", 1, FAILED), report("x"), finish("x"));
    expect(scene.last("step.completed").payload.output).toEqual(contentRef("out"));
    const again = retried().then(report("x", 1, FAILED), finish("x"), dispatch("x", 2), finish("x", 2));
    expect(again.status("x")).toBe("completed");
  });
});

describe("a command that names a step twice", () => {
  it("is taken as if it named it once", () => {
    const scene = waiting()().then(cancel());
    expect(scene.says(skip("x", "root", "x"))).toBe("step.skipped step.skipped");
    const blocked = SITUATIONS.blocked().then(cancel());
    expect(blocked.says(skip("x", "x"))).toBe("escalation.closed");
  });
});

describe("a command about a step that there is not", () => {
  it.each([
    ...[dispatch("y"), started("y"), finish("y"), goWrong("y"), runOut("y"), report("y"), retry("y")],
    cancel("y"),
  ])("is refused: %o", (command) => {
    expect(ready().says(command)).toBe("UNKNOWN_STEP");
  });

  it("is of no effect where it names several", () => {
    expect(ready().says(skip("y", "z"))).toBe("replay");
    expect(ready().says(stopped("y"))).toBe("replay");
    expect(ready().says(expire(7))).toBe("replay");
  });

  it("does not begin what a model spawned", () => {
    const scene = ready();
    scene.when(spawn("a"));
    const spawned = [...scene.open.steps.keys()].at(-1)!;
    expect(scene.says(dispatch(spawned, 2))).toBe("UNKNOWN_STEP");
  });
});
