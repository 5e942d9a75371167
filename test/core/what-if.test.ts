import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { ReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import { dispatch, failStep, finish, openPlan, planStep, startStep } from "./planned-scene.ts";
import { plan, step } from "./planned-world.ts";
import {
  acknowledge,
  complete,
  createContentRef,
  MAIN,
  nameChild,
  OPEN,
  RUN,
  spawn,
  stepId,
  timeAt,
} from "./scene.ts";
import { replayUnderPolicy } from "./what-if-scene.ts";

const GATE = { threshold: 7_000 };
const opening = { ...OPEN, questions: { answerMs: 600_000 } } as Command;
const reportConfidence = (stepNumber: number, confidence: number): Command => ({
  type: "reportStep",
  stepId: stepId(stepNumber),
  attempt: 1,
  outcome: "completed",
  output: createContentRef("r"),
  confidence,
});

describe("what would have happened", () => {
  it("to whoever saw another result is not certain, nor is what it spawned afterwards", async () => {
    const nested = { gate: GATE, parentStepId: stepId(1), sourceSession: nameChild(1) };
    const whatIf = await replayUnderPolicy({ gates: { confidenceThreshold: 0.8, agents: {} } }, [
      opening,
      spawn("one", { gate: GATE }),
      acknowledge(1),
      spawn("two", nested),
      acknowledge(2),
      spawn("other", { gate: GATE }),
      acknowledge(3),
      reportConfidence(2, 7_500),
      complete(2),
      reportConfidence(1, 9_000),
      complete(1),
      spawn("later", { gate: GATE }),
      acknowledge(4),
      reportConfidence(3, 9_500),
      complete(3),
    ]);
    expect(whatIf.points).toMatchObject([
      { stepId: "step-2", decided: "the result counts", why: "confidence 0.75 is below 0.8" },
      { stepId: "step-4", would: "no longer certain", why: "whoever spawned it had seen another result" },
    ]);
    expect(whatIf.uncertain.map(({ stepId: id }) => id)).toEqual(["step-2", "step-1", "step-4"]);
    // Work that began before, and heard nothing of it, is still evidence.
    expect(whatIf.uncertain.some(({ stepId: id }) => id === "step-3")).toBe(false);
    expect(whatIf.leftOut).toBeGreaterThanOrEqual(4);
  });

  it("to a step that needs a result which people replaced, is another thing where it would have counted", async () => {
    const text = { ...plan([step("a"), step("b", { dependsOn: ["a"] })]), coordinationId: RUN };
    const policy = { gates: { confidenceThreshold: 0.3, agents: {} } };
    const commands: readonly Command[] = [
      openPlan({ steps: 2, questions: { answerMs: 600_000 } }),
      {
        type: "admitPlanSteps",
        steps: [planStep("a", { gate: GATE }), planStep("b", { after: ["a"] })],
      },
      dispatch("a"),
      startStep("a"),
      finish("a", 1, { output: createContentRef("own"), stated: { confidence: 4_000 } }),
      {
        type: "answerEscalation",
        escalationId: "escalation-1",
        answer: "answer",
        text: createContentRef("theirs"),
        through: "cli",
        by: { kind: "operator" },
      },
      dispatch("b"),
      startStep("b"),
      finish("b", 1, { output: createContentRef("b") }),
    ];
    const whatIf = await replayUnderPolicy(policy, commands, text);
    expect(whatIf.points).toMatchObject([
      { stepId: "a", would: "the result counts", why: "confidence 0.4 meets 0.3", certainty: "differs" },
      {
        stepId: "b",
        would: "no longer certain",
        why: "begins with another result of a",
        certainty: "follows",
      },
    ]);
  });

  it("to a step that people withheld: it counts, and what needed it would be begun next", async () => {
    const whatIf = await replayUnderPolicy({ gates: { enabled: false } }, [
      openPlan({ steps: 2, questions: { answerMs: 600_000 } }),
      {
        type: "admitPlanSteps",
        steps: [planStep("a", { gate: GATE }), planStep("b", { after: ["a"] })],
      },
      dispatch("a"),
      startStep("a"),
      finish("a", 1, { output: createContentRef("own"), stated: { confidence: 4_000 } }),
      {
        type: "answerEscalation",
        escalationId: "escalation-1",
        answer: "deny",
        through: "cli",
        by: { kind: "operator" },
      },
      { type: "skipSteps", stepIds: [planStep("b").stepId] },
    ]);
    expect(whatIf.points).toMatchObject([
      { stepId: "a", why: "nothing holds its results" },
      { stepId: "b", decided: "skipped (dependency)", would: "not decided", certainty: "follows" },
    ]);
    expect(whatIf.next).toContainEqual({ act: "runStep", stepId: "b", attempt: 1 });
  });

  it("to a contested write is not known where a merge was never tried", async () => {
    const requester = stepId(2);
    const claims = [
      { stepId: stepId(1), priority: "normal", claimedSequence: 1, expiresAtMs: timeAt(900_000) },
      { stepId: requester, priority: "normal", claimedSequence: 2 },
    ] as const;
    const commands: Command[] = [
      opening,
      spawn("one"),
      acknowledge(1),
      spawn("two"),
      acknowledge(2),
      {
        type: "requestResources",
        stepId: stepId(1),
        requests: [{ resource: "file:/a", token: 1, expiresAtMs: timeAt(900_000) }],
      },
      {
        type: "requestResources",
        stepId: requester,
        requests: [
          {
            resource: "file:/a",
            token: 2,
            expiresAtMs: timeAt(900_000),
            contest: { cause: "overlap", strategy: "owner_wins", from: "default", claims },
          },
        ],
      },
      complete(2),
    ];
    const merged = await replayUnderPolicy({ conflicts: { strategy: "merge_if_safe" } }, commands);
    expect(merged.points).toMatchObject([
      { stepId: "step-2", resource: "file:/a", would: "a three-way merge is tried", certainty: "unknown" },
    ]);
    expect(merged.uncertain).toEqual([]);
    const reviewed = await replayUnderPolicy({ conflicts: { highRisk: ["file:/a"] } }, commands);
    expect(reviewed.points).toMatchObject([
      { stepId: "step-2", decided: "step-1 gets it", would: "people are asked", certainty: "differs" },
    ]);
    expect(reviewed.uncertain.map(({ stepId: id }) => id)).toEqual(["step-2"]);
    expect(reviewed.leftOut).toBe(1);
  });

  it("begins nothing that people would first be asked about", async () => {
    const doubted = { ...planStep("a"), decision: { confidence: 4_000, floor: 5_000 } };
    const commands: Command[] = [
      openPlan({ steps: 1, questions: { answerMs: 600_000 } }),
      { type: "admitPlanSteps", steps: [doubted] },
      {
        type: "answerEscalation",
        escalationId: "escalation-1",
        answer: "approve",
        through: "cli",
        by: { kind: "operator" },
      },
      dispatch("a"),
    ];
    const whatIf = await replayUnderPolicy({ gates: { enabled: false } }, commands);
    expect(whatIf.points).toMatchObject([{ stepId: "a", would: "nothing", certainty: "differs" }]);
    expect(whatIf.uncertain).toEqual([]);
  });

  it("to a step that is sent once is no further attempt, whatever the policy says of retries", async () => {
    const { points } = await replayUnderPolicy({ retry: { budget: 3 }, failurePolicy: { retryBudget: 3 } }, [
      openPlan({ steps: 2 }),
      {
        type: "admitPlanSteps",
        steps: [planStep("once", { deliveryMode: "best_effort" }), planStep("other")],
      },
      dispatch("once"),
      startStep("once"),
      failStep("once"),
      dispatch("other"),
      startStep("other"),
      failStep("other"),
    ]);
    expect(points.map(({ stepId: id }) => id)).toEqual(["other"]);
  });

  const CHECKED: ReplayPolicy = { gates: { agents: { [MAIN]: { checks: ["facts"] } } } };

  it("to a result that is checked first is not known where its confidence was not recorded", async () => {
    const policy = { gates: { ...CHECKED.gates, confidenceThreshold: 0.8 } };
    const { points } = await replayUnderPolicy(policy, [
      opening,
      spawn("one", { gate: GATE }),
      acknowledge(1),
      complete(1),
    ]);
    expect(points).toMatchObject([
      {
        decided: "the result counts",
        would: "it may be held after its checks, too",
        why: "the confidence that it stated is not recorded: none, or at least 0.7",
        certainty: "unknown",
      },
      { decided: "the result counts", would: "the result is held", why: "to be checked first: facts" },
    ]);
  });

  it("to a result that is checked first is known where its confidence was enough, or is recorded", async () => {
    const { points } = await replayUnderPolicy(CHECKED, [
      opening,
      spawn("one", { gate: GATE }),
      acknowledge(1),
      spawn("two", { gate: GATE }),
      acknowledge(2),
      spawn("held", { gate: { ...GATE, checks: ["size"] } }),
      acknowledge(3),
      complete(1),
      reportConfidence(2, 9_000),
      complete(2),
      { ...complete(3), stated: { confidence: GATE.threshold } } as Command,
    ]);
    expect(points.map(({ would, certainty }) => [would, certainty])).toEqual([
      ["the result is held", "differs"],
      ["the result is held", "differs"],
    ]);
  });
});
