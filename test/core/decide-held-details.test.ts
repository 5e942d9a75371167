import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import { createAsk, NOTES, payloadsOf, request } from "./claims-scene.ts";
import {
  answer,
  CHECKING,
  CHECKING_TWICE,
  contentRef,
  createHeldScene,
  createHeldSpawn,
  createRunningScene,
  createSpawnedScene,
  DOUBTING,
  findQuestion,
  finishDone,
  ruleNoVerdict,
  ruleVerdict,
} from "./gates-scene.ts";
import { cancel, dispatch, report } from "./planned-scene.ts";
import { acknowledge, complete, nameChild } from "./scene.ts";

const A = "a" as StepId;
const ISOLATED = { isolate: "worktree" } as const;
const OPEN_GATE: Gate = { threshold: 0 };

describe("what is recorded of a held result", () => {
  it("is its confidence and until when its checks may answer, where there are such", () => {
    expect(createHeldScene(CHECKING).last("result.held").payload).not.toHaveProperty("confidence");
    expect(createHeldScene(DOUBTING, 100).last("result.held").payload).toStrictEqual({
      stepId: "a",
      attempt: 1,
      via: "runner",
      output: contentRef("out"),
      confidence: 100,
    });
    const isolated = createHeldScene(OPEN_GATE, undefined, { fields: ISOLATED });
    expect(isolated.last("result.held").payload).not.toHaveProperty("verifyByMs");
  });

  it("may be asked for without an end, where the gate names none", () => {
    const scene = createHeldScene({ threshold: 0, checks: ["lint"] });
    const { verifyByMs } = scene.last("result.held").payload;
    expect(Number(verifyByMs) - Date.parse(scene.last("result.held").timestamp)).toBe(BOUNDS.durationMsMax);
  });

  it("is followed by the end of its agent's claims: nobody writes any more", () => {
    const scene = createRunningScene(DOUBTING).then(request(A, createAsk(NOTES, 1)));
    expect(scene.says(finishDone("a", 100))).toBe("result.held coordination.escalated claim.released");
    expect(payloadsOf(scene.log, "claim.released")).toEqual([
      { stepId: "a", token: 1, because: "step_ended" },
    ]);
  });
});

describe("the confidence of a result", () => {
  it("is the stated one where the agent's report named none", () => {
    const scene = createRunningScene(DOUBTING).then(report("a"));
    expect(scene.says(finishDone("a", 100))).toBe("result.held coordination.escalated");
    expect(findQuestion(scene).confidence).toMatchObject({ measured: 100 });
  });

  it("is not that of words that an earlier attempt kept back", () => {
    const words: Command = {
      type: "withholdText",
      stepId: "step-1" as StepId,
      attempt: 1,
      text: contentRef("words"),
      confidence: 100,
    };
    const scene = createSpawnedScene(CHECKING).then(words, complete(1));
    scene.then(ruleVerdict(scene, "step-1", "revise"));
    scene.then({ ...dispatch("step-1", 2), targetSession: nameChild(1) } as Command, acknowledge(1, 1, 2));
    scene.then(complete(1, 2));
    expect(scene.last("result.held").payload).not.toHaveProperty("confidence");
    expect(scene.says(ruleVerdict(scene, "step-1", "pass"))).toBe("result.verified step.completed");
  });
});

describe("a verdict", () => {
  it("on a result that no check was to look at is refused", () => {
    const scene = createHeldScene(OPEN_GATE, undefined, { fields: ISOLATED });
    expect(scene.status("a")).toBe("held");
    for (const command of [ruleVerdict(scene, "a", "pass"), ruleNoVerdict(scene, "a")])
      expect(scene.when(command).kind).toBe("refused");
  });

  it("about a step that there is not is refused with the reason", () => {
    const scene = createHeldScene(CHECKING);
    for (const command of [ruleVerdict(scene, "a", "pass"), ruleNoVerdict(scene, "a")])
      expect(scene.when({ ...command, stepId: "nope" } as Command)).toMatchObject({
        code: "UNKNOWN_STEP",
        reason: "there is no step nope",
      });
  });

  it("that fails names all criteria that were not met", () => {
    const scene = createHeldScene(CHECKING);
    scene.then(ruleVerdict(scene, "a", "fail", { criteria: ["grounded", "complete"] }));
    expect(scene.last("step.failed").payload.error.message).toBe("not met: grounded, complete");
  });

  it("that fails is tried again where the step has a retry, and asked about where people are to be asked", () => {
    const retried = createHeldScene(CHECKING, undefined, { fields: { retryBudget: 1 } });
    retried.then(ruleVerdict(retried, "a", "fail"));
    expect(retried.status("a")).toBe("backoff");
    const opened = { policy: { escalationPolicy: "hitl" } } as const;
    const blocked = createHeldScene(CHECKING, undefined, { opened });
    expect(blocked.says(ruleVerdict(blocked, "a", "fail"))).toBe(
      "result.verified step.failed coordination.escalated",
    );
    expect(blocked.status("a")).toBe("blocked");
  });

  it("that sends a result back names as many criteria as an event holds", () => {
    const scene = createHeldScene(CHECKING_TWICE);
    const nameCriteria = (prefix: string): string[] =>
      Array.from({ length: BOUNDS.criteriaMax }, (_, index) => `${prefix}-${index}`);
    scene.then(ruleVerdict(scene, "a", "revise", { check: "lint", criteria: nameCriteria("lint") }));
    scene.then(ruleVerdict(scene, "a", "revise", { check: "test", criteria: nameCriteria("test") }));
    expect(scene.last("result.revised").payload).toEqual({
      stepId: "a",
      attempt: 1,
      revision: 1,
      criteria: nameCriteria("lint"),
    });
  });

  it("that passes lets a result through whose child ran as it was asked", () => {
    const scene = createHeldScene({ ...CHECKING, holdMismatch: true });
    expect(scene.says(ruleVerdict(scene, "a", "pass"))).toBe("result.verified step.completed");
  });

  it("of the agent about itself is none, and the log says which and why", () => {
    const scene = createHeldSpawn(CHECKING);
    expect(scene.says(ruleVerdict(scene, "step-1", "pass", { self: true }))).toBe(
      "verification.failed coordination.escalated",
    );
    expect(scene.last("verification.failed").payload).toEqual({
      stepId: "step-1",
      attempt: 1,
      check: "lint",
      because: "self_not_allowed",
    });
  });
});

describe("a result that is withheld", () => {
  it("is not tried again, however many retries the step has", () => {
    const scene = createHeldScene(DOUBTING, 100, { fields: { retryBudget: 3 } });
    expect(scene.says(answer("deny"))).toBe("escalation.answered escalation.closed step.failed");
    expect(scene.last("step.failed").payload).not.toHaveProperty("retryAtMs");
    expect(scene.status("a")).toBe("failed");
  });
});

describe("a held result whose step is cancelled", () => {
  it("ends without its question, where people have let its work through that is not merged back yet", () => {
    const scene = createHeldScene(DOUBTING, 100, { fields: ISOLATED }).then(answer("approve"));
    expect(scene.plans()).toEqual(["mergeWorktree a 1"]);
    expect(scene.says(cancel("a"))).toBe("coordination.cancel_requested step.failed");
    expect(scene.status("a")).toBe("cancelled");
  });
});
