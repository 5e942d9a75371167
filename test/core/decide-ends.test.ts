/** How attempts end: with the host's outcome, with the agent's own report, and refused where they cannot. */
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  admit,
  cancel,
  dispatch,
  failStep,
  finish,
  nameSessionOfAttempt,
  openPlan,
  planScene,
  planStep,
  report,
  runOut,
  SETTLE_PLAN,
  startStep,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";
import {
  acknowledge,
  complete,
  createContentRef,
  describeReason,
  fail,
  nameChild,
  OPEN,
  openScene,
  SETTLE,
  spawn,
  stepId,
  timeOut,
  type Scene,
} from "./scene.ts";

const USAGE = { tokens: 15 };
const openRunning = (...more: readonly Command[]): Scene =>
  openScene(OPEN, spawn("a"), acknowledge(1), ...more);
const openPlanned = (fields: StepFields = {}): PlanScene =>
  planScene(openPlan({ steps: 1 }), admit(planStep("a", fields)), dispatch("a"), startStep("a"));
const recordRefusedCall = (step = 1): Command => ({
  type: "recordRefusedCall",
  stepId: stepId(step),
  tool: "write",
  rule: "write",
  from: { by: "step", stepId: stepId(1) },
});

describe("a command is refused in words", () => {
  it.each<readonly [string, () => Scene, Command]>([
    ["NOT_OPENED: the coordination was never opened", () => openScene(), SETTLE],
    ["ALREADY_OPENED: a coordination with this id exists", () => openScene(OPEN), OPEN],
    [
      "COORDINATION_ENDED: the coordination ended as success",
      () => openRunning(complete(1), SETTLE),
      spawn("b"),
    ],
    ["NOT_PLANNED: the coordination runs no plan", () => openRunning(), { type: "tripBreaker" }],
    [
      "NOT_PLANNED: the coordination runs no plan",
      () => openRunning(),
      { type: "judgePlan", successCriteria: [] },
    ],
    ["UNKNOWN_STEP: there is no step step-9", () => openRunning(), acknowledge(9)],
    ["UNKNOWN_STEP: there is no step step-9", () => openRunning(), complete(9)],
    [
      "STALE_ATTEMPT: attempt 2 of step step-1 is not the current attempt, which is 1",
      () => openRunning(),
      acknowledge(1, 1, 2),
    ],
    [
      "STALE_ATTEMPT: attempt 2 of step step-1 is not the current attempt, which is 1",
      () => openRunning(),
      complete(1, 2),
    ],
    [
      `OTHER_CHILD: step step-1 already runs in session ${nameChild(1)}`,
      () => openRunning(),
      acknowledge(1, "another"),
    ],
    [
      `CHILD_TAKEN: session ${nameChild(1)} already works on step step-1`,
      () => openRunning(spawn("b")),
      acknowledge(2, 1),
    ],
    [
      "STEP_ENDED: step step-1 is failed",
      () => openScene(OPEN, spawn("a"), fail(1, "spawn_refused")),
      acknowledge(1),
    ],
    ["STEP_ENDED: step step-1 already ended as completed", () => openRunning(complete(1)), fail(1)],
    [
      `ALREADY_RUNNING: step step-1 already runs in session ${nameChild(1)}`,
      () => openRunning(),
      fail(1, "spawn_refused"),
    ],
    [
      `ALREADY_RUNNING: step step-1 already runs in session ${nameChild(1)}`,
      () => openRunning(),
      fail(1, "spawn_not_confirmed"),
    ],
  ])("%s", (reason, open, command) => {
    expect(describeReason(open().when(command))).toBe(reason);
  });

  it("where an earlier attempt ended as the current one has", () => {
    const scene = openPlanned({ retryBudget: 1 }).then(failStep("a"));
    scene.passes(60_000);
    scene.then(dispatch("a", 2), startStep("a", 2), finish("a", 2));
    expect(describeReason(scene.when(finish("a")))).toBe(
      "STALE_ATTEMPT: attempt 1 of step a is not the current attempt, which is 2",
    );
  });

  it("where a planned step was dispatched to another session, or not at all", () => {
    const planned = planScene(openPlan({ steps: 1 }), admit(planStep("a")));
    expect(describeReason(planned.when(finish("a", 0)))).toBe("NOT_DISPATCHED: step a was not dispatched");
    planned.then(dispatch("a"));
    expect(describeReason(planned.when(startStep("a", 1, nameChild("another"))))).toBe(
      `OTHER_CHILD: step a was dispatched to session ${nameSessionOfAttempt("a")}`,
    );
  });

  it("where the plan has nothing to judge, or is not worked off", () => {
    const judge: Command = { type: "judgePlan", successCriteria: [] };
    const reason = "NOT_READY: the plan has no success criteria, or not all of its steps have ended";
    const criteria = { successCriteria: createContentRef("criteria") } as never;
    expect(describeReason(openPlanned().then(finish("a")).when(judge))).toBe(reason);
    const scene = planScene(openPlan({ steps: 1, plan: criteria }), admit(planStep("a")));
    expect(describeReason(scene.when(judge))).toBe(reason);
    scene.then(dispatch("a"), startStep("a"), finish("a"));
    expect(scene.says(judge)).toBe("plan.judged");
    expect(scene.says(judge)).toBe("replay");
  });
});

describe("what the log has already", () => {
  it("is a replay with the step", () => {
    expect(openRunning().when(acknowledge(1))).toEqual({ kind: "replay", stepId: "step-1" });
    expect(openRunning(complete(1)).when(complete(1))).toEqual({ kind: "replay", stepId: "step-1" });
    expect(openRunning(complete(1), SETTLE).when(SETTLE)).toEqual({ kind: "replay" });
  });

  it.each<readonly [string, Command, Command]>([
    ["a failure", fail(1), fail(1, "child_lost")],
    ["a time-out", timeOut(1), timeOut(1)],
    ["a cancellation", fail(1, "child_cancelled"), fail(1)],
  ])("is a replay after %s", (_, first, again) => {
    expect(openRunning(first).when(again).kind).toBe("replay");
  });

  it("is told from another outcome of the attempt, which is late", () => {
    const late = ["STEP_ENDED", "LATE_OUTCOME"];
    expect(late).toContain(describeReason(openRunning(fail(1)).when(timeOut(1))).split(":")[0]);
    const failed = openPlanned({ retryBudget: 1 }).then(failStep("a"));
    expect(failed.status("a")).toBe("backoff");
    expect(failed.says(failStep("a"))).toBe("replay");
    expect(failed.says(runOut("a"))).not.toBe("replay");
    const again = openPlanned({ retryBudget: 1 }).then(runOut("a"), dispatch("a", 2), startStep("a", 2));
    expect(again.says(failStep("a"))).not.toBe("replay");
    expect(again.says(finish("a"))).not.toBe("replay");
  });

  it("is the end of an attempt whose result is held, or sent back, by any completion", () => {
    const gate = { threshold: 10_000, requireConfidence: true };
    const scene = openPlanned({ gate }).then(finish("a"));
    expect(scene.status("a")).toBe("held");
    expect(scene.says(finish("a"))).toBe("replay");
    expect(scene.says(failStep("a"))).not.toBe("replay");
  });

  it("is a failure that people were asked about", () => {
    const scene = planScene(
      openPlan({ steps: 1, policy: { escalationPolicy: "hitl" } }),
      admit(planStep("a")),
      dispatch("a"),
      startStep("a"),
      failStep("a"),
    );
    expect(scene.status("a")).toBe("blocked");
    expect(scene.says(failStep("a"))).toBe("replay");
    expect(scene.says(finish("a"))).not.toBe("replay");
  });
});

describe("the report of an agent", () => {
  const openReported = (rest: Parameters<typeof report>[2] = {}): PlanScene =>
    openPlanned().then(report("a", 1, { output: createContentRef("reported"), ...rest }));

  it("counts before its last words, with what it used", () => {
    const scene = openReported();
    scene.then(finish("a", 1, { output: createContentRef("words"), usage: USAGE }));
    expect(scene.last("step.completed").payload).toEqual({
      stepId: "a",
      attempt: 1,
      via: "runner",
      output: createContentRef("reported"),
      usage: USAGE,
    });
  });

  it.each(["output_invalid", "reported_failed"] as const)("counts before an end as %s", (code) => {
    const scene = openReported().then(failStep("a", 1, code));
    const { payload } = scene.last("step.completed");
    expect(payload).toEqual({ stepId: "a", attempt: 1, via: "runner", output: createContentRef("reported") });
  });

  it("that it could not do it fails the step, whatever it says last", () => {
    const scene = openReported({ outcome: "failed" }).then(finish("a", 1, { usage: USAGE }));
    expect(scene.last("step.failed").payload).toMatchObject({
      error: { code: "reported_failed", message: "the agent reported that it could not do it" },
      cancelled: false,
      usage: USAGE,
    });
  });

  it("does not count before an end that is none of its words", () => {
    expect(openReported().then(failStep("a")).status("a")).toBe("failed");
    expect(openReported().then(runOut("a")).status("a")).toBe("timed_out");
  });

  it("does not count for another attempt", () => {
    const scene = openPlanned({ retryBudget: 1 }).then(
      report("a"),
      runOut("a"),
      dispatch("a", 2),
      startStep("a", 2),
      finish("a", 2, { output: createContentRef("words") }),
    );
    expect(scene.last("step.completed").payload.output).toEqual(createContentRef("words"));
  });
});

describe("a run that was refused because it is not as asked", () => {
  const observeRefused = (attempt = 1): Command => ({
    type: "observeChild",
    stepId: "a" as StepId,
    attempt,
    ran: { model: "mock/other" },
    refused: true,
  });
  const openRefused = (): PlanScene =>
    openPlanned({ retryBudget: 1, requested: { model: "mock/asked" } }).then(observeRefused());

  it.each([finish("a"), failStep("a")])("fails for that reason, whatever the host says: %o", (ending) => {
    const scene = openRefused().then(ending);
    expect(scene.last("step.failed").payload).toMatchObject({
      error: { code: "not_as_asked" },
      cancelled: false,
    });
  });

  it("is cancelled where it was cancelled", () => {
    const scene = openRefused().then(failStep("a", 1, "child_cancelled"));
    expect(scene.last("step.failed").payload).toMatchObject({
      error: { code: "not_as_asked" },
      cancelled: true,
    });
  });

  it("may still run out of time", () => {
    expect(openRefused().then(runOut("a")).last("step.timed_out").payload.attempt).toBe(1);
  });
});

describe("other commands of an open coordination", () => {
  it("reach who decides on them", () => {
    const scene = openRunning();
    expect(scene.when(recordRefusedCall()).kind).toBe("accepted");
    expect(scene.log.at(-1)?.type).toBe("privilege.refused");
    expect(planScene(openPlan({ steps: 0 }), cancel()).says(SETTLE_PLAN)).toContain("step.admitted");
  });
});
