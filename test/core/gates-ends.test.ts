import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactDraft } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import { decide } from "../../src/agents/coordination/dispatch/decide.ts";
import { planDispatch } from "../../src/agents/coordination/dispatch/effects/next-effects.ts";
import { recordFacts } from "../../src/agents/coordination/dispatch/record.ts";
import {
  answer,
  CHECKING,
  contentRef,
  finishDone,
  DOUBTING,
  createHeldScene,
  createHeldSpawn,
  findQuestion,
  createRunningScene,
  createSpawnedScene,
  listTypesFrom,
  ruleNoVerdict,
  ruleVerdict,
} from "./gates-scene.ts";
import {
  cancel,
  dispatch,
  expire,
  failStep,
  planStep,
  planScene,
  describeDecision,
  nameSessionOfAttempt,
  skip,
  startStep,
  type PlanScene,
} from "./planned-scene.ts";
import { acknowledge, timeAt, nameChild, complete, OPEN, spawn } from "./scene.ts";

const planStepAfter = (name: string) => planStep(name, { after: ["a"] });
const COMPLETED = "step.completed";
const A = "a" as StepId;
/** A plan whose first step has spawned one of its own, `@step-2`. */
const openInPlan = (gate: Gate) =>
  createRunningScene({ threshold: 0 }).then(
    spawn("x", { gate, parentStepId: "a" as never, sourceSession: nameSessionOfAttempt("a") }),
    { ...acknowledge(2, "x"), stepId: "@step-2" as never } as Command,
  );

describe("a spawn of a model", () => {
  it("is continued by us in the same session when its result is to be revised", () => {
    const scene = createHeldSpawn(CHECKING);
    expect(scene.plans()).toEqual(["verifyResult step-1 1"]);
    scene.then(ruleVerdict(scene, "step-1", "revise"));
    expect(scene.plans()).toEqual(["runStep step-1 2"]);
    const again: Command = { ...dispatch("step-1", 2), targetSession: nameChild(1) } as Command;
    scene.then(again, acknowledge(1, 1, 2));
    expect(scene.says(again)).toBe("replay");
    expect(scene.step("step-1").phase).toMatchObject({
      status: "running",
      attempt: 2,
      childSessionKey: nameChild(1),
    });
    // Its turns are ours to follow: the host is not asked.
    expect(scene.plans(10 * 60_000)).toEqual(["runStep step-1 2"]);
    scene.then(complete(1, 2));
    scene.then(ruleVerdict(scene, "step-1", "pass"));
    expect(scene.last(COMPLETED).payload).toMatchObject({ attempt: 2, released: "verified" });
  });

  it("is not begun by us in any other case", () => {
    const scene = createSpawnedScene(CHECKING);
    expect(scene.says({ ...dispatch("step-1", 2), targetSession: nameChild(1) } as Command)).toBe(
      "NOT_READY",
    );
    scene.then(complete(1));
    expect(scene.says({ ...dispatch("step-1", 2), targetSession: nameChild(1) } as Command)).toBe(
      "NOT_READY",
    );
    scene.then(ruleVerdict(scene, "step-1", "fail"));
    expect(scene.says({ ...dispatch("step-1", 2), targetSession: nameChild(1) } as Command)).toBe(
      "NOT_READY",
    );
    expect(scene.status("step-1")).toBe("failed");
  });

  it("that was kept back is told of once, whatever became of it", () => {
    for (const ruling of ["pass", "fail"] as const) {
      const scene = createSpawnedScene(CHECKING);
      const text = { stepId: "step-1" as never, attempt: 1, text: contentRef("words") };
      scene.then({ type: "withholdText", ...text }, complete(1));
      expect(scene.plans()).toEqual(["verifyResult step-1 1"]);
      scene.then(ruleVerdict(scene, "step-1", ruling));
      expect(scene.plans()).toEqual(["tellSession"]);
      const tellingId = "result:step-1:1";
      expect(scene.effects()).toMatchObject([{ tellingId }]);
      expect(scene.says({ type: "settleCoordination" })).toBe("STEPS_OPEN");
      scene.then({ type: "recordTelling", tellingId, delivery: "delivered" });
      expect(scene.says({ type: "recordTelling", tellingId, delivery: "unknown" })).toBe("replay");
      expect(scene.plans(60_000)).toEqual(["endCoordination"]);
    }
  });

  it("that nothing was kept back of is not told of", () => {
    const scene = createHeldSpawn(CHECKING);
    scene.then(ruleVerdict(scene, "step-1", "pass"));
    expect(scene.plans(60_000)).toEqual(["endCoordination"]);
  });

  it("keeps the newest text of an attempt, each once, and so many at the most", () => {
    const scene = createSpawnedScene(CHECKING);
    const withholdStepText = (name: string): Command => ({
      type: "withholdText",
      stepId: "step-1" as never,
      attempt: 1,
      text: { ...contentRef("w"), sha256: name.padStart(64, "0") },
    });
    scene.then(withholdStepText("1"));
    expect(scene.says(withholdStepText("1"))).toBe("replay");
    for (let number = 2; number <= 64; number += 1) scene.then(withholdStepText(String(number)));
    expect(scene.says(withholdStepText("64"))).toBe("replay");
    expect(scene.says(withholdStepText("65"))).toBe("TOO_MANY_TEXTS");
    expect(scene.says({ ...withholdStepText("66"), attempt: 2 } as Command)).toBe("STALE_ATTEMPT");
    scene.then(complete(1));
    expect(scene.says(withholdStepText("67"))).toBe("STEP_ENDED");
  });
});

describe("cancelling while a result is held", () => {
  it("ends the step, and the question with it: nothing is let through any more", () => {
    const scene = createHeldScene(DOUBTING, 100).then(cancel("a"));
    expect(listTypesFrom(scene, "coordination.cancel_requested")).toEqual([
      ...["coordination.cancel_requested", "escalation.closed", "interrupt.resolved"],
      ...["step.failed", "core.workflowChain.event"],
    ]);
    expect(scene.status("a")).toBe("cancelled");
    expect(findQuestion(scene).closed).toMatchObject({ resolution: "cancelled" });
    expect(scene.says(answer("approve"))).toBe("QUESTION_CLOSED escalation.answered");
    expect(scene.status("a")).toBe("cancelled");
  });

  it("of a whole plan ends what is held with what waits", () => {
    const scene = createHeldScene(DOUBTING, 100, { others: [planStepAfter("b")] }).then(cancel());
    expect(scene.plans()).toEqual(["skipSteps a,b"]);
    scene.then(skip("a", "b"));
    expect([scene.status("a"), scene.status("b")]).toEqual(["cancelled", "skipped"]);
    expect(findQuestion(scene).closed).toMatchObject({ resolution: "cancelled" });
  });

  it("by another step's failure ends it too, where the plan fails fast", () => {
    const others = [planStep("b")];
    const opened = { policy: { timeoutPolicy: "fail_fast" } } as const;
    const scene = createHeldScene(CHECKING, undefined, { others, opened }).then(
      dispatch("b"),
      startStep("b"),
      failStep("b"),
    );
    expect(scene.plans()).toContain("skipSteps a");
    scene.then(skip("a"));
    expect(scene.status("a")).toBe("cancelled");
  });

  it("of observed spawns ends those that are held or go back to their agents, in one append", () => {
    const doubtful = createHeldSpawn(DOUBTING, 100).then(cancel());
    expect(doubtful.status("step-1")).toBe("cancelled");
    const revised = createHeldSpawn(CHECKING);
    revised.then(ruleVerdict(revised, "step-1", "revise"), cancel());
    expect(revised.status("step-1")).toBe("cancelled");
    for (const scene of [doubtful, revised]) {
      expect(scene.plans(60_000)).toEqual(["endCoordination"]);
      scene.then({ type: "settleCoordination" });
      expect(scene.last("coordination.terminal").payload.status).toBe("cancelled");
    }
  });

  it("of a plan ends the spawns of its agents that are held, without waiting for people", () => {
    const scene = openInPlan(DOUBTING);
    scene.then({ ...complete(2), stepId: "@step-2", stated: { confidence: 100 } } as Command, cancel());
    scene.then(failStep("a", 1, "child_cancelled"));
    for (let turn = 0; turn < 3; turn += 1)
      for (const effect of scene.effects())
        if (effect.kind === "skipSteps") scene.when(skip(...effect.stepIds));
    expect(scene.status("@step-2")).toBe("cancelled");
  });

  it("of a plan ends the spawns of its agents that go back to them, and plans nothing that is refused", () => {
    const scene = openInPlan(CHECKING);
    scene.then({ ...complete(2), stepId: "@step-2" } as Command);
    scene.then(ruleVerdict(scene, "@step-2", "revise"), cancel());
    expect(scene.plans()).not.toContain("runStep @step-2 2");
  });

  it("at the plan's deadline leaves the ruling to the checks and the question, which ends with the plan", () => {
    const opened = { plan: { deadlineAtMs: timeAt(100_000) } };
    const scene = createHeldScene(DOUBTING, 100, { opened });
    expect(findQuestion(scene).deadlineAtMs).toBe(timeAt(100_000));
    expect(scene.plans(100_000)).toEqual(["expireQuestion"]);
    expect(scene.says(expire(), 100_000)).toBe("escalation.closed step.failed");
    expect(scene.last("step.failed").payload.error.code).toBe("withheld");
  });
});

describe("a result that people would have to rule on after the plan's deadline", () => {
  const opened = { plan: { deadlineAtMs: timeAt(100_000) } };
  const TOO_LATE = { code: "withheld", message: "the plan's deadline passed before people could be asked" };

  it("is withheld at once, where the check has no verdict, and no question is said to have expired", () => {
    const scene = createHeldScene(CHECKING, undefined, { opened });
    expect(scene.says(ruleNoVerdict(scene, "a"), 100_000)).toBe("verification.failed step.failed");
    expect(scene.last("step.failed").payload).toMatchObject({ error: TOO_LATE, via: "gate" });
    expect(scene.open.openQuestions.size).toBe(0);
    expect(scene.open.plan.hasExpired).toBe(false);
  });

  it("is withheld at once where its agent is not sure of it", () => {
    const scene = createRunningScene(DOUBTING, { opened });
    scene.passes(100_000);
    expect(scene.says(finishDone("a", 100))).toBe("result.held step.failed");
    expect(scene.last("step.failed").payload).toMatchObject({ error: TOO_LATE });
  });

  it("is asked about a moment before", () => {
    const scene = createHeldScene(CHECKING, undefined, { opened });
    expect(scene.says(ruleNoVerdict(scene, "a"), 99_999)).toBe("verification.failed coordination.escalated");
  });
});

describe("a result that comes when its step is to be stopped", () => {
  const reviseStep = (scene: PlanScene, name: string) => scene.when(ruleVerdict(scene, name, "revise"));

  it("ends it as cancelled: no check is asked, and nothing of it begins again", () => {
    const scene = createRunningScene(CHECKING, { others: [planStepAfter("b")] }).then(
      cancel("a"),
      finishDone("a"),
    );
    expect(listTypesFrom(scene, "result.held")).toEqual([
      ...["result.held", "agent.decided", "step.failed", "core.workflowChain.event"],
    ]);
    expect(scene.last("step.failed").payload).toMatchObject({ cancelled: true, via: "gate" });
    expect(scene.status("a")).toBe("cancelled");
    expect(scene.plans()).toEqual(["skipSteps b"]);
    expect(reviseStep(scene, "a").kind).toBe("refused");
    expect(scene.status("a")).toBe("cancelled");
  });

  it("asks no people about it, however unsure its agent is", () => {
    const scene = createRunningScene(DOUBTING).then(cancel("a"), finishDone("a", 100));
    expect(scene.status("a")).toBe("cancelled");
    expect(scene.open.openQuestions.size).toBe(0);
    expect(scene.plans()).toEqual(["endCoordination"]);
  });

  it.each([
    ["the spawn", cancel("step-1")],
    ["everything", cancel()],
  ])("ends a model's own spawn too, where %s was cancelled, and lets the coordination end", (_, stop) => {
    const scene = createSpawnedScene(CHECKING).then(stop, complete(1));
    reviseStep(scene, "step-1");
    expect(scene.status("step-1")).toBe("cancelled");
    expect(scene.plans(60_000)).toEqual(["endCoordination"]);
    scene.then({ type: "settleCoordination" });
    expect(scene.last("coordination.terminal").payload.status).toBe("cancelled");
  });

  it("ends what an agent of the plan spawned", () => {
    const scene = openInPlan(CHECKING).then(cancel("@step-2"));
    scene.then({ ...complete(2), stepId: "@step-2" } as Command);
    reviseStep(scene, "@step-2");
    expect(scene.status("@step-2")).toBe("cancelled");
    expect(scene.plans()).toEqual([]);
  });

  it.each(["result.revised", "result.held"] as const)(
    "is ended by the plan where the log goes on after the request, up to %s",
    (newest) => {
      const facts: FactDraft[] = [
        { type: "coordination.cancel_requested", payload: { stepId: A, by: "operator" } },
        { type: "result.held", payload: { stepId: A, attempt: 1, via: "runner" } },
        { type: "result.revised", payload: { stepId: A, attempt: 1, revision: 1, criteria: [] } },
      ];
      const until = facts.findIndex(({ type }) => type === newest) + 1;
      const scene = createRunningScene(CHECKING, { others: [planStepAfter("b")] });
      const recorded = recordFacts(scene.state, facts.slice(0, until), timeAt(scene.nowMs));
      const planned = planDispatch(recorded.state, timeAt(scene.nowMs));
      expect(planned).toContainEqual(expect.objectContaining({ kind: "skipSteps", stepIds: ["a"] }));
      expect(planned.filter(({ kind }) => kind === "runStep")).toEqual([]);
      expect(describeDecision(decide(recorded.state, skip("a"), timeAt(scene.nowMs)))).toMatch(
        /^step\.(skipped|failed)$/u,
      );
    },
  );

  it("counts where its gate lets it through as it is: its agent was faster", () => {
    const scene = createRunningScene(DOUBTING).then(cancel("a"), finishDone("a", 10_000));
    expect(scene.status("a")).toBe("completed");
  });
});

describe("a result that is held twice", () => {
  it("is the same news: nothing is recorded of it", () => {
    const planned = createHeldScene(CHECKING);
    expect(planned.says(finishDone("a"))).toBe("replay");
    expect(createHeldSpawn(CHECKING).says(complete(1))).toBe("replay");
  });

  it("holds nothing of a log before gates", () => {
    const scene = planScene(OPEN, spawn("a"), acknowledge(1));
    expect(scene.says({ ...complete(1), stated: { confidence: 0 } } as Command)).toBe(COMPLETED);
  });
});
