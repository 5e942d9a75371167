import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import {
  CHECKING,
  CHECKING_TWICE,
  contentRef,
  finishDone,
  DOUBTING,
  createHeldScene,
  ruleNoVerdict,
  filterByType,
  findQuestion,
  createRunningScene,
  createSpawnedScene,
  listTypesFrom,
  ruleVerdict,
  VERIFY_MS,
} from "./gates-scene.ts";
import {
  DELIVERY,
  dispatch,
  finish,
  failStep,
  openPlan,
  planStep,
  planScene,
  report,
  runOut,
  nameSessionOfAttempt,
  skip,
  startStep,
  admit,
} from "./planned-scene.ts";
import { timeAt, complete } from "./scene.ts";

const planStepAfter = (name: string) => planStep(name, { after: ["a"] });

const COMPLETED = "step.completed";

describe("a result is let through at once", () => {
  it.each([
    ["where nothing gates it", undefined, undefined],
    ["where no confidence is stated and none is demanded", DOUBTING, undefined],
    ["where its confidence equals the threshold", DOUBTING, 7_000],
    ["where it is sure", { ...DOUBTING, requireConfidence: true }, 10_000],
  ] as const)("%s", (_, gate: Gate | undefined, confidence) => {
    const scene = planScene(
      openPlan({ steps: 1 }),
      admit(planStep("a", gate ? { gate } : {})),
      dispatch("a"),
    );
    expect(scene.says(finishDone("a", confidence))).toBe(COMPLETED);
    expect(scene.last(COMPLETED).payload).toMatchObject({ via: "runner" });
    expect(scene.last(COMPLETED).payload).not.toHaveProperty("released");
  });
});

describe("a result is held", () => {
  it("below the threshold, and people are asked in the same append: the agent's word, then the question, then the interrupt", () => {
    const scene = createRunningScene(DOUBTING);
    expect(scene.says(finishDone("a", 6_999))).toBe("result.held coordination.escalated");
    expect(listTypesFrom(scene, "result.held")).toEqual([
      "result.held",
      "agent.decided",
      "coordination.escalated",
      "interrupt.requested",
      "node.suspended",
    ]);
    expect(scene.last("agent.decided").payload).toEqual({
      agentId: "agent:main",
      decision: { workerId: "a", attempt: 1, outputSha256: contentRef("out").sha256 },
      confidence: 0.6999,
    });
    expect(scene.last("node.suspended").payload).toMatchObject({
      reason: "low-confidence",
      agentId: "agent:main",
      threshold: 0.7,
      observed: 0.6999,
    });
    expect(findQuestion(scene)).toMatchObject({
      cause: "confidence",
      kind: "approval",
      stepId: "a",
      answers: ["approve", "deny", "answer"],
      askedBy: nameSessionOfAttempt("a"),
      onExpiry: "deny",
      confidence: { measured: 6_999, floor: 7_000, of: "result" },
    });
  });

  it("where none is stated and one is demanded, and where it cannot be read; neither is a number in the log", () => {
    const demanding = createRunningScene({ ...DOUBTING, requireConfidence: true });
    expect(demanding.says(finishDone("a"))).toBe("result.held coordination.escalated");
    const unreadable = createRunningScene(DOUBTING);
    unreadable.when(finish("a", 1, { stated: { confidenceUnreadable: true } }));
    for (const scene of [demanding, unreadable]) {
      expect(scene.status("a")).toBe("held");
      expect(findQuestion(scene).confidence).toEqual({ floor: 7_000, of: "result" });
      expect(scene.last("agent.decided").payload).not.toHaveProperty("confidence");
      expect(scene.last("node.suspended").payload).not.toHaveProperty("observed");
    }
  });

  it("where checks are asked for, and nobody is asked before they have answered", () => {
    const scene = createRunningScene(CHECKING);
    expect(scene.says(finishDone("a", 0), 5_000)).toBe("result.held");
    expect(scene.last("result.held").payload).toMatchObject({
      confidence: 0,
      verifyByMs: timeAt(5_000 + VERIFY_MS),
    });
    expect(scene.plans()).toEqual(["verifyResult a 1"]);
  });

  it("by what the agent reported before what it said, and by what it said before what was kept back", () => {
    const reported = createRunningScene(DOUBTING).then(report("a", 1, { confidence: 9_000 }));
    expect(reported.says(finishDone("a", 100))).toBe(COMPLETED);
    const doubtful = createRunningScene(DOUBTING).then(report("a", 1, { confidence: 100 }));
    expect(doubtful.says(finishDone("a", 9_000))).toBe("result.held coordination.escalated");
    const withholdText = (confidence: number): Command => ({
      type: "withholdText",
      stepId: "step-1" as never,
      attempt: 1,
      text: contentRef("words"),
      confidence,
    });
    expect(createSpawnedScene(DOUBTING).then(withholdText(100)).says(complete(1))).toBe(
      "result.held coordination.escalated",
    );
    expect(
      createSpawnedScene(DOUBTING)
        .then(withholdText(100))
        .says({ ...complete(1), stated: { confidence: 7_000 } } as Command),
    ).toBe(COMPLETED);
  });

  it("and nothing after it begins, nothing is told, and the plan does not end", () => {
    const scene = createHeldScene(DOUBTING, 100, { others: [planStepAfter("b")] });
    expect(scene.plans()).toEqual([]);
    expect(scene.says(dispatch("b"))).toBe("NOT_READY");
    expect(scene.says({ type: "settleCoordination" })).toBe("STEPS_OPEN");
  });

  it("and its time is up no more, nor does it fail, nor report, nor begin again", () => {
    const scene = createHeldScene(CHECKING);
    for (const command of [runOut("a"), failStep("a"), report("a"), finish("a")])
      expect(scene.when(command).kind, command.type).not.toBe("accepted");
    expect(scene.says(dispatch("a", 2))).toBe("NOT_READY");
    expect(scene.status("a")).toBe("held");
  });

  it("and what it used counts once, whatever comes of it", () => {
    const scene = createRunningScene(CHECKING).then(finish("a", 1, { usage: { tokens: 70 } }));
    expect(scene.open.plan.spent.tokens).toBe(70);
    scene.then(ruleVerdict(scene, "a", "pass"));
    expect(scene.open.plan.spent.tokens).toBe(70);
    expect(scene.step("a").spent?.tokens).toBe(70);
  });
});

describe("a verdict", () => {
  it("that passes lets the result through, after the event that says so", () => {
    const scene = createHeldScene(CHECKING, 7_000, { others: [planStepAfter("b")] });
    const { output } = scene.last("result.held").payload;
    expect(scene.says(ruleVerdict(scene, "a", "pass", { criteria: ["style"], confidence: 7_000 }))).toBe(
      "result.verified step.completed",
    );
    expect(listTypesFrom(scene, "result.verified")).toEqual([
      ...["result.verified", "agent.verified", COMPLETED, "core.workflowChain.event"],
    ]);
    expect(scene.last(COMPLETED).payload).toEqual({
      stepId: "a",
      attempt: 1,
      via: "gate",
      output,
      released: "verified",
    });
    expect(scene.plans()).toEqual(["runStep b 1"]);
  });

  it("is content-free in OpenWOP: who ruled on which event, the verdict, the keys and a confidence", () => {
    const scene = createHeldScene(CHECKING);
    const target = scene.last("agent.decided").eventId;
    scene.when(
      ruleVerdict(scene, "a", "fail", { criteria: ["no-pii"], confidence: 9_000, agentId: "agent:critic" }),
    );
    expect(scene.last("agent.verified").payload).toEqual({
      agentId: "agent:critic",
      target,
      verdict: "fail",
      criteria: ["no-pii"],
      confidence: 0.9,
    });
  });

  it("that fails ends the step, blocks what depends on it, and the plan is no success", () => {
    const scene = createHeldScene(CHECKING, undefined, { others: [planStepAfter("b")] });
    expect(scene.says(ruleVerdict(scene, "a", "fail", { criteria: ["grounded"] }))).toBe(
      "result.verified step.failed",
    );
    expect(scene.last("step.failed").payload).toMatchObject({
      via: "gate",
      cancelled: false,
      error: { code: "verification_failed", message: "not met: grounded" },
    });
    expect(scene.plans()).toEqual(["skipSteps b"]);
    scene.then(skip("b"), { type: "settleCoordination" }, dispatch(DELIVERY), finish(DELIVERY), {
      type: "settleCoordination",
    });
    expect(scene.last("coordination.terminal").payload).toMatchObject({ status: "failed" });
    expect(filterByType(scene, COMPLETED).map(({ payload }) => payload.stepId)).toEqual([DELIVERY]);
  });

  it("that fails does not wait for the others, whose verdicts come too late then and are recorded once", () => {
    const scene = createHeldScene(CHECKING_TWICE);
    const late = ruleVerdict(scene, "a", "pass", { check: "test" });
    scene.then(ruleVerdict(scene, "a", "fail"));
    expect(scene.says(late)).toBe("STEP_ENDED step.outcome_refused");
    expect(scene.last("step.outcome_refused").payload).toEqual({
      stepId: "a",
      attempt: 1,
      outcome: "verified",
      because: "step_ended",
    });
    expect(scene.says(late)).toBe("STEP_ENDED");
    expect(scene.status("a")).toBe("failed");
  });

  it("waits for the other checks, whichever answers first", () => {
    for (const [first, second] of [
      ["lint", "test"],
      ["test", "lint"],
    ] as const) {
      const scene = createHeldScene(CHECKING_TWICE);
      expect(scene.says(ruleVerdict(scene, "a", "pass", { check: first }))).toBe("result.verified");
      expect(scene.plans()).toEqual(["verifyResult a 1"]);
      expect(scene.effects()).toMatchObject([{ checks: [second] }]);
      expect(scene.says(ruleVerdict(scene, "a", "pass", { check: second }))).toBe(
        "result.verified step.completed",
      );
    }
  });

  it("given twice is given once", () => {
    const scene = createHeldScene(CHECKING_TWICE);
    const passing = ruleVerdict(scene, "a", "pass");
    scene.then(passing);
    expect(scene.says(passing)).toBe("replay");
    expect(scene.says(ruleVerdict(scene, "a", "fail"))).toBe("replay");
    expect(scene.says(ruleNoVerdict(scene, "a"))).toBe("replay");
  });

  it("with a low confidence of its own, or over a low one of the agent, asks people", () => {
    const critic = createHeldScene(CHECKING, 9_000);
    expect(critic.says(ruleVerdict(critic, "a", "pass", { confidence: 6_999 }))).toBe(
      "result.verified coordination.escalated",
    );
    expect(findQuestion(critic).confidence).toEqual({ measured: 6_999, floor: 7_000, of: "verdict" });
    const actor = createHeldScene(CHECKING, 6_999);
    actor.then(ruleVerdict(actor, "a", "pass", { confidence: 10_000 }));
    expect(findQuestion(actor).confidence).toEqual({ measured: 6_999, floor: 7_000, of: "result" });
    for (const scene of [critic, actor]) {
      expect(scene.status("a")).toBe("held");
      expect(listTypesFrom(scene, "coordination.escalated")).not.toContain(
        "core.workflowChain.confidence-escalated",
      );
    }
  });

  it("that is none holds the result for people, and does not pass it", () => {
    for (const because of ["timed_out", "failed", "unavailable", "other_target", "malformed"] as const) {
      const scene = createHeldScene(CHECKING, 10_000);
      expect(scene.says(ruleNoVerdict(scene, "a", because))).toBe(
        "verification.failed coordination.escalated",
      );
      expect(scene.last("coordination.escalated").payload).toMatchObject({ cause: "verifier", stepId: "a" });
      expect(scene.status("a")).toBe("held");
      expect(scene.plans()).toEqual([]);
    }
  });

  it("comes too late once people are asked", () => {
    const scene = createHeldScene(CHECKING, 10_000);
    scene.then(ruleNoVerdict(scene, "a"));
    expect(scene.when(ruleVerdict(scene, "a", "pass")).kind).toBe("refused");
    expect(scene.status("a")).toBe("held");
  });

  it.each(["target", "check", "attempt"] as const)(
    "about another %s changes nothing and is recorded once",
    (subject) => {
      const scene = createHeldScene(CHECKING);
      const other = { target: { target: "co-1:1" }, check: { check: "test" }, attempt: { attempt: 2 } }[
        subject
      ];
      const { phase } = scene.step("a");
      expect(scene.when(ruleVerdict(scene, "a", "pass", other)).kind).toBe("refused");
      expect(scene.when(ruleNoVerdict(scene, "a", "failed", other)).kind).toBe("refused");
      expect(scene.step("a").phase).toEqual(phase);
      // There is nothing to tell of an attempt that was never made.
      expect(filterByType(scene, "step.outcome_refused")).toHaveLength(subject === "attempt" ? 0 : 1);
    },
  );

  it("of an earlier attempt does not count for a newer one, also while that is held, and is recorded once", () => {
    const scene = createHeldScene(CHECKING, undefined, { fields: { retryBudget: 1 } });
    const stale = ruleVerdict(scene, "a", "pass");
    scene.then(
      ruleVerdict(scene, "a", "revise"),
      dispatch("a", 2),
      startStep("a", 2),
      finishDone("a", undefined, 2),
    );
    for (let time = 0; time < 2; time += 1) expect(scene.when(stale).kind).toBe("refused");
    expect(scene.status("a")).toBe("held");
    expect(filterByType(scene, "step.outcome_refused").map(({ payload }) => payload)).toEqual([
      { stepId: "a", attempt: 1, outcome: "verified", because: "stale_attempt" },
    ]);
  });

  it("on what is not held, and on no step at all, is refused", () => {
    const scene = createRunningScene(CHECKING);
    expect(scene.when(ruleVerdict(scene, "a", "pass")).kind).toBe("refused");
    expect(scene.status("a")).toBe("running");
    const unknown = { ...ruleVerdict(scene, "a", "pass"), stepId: "nope" } as Command;
    expect(scene.says(unknown)).toBe("UNKNOWN_STEP");
    const ungated = planScene(openPlan({ steps: 1 }), admit(planStep("a")), dispatch("a"), startStep("a"));
    expect(ungated.when(ruleVerdict(ungated, "a", "fail")).kind).toBe("refused");
    expect(ungated.status("a")).toBe("running");
  });
});
