import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { ChildRun } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  answer,
  CHECKING,
  contentRef,
  finishDone,
  createHeldScene,
  createRunningScene,
  filterByType,
  findQuestion,
  ruleVerdict,
} from "./gates-scene.ts";
import {
  cancel,
  dispatch,
  failStep,
  finish,
  nameSessionOfAttempt,
  skip,
  startStep,
  type PlanScene,
  type StepFields,
} from "./planned-scene.ts";

const COMPLETED = "step.completed";

describe("an agent that rules on its own work", () => {
  it("has given no verdict where the operator does not allow it", () => {
    const scene = createHeldScene(CHECKING);
    expect(scene.says(ruleVerdict(scene, "a", "pass", { self: true, agentId: "agent:main" }))).toBe(
      "verification.failed coordination.escalated",
    );
    expect(scene.last("verification.failed").payload).toMatchObject({ because: "self_not_allowed" });
    expect(filterByType(scene, "agent.verified")).toEqual([]);
  });

  it("is visible where it is allowed: in the fact, and in OpenWOP as actor and verifier of one name", () => {
    const scene = createHeldScene({ ...CHECKING, allowSelf: true });
    scene.then(ruleVerdict(scene, "a", "pass", { self: true, agentId: "agent:main" }));
    expect(scene.last("result.verified").payload).toMatchObject({ self: true, agentId: "agent:main" });
    expect(scene.last("agent.verified").payload.agentId).toBe(scene.last("agent.decided").payload.agentId);
    expect(scene.status("a")).toBe("completed");
  });
});

describe("a result that is to be revised", () => {
  it("goes back to its agent as another attempt, with the keys of what is not met", () => {
    const scene = createHeldScene(CHECKING);
    expect(scene.says(ruleVerdict(scene, "a", "revise", { criteria: ["style", "tests"] }))).toBe(
      "result.verified result.revised",
    );
    expect(scene.last("result.revised").payload).toEqual({
      stepId: "a",
      attempt: 1,
      revision: 1,
      criteria: ["style", "tests"],
    });
    expect(scene.step("a").phase).toMatchObject({
      status: "backoff",
      revision: { criteria: ["style", "tests"], output: contentRef("out") },
    });
    expect(scene.plans()).toEqual(["runStep a 2"]);
    scene.then(dispatch("a", 2), startStep("a", 2), finishDone("a", 9_000, 2));
    scene.then(ruleVerdict(scene, "a", "pass"));
    expect(scene.last(COMPLETED).payload).toMatchObject({ attempt: 2, released: "verified" });
  });

  it("is known where its attempt is said to have completed once more, and is not known to have failed", () => {
    const scene = createHeldScene(CHECKING);
    scene.then(ruleVerdict(scene, "a", "revise"));
    expect(scene.says(finishDone("a"))).toBe("replay");
    expect(scene.says(failStep("a"))).toMatch(/^STEP_ENDED/u);
  });

  it("costs none of the attempts that may fail", () => {
    const scene = createHeldScene(CHECKING, undefined, { fields: { retryBudget: 1 } });
    scene.then(ruleVerdict(scene, "a", "revise"), dispatch("a", 2), startStep("a", 2), failStep("a", 2));
    expect(scene.status("a")).toBe("backoff");
    scene.passes(60_000);
    scene.then(dispatch("a", 3), startStep("a", 3), failStep("a", 3));
    expect(scene.status("a")).toBe("failed");
  });

  it("once more than is allowed is for people", () => {
    const scene = createHeldScene(CHECKING);
    scene.then(
      ruleVerdict(scene, "a", "revise"),
      dispatch("a", 2),
      startStep("a", 2),
      finishDone("a", undefined, 2),
    );
    expect(scene.says(ruleVerdict(scene, "a", "revise"))).toBe("result.verified coordination.escalated");
    expect(findQuestion(scene)).toMatchObject({
      cause: "verifier",
      stepId: "a",
      askedBy: nameSessionOfAttempt("a", 2),
    });
    expect(scene.plans()).toEqual([]);
  });

  it.each<readonly [string, StepFields, Parameters<typeof finish>[2]]>([
    ["spawns", { budget: { spawns: 1 } }, {}],
    ["tokens", { budget: { tokens: 500 } }, { usage: { tokens: 500 } }],
    ["costMicroUsd", { budget: { costMicroUsd: 9 } }, { usage: { costMicroUsd: 9 } }],
    ["wallMs", { budget: { wallMs: 3_000 } }, {}],
  ])("is for people as it is where the step has used up its %s", (_, fields, used) => {
    const scene = createRunningScene({ ...CHECKING, revisionsMax: 2 }, { fields });
    scene.then(finish("a", 1, { output: contentRef("out"), ...used }));
    expect(scene.says(ruleVerdict(scene, "a", "revise"))).toBe("result.verified coordination.escalated");
    expect(findQuestion(scene)).toMatchObject({ cause: "verifier", stepId: "a" });
    scene.then(answer("approve"));
    expect(scene.last(COMPLETED).payload).toMatchObject({ attempt: 1, output: contentRef("out") });
  });

  it("goes back to its agent where the step has something left of its budget", () => {
    const fields = { budget: { spawns: 2, tokens: 501, wallMs: 60_000 } };
    const scene = createRunningScene({ ...CHECKING, revisionsMax: 2 }, { fields });
    scene.then(finish("a", 1, { output: contentRef("out"), usage: { tokens: 500 } }));
    expect(scene.says(ruleVerdict(scene, "a", "revise"))).toBe("result.verified result.revised");
    scene.then(dispatch("a", 2), startStep("a", 2), finishDone("a", undefined, 2));
    expect(scene.says(ruleVerdict(scene, "a", "revise"))).toBe("result.verified coordination.escalated");
  });

  it("fails as any attempt where a check of it fails, and is tried again where attempts are left", () => {
    const scene = createHeldScene(CHECKING, undefined, { fields: { retryBudget: 1 } });
    scene.then(ruleVerdict(scene, "a", "fail"));
    expect(scene.step("a").phase).toMatchObject({ status: "backoff", cause: "failed" });
    expect(scene.step("a").phase).not.toHaveProperty("revision");
    scene.passes(60_000);
    scene.then(dispatch("a", 2), startStep("a", 2), finishDone("a", undefined, 2));
    scene.then(ruleVerdict(scene, "a", "fail"));
    expect(scene.status("a")).toBe("failed");
  });

  it("is for people where no attempt is left and the plan asks them", () => {
    const scene = createHeldScene(CHECKING, undefined, { opened: { policy: { escalationPolicy: "hitl" } } });
    expect(scene.says(ruleVerdict(scene, "a", "fail"))).toBe(
      "result.verified step.failed coordination.escalated",
    );
    expect(scene.status("a")).toBe("blocked");
    expect(findQuestion(scene)).toMatchObject({ cause: "retries_exhausted", answers: ["approve", "deny"] });
  });

  it("does not begin again once the plan has stopped", () => {
    const scene = createHeldScene(CHECKING);
    scene.then(ruleVerdict(scene, "a", "revise"), cancel());
    expect(scene.says(dispatch("a", 2))).toBe("PLAN_STOPPED");
    expect(scene.plans()).toEqual(["skipSteps a"]);
    scene.then(skip("a"));
    expect(scene.status("a")).toBe("cancelled");
  });
});

describe("a result that is revised after its agent did not run as it was asked", () => {
  const LARGE: ChildRun = { model: "mock/large" };
  const SMALL: ChildRun = { model: "mock/small" };
  const DIFFERENCE = { field: "model", asked: "mock/large", ran: "mock/small" };
  const observe = (ran: ChildRun, attempt: number): Command => ({
    type: "observeChild",
    stepId: "a" as StepId,
    attempt,
    ran,
  });

  /** Its first attempt ran with another model, and a check wants a revision. */
  function createRevised(): PlanScene {
    const gate = { ...CHECKING, revisionsMax: 2, holdMismatch: true } as const;
    const fields = { requested: LARGE, retryBudget: 3 };
    const scene = createRunningScene(gate, { fields }).then(observe(SMALL, 1), finishDone("a", 9_000));
    return scene.then(ruleVerdict(scene, "a", "revise"), dispatch("a", 2), startStep("a", 2));
  }

  it("waits for people all the same", () => {
    const scene = createRevised();
    expect(scene.says(observe(LARGE, 2))).toBe("child.observed");
    scene.then(finishDone("a", 9_000, 2));
    expect(scene.says(ruleVerdict(scene, "a", "pass"))).toBe("result.verified coordination.escalated");
    expect(scene.last("coordination.escalated").payload).toMatchObject({ cause: "mismatch" });
  });

  it("waits for people after any number of revisions", () => {
    const scene = createRevised().then(observe(SMALL, 2), finishDone("a", 9_000, 2));
    scene.then(ruleVerdict(scene, "a", "revise"), dispatch("a", 3), startStep("a", 3));
    scene.then(finishDone("a", 9_000, 3));
    expect(scene.says(ruleVerdict(scene, "a", "pass"))).toBe("result.verified coordination.escalated");
  });

  it("has the difference of each attempt in the log once", () => {
    const scene = createRevised();
    expect(scene.says(observe(SMALL, 2))).toBe("child.observed child.differed");
    expect(filterByType(scene, "child.differed").map(({ payload }) => payload)).toEqual([
      { stepId: "a", attempt: 1, ...DIFFERENCE },
      { stepId: "a", attempt: 2, ...DIFFERENCE },
    ]);
  });

  it("is forgotten with an attempt that begins anew", () => {
    const scene = createRevised().then(failStep("a", 2));
    scene.passes(60_000);
    scene.then(dispatch("a", 3), startStep("a", 3), observe(LARGE, 3), finishDone("a", 9_000, 3));
    expect(scene.says(ruleVerdict(scene, "a", "pass"))).toBe("result.verified step.completed");
  });
});
