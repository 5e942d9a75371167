/** Owns: what another policy does not say stays: the rules of single agents, of single resources and of a plan's own steps. */
import { describe, expect, it, test } from "vitest";
import type { AppliedStrategy } from "../../src/agents/coordination/contracts/arbitration.ts";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import {
  parseReplayPolicy,
  type ReplayPolicy,
} from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import type { ArbiterPolicy } from "../../src/agents/coordination/contracts/plan.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import {
  chooseStrategyUnderPolicy,
  mayMatchUnknownHome,
} from "../../src/agents/coordination/replay/strategy-under-policy.ts";
import { applyPolicyToStep } from "../../src/agents/coordination/replay/under-policy.ts";
import { answer, dispatch, finish, openPlan, planStep, startStep, type StepFields } from "./planned-scene.ts";
import { plan, step } from "./planned-world.ts";
import { createContentRef, OPEN, RUN, timeAt } from "./scene.ts";
import { playConflict, replayUnderPolicy } from "./what-if-scene.ts";

const QUESTIONS = { answerMs: 600_000 };

/** A plan of one step, whose result states a confidence, or none. Where nothing holds it, its agent reports the confidence. */
function playStep(gate: Gate | undefined, confidence?: number, fields: StepFields = {}): readonly Command[] {
  const report = { type: "reportStep", attempt: 1, outcome: "completed", output: createContentRef("r") };
  const reported = confidence !== undefined && !gate?.checks && confidence >= (gate?.threshold ?? 0);
  return [
    openPlan({ steps: 1, questions: QUESTIONS }),
    { type: "admitPlanSteps", steps: [planStep("a", { ...fields, ...(gate && { gate }) })] },
    dispatch("a"),
    startStep("a"),
    ...(reported ? [{ ...report, stepId: planStep("a").stepId, confidence } as Command] : []),
    finish("a", 1, {
      output: createContentRef("r"),
      ...(confidence !== undefined && { stated: { confidence } }),
    }),
  ];
}

/** A check rules on the result of that step. */
function rule(verdict: "pass" | "fail" | "revise", check = "done"): Command {
  return {
    type: "recordFinding",
    stepId: planStep("a").stepId,
    attempt: 1,
    target: createEventId(RUN, 9),
    finding: { check, agentId: "pattern", verdict, criteria: ["all of it"] },
  };
}

describe("a policy that asks less of all results", () => {
  test.each<[string, NonNullable<ReplayPolicy["gates"]>, Gate, number | undefined]>([
    ["a threshold", { confidenceThreshold: 0.85 }, { threshold: 9_500 }, 9_000],
    [
      "a stated confidence",
      { requireConfidence: false },
      { threshold: 7_000, requireConfidence: true },
      undefined,
    ],
  ])(
    "does not know whether a result would count that was held, because %s may be the agent's own",
    async (_, gates, gate, confidence) => {
      const unsure = await replayUnderPolicy({ gates }, playStep(gate, confidence));
      expect(unsure.points).toMatchObject([
        { stepId: "a", would: expect.stringContaining("the result counts") as string, certainty: "unknown" },
      ]);
      expect(unsure.points[0]?.why).toContain("whether its agent has rules of its own is not recorded");
      expect(unsure.uncertain).toEqual([]);
      const named = { gates: { ...gates, agents: {} } };
      const text = { ...plan([step("a")]), coordinationId: RUN };
      const certain = await replayUnderPolicy(named, playStep(gate, confidence), text);
      expect(certain.points).toMatchObject([{ stepId: "a", certainty: "differs" }]);
      const withoutText = await replayUnderPolicy(named, playStep(gate, confidence));
      expect(withoutText.points).toMatchObject([{ stepId: "a", certainty: "unknown" }]);
      expect(withoutText.points[0]?.why).toContain(
        "its plan may have asked for more, and its text is not kept",
      );
    },
  );

  it("does not know whether checks that it does not name are those of a plan whose text is not kept", async () => {
    const gate: Gate = { threshold: 7_000, checks: ["done"], verifyMs: 1_000 };
    const gates = { agents: { main: { checks: [] } } };
    const { points, leftOut } = await replayUnderPolicy({ gates }, [...playStep(gate, 9_000), rule("fail")]);
    expect(points).toMatchObject([{ stepId: "a", would: "the result counts", certainty: "unknown" }]);
    expect(leftOut).toBe(0);
  });

  it("does not know it of a result that is to be merged first, and says what it waits for", async () => {
    const commands = playStep({ threshold: 9_500 }, 9_000, { isolate: "worktree" });
    const { points } = await replayUnderPolicy({ gates: { confidenceThreshold: 0.85 } }, commands);
    expect(points).toMatchObject([{ stepId: "a", would: "the result is held", certainty: "unknown" }]);
    expect(points[0]?.why).toMatch(
      /^confidence 0\.9 meets 0\.85; its worktree is merged first; whether its agent/u,
    );
  });

  it("asks people for as long as it says where it does not know whether a result would count", async () => {
    const policy = { gates: { confidenceThreshold: 0.85 }, escalateMs: 500 };
    const commands = [...playStep({ threshold: 9_500 }, 9_000), answer()];
    const { points } = await replayUnderPolicy(policy, commands);
    expect(points.slice(0, 2)).toMatchObject([
      { stepId: "a", would: "the result counts", certainty: "unknown" },
      { stepId: "a", would: expect.stringContaining("the question is closed: expired") as string },
    ]);
  });
});

describe("a policy that asks more of all results", () => {
  const CHECKED: Gate = { threshold: 5_000, checks: ["done"], verifyMs: 1_000 };

  test.each<[string, NonNullable<ReplayPolicy["gates"]>, readonly Command[]]>([
    ["threshold", { confidenceThreshold: 0.7 }, playStep({ threshold: 5_000 }, 6_000)],
    ["demand", { requireConfidence: true }, [...playStep(CHECKED), rule("pass")]],
  ])(
    "does not know whether a result that counted would be held, because its agent may have a %s of its own",
    async (_, gates, commands) => {
      const unsure = await replayUnderPolicy({ gates }, commands);
      expect(unsure.points).toMatchObject([
        { stepId: "a", would: expect.stringContaining("people are asked") as string, certainty: "unknown" },
      ]);
      expect(unsure.points[0]?.why).toContain("whether its agent has rules of its own is not recorded");
      expect(unsure.uncertain).toEqual([]);
      const certain = await replayUnderPolicy({ gates: { ...gates, agents: {} } }, commands);
      expect(new Set(certain.points.map(({ certainty }) => certainty))).toEqual(new Set(["differs"]));
      expect(certain.uncertain).toMatchObject([{ stepId: "a" }]);
    },
  );
});

describe("a policy that asks more of results and revises them less often", () => {
  const gates = { revisionsMax: 0, confidenceThreshold: 0.8 };
  const CHECKED: Gate = { threshold: 7_000, checks: ["done"], revisionsMax: 2, verifyMs: 1_000 };
  // Its deadline is past when the check rules: nobody can be asked.
  const opening = openPlan({ steps: 1, questions: QUESTIONS, plan: { deadlineAtMs: timeAt(4_500) } });
  const playRevision = (confidence: number): readonly Command[] => [
    opening,
    ...playStep(CHECKED, confidence).slice(1),
    rule("revise"),
  ];

  it.each([7_500, 9_000])("knows that a result of confidence %i is not revised", async (confidence) => {
    const { points } = await replayUnderPolicy({ gates }, playRevision(confidence));
    expect(points).toMatchObject([{ stepId: "a", would: "failed", certainty: "differs" }]);
  });

  it("does not know whether a result fails that only the threshold keeps back", async () => {
    const commands = [opening, ...playStep(CHECKED, 7_500).slice(1), rule("pass")];
    const { points } = await replayUnderPolicy({ gates }, commands);
    expect(points).toMatchObject([{ stepId: "a", would: "failed", certainty: "unknown" }]);
  });
});

describe("a policy that says which agents have rules", () => {
  const gate: Gate = { threshold: 7_000, checks: ["done", "planned", "plugin:a:b"], verifyMs: 1_000 };
  const check = { kind: "pattern", pattern: "done" };
  const text = { ...plan([step("a", { verify: { checks: { planned: check } } })]), coordinationId: RUN };
  const pass = ["planned", "plugin:a:b"].map((key) => rule("pass", key));

  test.each<object>([{}, { other: { checks: ["done"] } }, { main: { requireConfidence: false } }])(
    "takes checks away that no rule names, but for those of the plan and of plugins: %j",
    async (agents) => {
      const policy = { gates: { agents } } as ReplayPolicy;
      const { points } = await replayUnderPolicy(policy, [...playStep(gate, 9_000), ...pass], text);
      expect(points.at(-1)).toMatchObject({ stepId: "a", would: "the result counts", certainty: "differs" });
    },
  );

  it.each([0, 5])("revises a result as often as the step's plan says, %i times", (revisionsMax) => {
    const policy = parseReplayPolicy({
      gates: { agents: { main: { checks: ["done"] } }, verifiers: { done: check } },
    });
    const revised = plan([step("a", { verify: { revisionsMax } })]) as never;
    const admitted = planStep("a", { gate: { threshold: 7_000 } });
    const opening = openPlan({ steps: 1 }) as never;
    expect(applyPolicyToStep(admitted, opening, { policy, plan: revised }).gate).toMatchObject({
      checks: ["done"],
      revisionsMax,
    });
  });

  it("keeps all checks where it says nothing of agents", async () => {
    const policy = { gates: { verifyMs: 2_000 } };
    const { points } = await replayUnderPolicy(policy, [...playStep(gate, 9_000), ...pass], text);
    expect(points.filter(({ would }) => would.includes("counts"))).toEqual([]);
  });
});

describe("a policy that says another strategy", () => {
  const under = { policy: { conflicts: { strategy: "priority_wins" as const } } };
  const highRisk = { strategy: "manual_review", from: "high_risk" } as const;
  const exception = { strategy: "merge_if_safe", from: "operator" } as const;

  it("keeps what is high-risk, and exceptions, where it has no list of its own", () => {
    expect(chooseStrategyUnderPolicy("file:/infra/a", highRisk, under)).toEqual(highRisk);
    expect(chooseStrategyUnderPolicy("file:/a", exception, under)).toEqual(exception);
    const exceptions = { overrides: [{ resource: "file:**", strategy: "owner_wins" as const }] };
    const withExceptions = { policy: { conflicts: { ...under.policy.conflicts, ...exceptions } } };
    expect(chooseStrategyUnderPolicy("file:/infra/a", highRisk, withExceptions)).toEqual(highRisk);
  });

  it("has its own lists in place of the recorded ones", () => {
    const conflicts = { ...under.policy.conflicts, highRisk: ["file:/b"], overrides: [] };
    expect(chooseStrategyUnderPolicy("file:/a", highRisk, { policy: { conflicts } })).toMatchObject({
      strategy: "priority_wins",
    });
    expect(chooseStrategyUnderPolicy("file:/a", exception, { policy: { conflicts } })).toMatchObject({
      strategy: "priority_wins",
    });
    expect(chooseStrategyUnderPolicy("file:/b", exception, { policy: { conflicts } })).toEqual(highRisk);
  });
});

describe("a policy with patterns below a home folder", () => {
  const path = "/home/anna/.ssh/config";
  const highRisk: AppliedStrategy = { strategy: "manual_review", from: "high_risk" };
  const exception: AppliedStrategy = { strategy: "owner_wins", from: "operator" };
  const OWNER_WINS: ArbiterPolicy = { strategy: "owner_wins", overrides: [] };

  test.each<[string, ArbiterPolicy, AppliedStrategy, string, "unknown" | "differs"]>([
    ["does not know", { ...OWNER_WINS, highRisk: ["~/.ssh/**"] }, highRisk, `file:${path}`, "unknown"],
    ["knows", { ...OWNER_WINS, highRisk: ["/etc/**"] }, highRisk, `file:${path}`, "differs"],
    ["knows", { ...OWNER_WINS, highRisk: ["~/.ssh/**"] }, highRisk, "queue:mail", "differs"],
    [
      "does not know",
      { strategy: "priority_wins", overrides: [{ resource: "file:~/**", strategy: "owner_wins" }] },
      exception,
      `file:${path}`,
      "unknown",
    ],
    [
      "knows",
      { strategy: "manual_review", overrides: [{ resource: "/etc/**", strategy: "owner_wins" }] },
      exception,
      `file:${path}`,
      "differs",
    ],
  ])(
    "%s under %j whether what was %j holds no more for %s",
    async (_, conflicts, ...[applied, resource, certainty]) => {
      const { points, uncertain } = await replayUnderPolicy({ conflicts }, playConflict(resource, applied));
      expect(points).toMatchObject([{ resource, certainty }]);
      expect(uncertain.length > 0).toBe(certainty === "differs");
    },
  );

  const byDefault: AppliedStrategy = { strategy: "owner_wins", from: "default" };
  const PEOPLE = "manual_review" as const;

  test.each<[ArbiterPolicy, string]>([
    [{ highRisk: ["~/.ssh/**"] }, "manual_review (high_risk) in place of owner_wins (default)"],
    [{ overrides: [{ resource: "file:~", strategy: PEOPLE }] }, "manual_review (operator) in place of"],
    [{ strategy: "priority_wins", highRisk: ["~/.ssh"] }, "manual_review (high_risk) in place of"],
  ])(
    "is not sure under %j of a file that they may fit, and that no pattern ruled on",
    async (conflicts, why) => {
      const commands = playConflict(`file:${path}`, byDefault);
      const { points } = await replayUnderPolicy({ conflicts }, commands);
      expect(points).toMatchObject([{ certainty: "unknown", would: "manual_review decides" }]);
      expect(points[0]?.why).toContain(why);
      expect(points[0]?.why).toContain("which folder `~` of a pattern stands for is not recorded");
    },
  );

  test.each<[ArbiterPolicy, string]>([
    [{ highRisk: ["~/.aws/**"] }, `file:${path}`],
    [{ overrides: [{ resource: "~/.ssh", strategy: "owner_wins" }], highRisk: ["~x/**"] }, `file:${path}`],
    [{ highRisk: ["~/**"] }, "queue:mail"],
  ])("is sure under %j of %s, which they fit in no folder or leave as it is", async (conflicts, resource) => {
    const policy: ReplayPolicy = { conflicts: { overrides: [], ...conflicts } };
    const { points } = await replayUnderPolicy(policy, playConflict(resource, byDefault));
    expect(points.filter(({ certainty }) => certainty === "unknown")).toEqual([]);
  });

  it("knows nothing of those of a plan either", () => {
    const conflictPolicy = { highRisk: ["~/.ssh/**"] };
    const under = { policy: {}, plan: { ...plan([step("a")]), conflictPolicy } as never };
    const ruled = { strategy: "owner_wins", from: "default" } as const;
    expect(mayMatchUnknownHome(`file:${path}`, { recorded: highRisk, ruled }, under)).toBe(true);
    const overrides = [{ resource: "~/.ssh/**", strategy: "owner_wins" }];
    const withException = {
      policy: {},
      plan: { ...plan([step("a")]), conflictPolicy: { overrides } } as never,
    };
    expect(mayMatchUnknownHome(`file:${path}`, { recorded: exception, ruled }, withException)).toBe(true);
    const byException = { strategy: "priority_wins", from: "operator" } as const;
    const rulings = { recorded: highRisk, ruled: byException };
    expect(mayMatchUnknownHome(`file:${path}`, rulings, withException)).toBe(false);
    const reviewed = { ...withException, policy: { conflicts: { strategy: "manual_review" as const } } };
    expect(mayMatchUnknownHome(`file:${path}`, { recorded: exception, ruled }, reviewed)).toBe(false);
  });
});

describe("a policy that switches gates on", () => {
  const ON = { gates: { enabled: true } } as const;
  const check = { kind: "pattern", pattern: "done" };

  it("holds its results as the configuration says where the policy does not", async () => {
    const policy: ReplayPolicy = {
      ...ON,
      configured: { strategy: "owner_wins", overrides: [], gates: { confidenceThreshold: 0.95 } },
    };
    const { points } = await replayUnderPolicy(policy, playStep(undefined, 9_000));
    expect(points).toMatchObject([{ stepId: "a", why: "confidence 0.9 is below 0.95" }]);
  });

  test.each([
    ["its checks", { checks: { done: check } }, "to be checked first: done"],
    ["a higher threshold", { confidenceThreshold: 0.95 }, "confidence 0.9 is below 0.95"],
  ])("holds the result of a step whose plan asks for %s", async (_, verify, why) => {
    const text = { ...plan([step("a", { verify })]), coordinationId: RUN };
    const { points, plan: kept } = await replayUnderPolicy(ON, playStep(undefined, 9_000), text);
    expect(kept).toBe("kept");
    expect(points).toMatchObject([{ stepId: "a", decided: "the result counts", why }]);
  });

  it("demands the confidence that the plan demands", async () => {
    const text = { ...plan([step("a", { verify: { requireConfidence: true } })]), coordinationId: RUN };
    const { points } = await replayUnderPolicy(ON, playStep(undefined), text);
    expect(points[0]?.why).toContain("one is demanded");
  });
});

describe("a policy with checks that the log does not hold", () => {
  const OPENED: readonly Command[] = [{ ...OPEN, questions: QUESTIONS } as Command];
  const PATTERN = { kind: "pattern", pattern: "done" } as const;
  const CHECKED: Gate = {
    threshold: 7_000,
    checks: ["done"],
    criticThreshold: 7_000,
    revisionsMax: 2,
    verifyMs: 1_000,
  };

  test.each<[ReplayPolicy, readonly Command[], readonly string[]]>([
    [{ gates: { critic: "judge" as never } }, playStep(CHECKED, 9_000), ["gates.critic"]],
    [{ gates: { critic: "judge" as never } }, playStep({ threshold: 7_000 }, 9_000), []],
    [
      { gates: { verifiers: { done: PATTERN, other: PATTERN } } },
      playStep(CHECKED, 9_000),
      ["gates.verifiers.done"],
    ],
    [{ gates: { decisionFloor: 0.5 } }, OPENED, []],
    [
      { gates: { decisionFloor: 0.8 } },
      OPENED,
      ["gates.decisionFloor for doubts of plugins that the recorded floor let pass"],
    ],
    [{ gates: { confidenceThreshold: 0.8 } }, playStep(CHECKED, 9_000), []],
  ])("says of %j that it was not tested", async (policy, commands, untested) => {
    expect((await replayUnderPolicy(policy, commands)).untested).toEqual(untested);
  });
});
