import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { planDispatch } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import {
  acknowledge,
  timeAt,
  complete,
  createContentRef,
  fail,
  openScene,
  OPEN,
  SETTLE,
  spawn,
  stepId,
} from "./scene.ts";
import {
  admit,
  answer,
  cancel,
  DELIVERY,
  dispatch,
  expire,
  finish,
  failStep,
  openPlan,
  planStep,
  planScene,
  report,
  retry,
  runOut,
  skip,
  startStep,
  stopChildOf,
  recordFinding,
  type PlanScene,
} from "./planned-scene.ts";
import {
  COMMANDS,
  EXPECTED,
  HELD,
  holders,
  ready,
  retried,
  running,
  SITUATIONS,
  createWaiting,
  type Situation,
} from "./planned-table.ts";

/** A spawn is another one; a verdict or an answer that comes again comes late, which is recorded. */
const isNews = (name: string): boolean =>
  name === "spawn" ||
  "finding" in COMMANDS[name]! ||
  ["no verdict", "approve", "deny", "answer"].includes(name);

describe.each(Object.entries(SITUATIONS))("a planned step that is %s", (situation, make) => {
  it.each(Object.entries(COMMANDS).map(([name, command]) => [name, command] as const))(
    "answers %s as the table says",
    (name, command) => {
      const scene = make();
      const before = scene.state;
      const { all, ...but } = EXPECTED[name] ?? { all: "nothing" };
      const words = scene.says(command);
      expect(words).toBe(but[situation as Situation] ?? all);
      if (!words.includes(".")) expect(scene.state).toBe(before);
    },
  );

  it.each(Object.entries(COMMANDS).filter(([name]) => !isNews(name)))(
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
  const createEndedScene = (): PlanScene =>
    planScene(openPlan({ steps: 1 }), admit(planStep("x")), dispatch("x"), finish("x")).then(
      ...[SETTLE, dispatch(DELIVERY), startStep(DELIVERY), finish(DELIVERY), SETTLE],
    );

  it.each(Object.entries(COMMANDS))("D5: answers %s with a refusal and does not change", (name, command) => {
    const scene = createEndedScene();
    const { state } = scene;
    const expected = { open: "ALREADY_OPENED", settle: "replay" }[name] ?? "COORDINATION_ENDED";
    expect(scene.says(command)).toBe(expected);
    expect(scene.state).toBe(state);
  });
});

describe("a coordination that runs no plan", () => {
  const PLAN_COMMANDS = ["admit", "skip", "retry", "retry all", "trip", "stop child", "judge"];

  it.each(PLAN_COMMANDS)("refuses to %s", (name) => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1));
    expect(scene.when(COMMANDS[name]!)).toMatchObject({ kind: "refused", code: "NOT_PLANNED" });
  });

  it("has no step that is begun but by a model, and no question to expire", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1));
    expect(scene.when(dispatch("step-1", 2))).toMatchObject({ kind: "refused", code: "NOT_READY" });
    expect(scene.when(expire()).kind).toBe("replay");
  });

  it("can be cancelled as a whole and step by step, and ends as cancelled", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1));
    const all: Command = { type: "cancelCoordination", by: "agent" };
    const one: Command = { ...all, stepId: stepId(1) };
    for (const command of [one, all]) {
      expect(scene.when(command).kind).toBe("accepted");
      expect(scene.when(command).kind).toBe("replay");
    }
    expect(planDispatch(scene.state, timeAt(0)).map(({ kind }) => kind)).toEqual(["stopObserved"]);
    scene.when(fail(1, "child_cancelled"));
    expect(scene.when(SETTLE)).toMatchObject({ facts: [{ payload: { status: "cancelled" } }] });
  });

  it("takes the report of a step's child, and its output where the host tells none", () => {
    const scene = openScene(OPEN, spawn("a"), acknowledge(1));
    expect(scene.when(report("step-1")).kind).toBe("accepted");
    expect(scene.when(complete(1))).toMatchObject({
      facts: [{ payload: { output: createContentRef("out") } }],
    });
  });
});

describe("a verdict or an answer that comes twice", () => {
  it("is recorded once as late, and changes nothing", () => {
    const scene = holders().then(recordFinding(HELD));
    const { phase } = scene.step("x");
    expect(scene.says(recordFinding(HELD))).toBe("STEP_ENDED step.outcome_refused");
    expect(scene.says(recordFinding(HELD, { verdict: "fail" }))).toBe("STEP_ENDED");
    expect(scene.step("x").phase).toBe(phase);
  });

  it("is refused, with whoever was first, and recorded", () => {
    const scene = SITUATIONS.asked().then(answer());
    expect(scene.when(answer(1, "deny"))).toMatchObject({
      kind: "refused",
      code: "QUESTION_CLOSED",
      reason: "the question is closed already: approved through cli",
      facts: [{ type: "escalation.answered", payload: { answer: "deny", refused: "closed" } }],
    });
    expect(scene.step("x").phase).toMatchObject({ status: "completed", released: "approved" });
  });
});

describe("a run that ends well", () => {
  const FAILED = { outcome: "failed" } as const;

  it("has failed where the newest report of its child says so, of a plan or not", () => {
    const scene = running().then(report("x", 1, FAILED), finish("x", 1, { output: createContentRef("out") }));
    expect(scene.last("step.failed").payload).toMatchObject({ error: { code: "reported_failed" } });
    expect(scene.says(finish("x"))).toBe("replay");
    const spawned = openScene(OPEN, spawn("a"), acknowledge(1), report("step-1", 1, FAILED));
    expect(spawned.when(complete(1))).toMatchObject({ facts: [{ type: "step.failed" }] });
  });

  it("is a success where a later report says so, and an attempt is not held by the one before", () => {
    const scene = running().then(report("x", 1, FAILED), report("x"), finish("x"));
    expect(scene.last("step.completed").payload.output).toEqual(createContentRef("out"));
    const again = retried().then(report("x", 1, FAILED), finish("x"), dispatch("x", 2), finish("x", 2));
    expect(again.status("x")).toBe("completed");
  });

  it("has the output of the newest report, whatever the child's words came to when they were read", () => {
    const createOutput = (reported: string) => ({ output: createContentRef(reported) });
    const older = finish("x", 1, createOutput("old"));
    const scene = running().then(
      report("x", 1, createOutput("old")),
      report("x", 1, createOutput("new")),
      older,
    );
    expect(scene.last("step.completed").payload).toMatchObject(createOutput("new"));
    for (const code of ["output_invalid", "reported_failed"] as const) {
      const after = running().then(report("x", 1, createOutput("new")), failStep("x", 1, code));
      expect(after.last("step.completed").payload).toMatchObject(createOutput("new"));
    }
    const broken = running().then(report("x"), failStep("x", 1));
    expect(broken.last("step.failed").payload.error.code).toBe("child_failed");
  });
});

describe("a command that names a step twice", () => {
  it("is taken as if it named it once", () => {
    const scene = createWaiting()().then(cancel());
    expect(scene.says(skip("x", "root", "x"))).toBe("step.skipped step.skipped");
    const blocked = SITUATIONS.blocked().then(cancel());
    expect(blocked.says(skip("x", "x"))).toBe("escalation.closed");
  });
});

describe("a command about a step that there is not", () => {
  it.each([
    ...[dispatch("y"), startStep("y"), finish("y"), failStep("y"), runOut("y"), report("y"), retry("y")],
    cancel("y"),
  ])("is refused: %o", (command) => {
    expect(ready().says(command)).toBe("UNKNOWN_STEP");
  });

  it("is of no effect where it names several", () => {
    expect(ready().says(skip("y", "z"))).toBe("replay");
    expect(ready().says(stopChildOf("y"))).toBe("replay");
    expect(ready().says(expire(7))).toBe("replay");
  });

  it("does not begin what a model spawned", () => {
    const scene = ready();
    scene.when(spawn("a"));
    const spawned = [...scene.open.steps.keys()].at(-1)!;
    expect(scene.says(dispatch(spawned, 2))).toBe("NOT_READY");
  });
});
