/** Owns: a rule that the log does not hold is not guessed where another policy takes away the rule that decided then. */
import { describe, expect, it, test } from "vitest";
import type { AppliedStrategy } from "../../src/agents/coordination/contracts/arbitration.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { ReplayPolicy } from "../../src/agents/coordination/contracts/config/replay-policy.ts";
import type { ArbiterPolicy } from "../../src/agents/coordination/contracts/plan.ts";
import { dispatch, openPlan, planStep, startStep } from "./planned-scene.ts";
import { plan, step } from "./planned-world.ts";
import { RUN } from "./scene.ts";
import { playConflict, type Contenders, replayUnderPolicy } from "./what-if-scene.ts";

const FILE = "file:/repo/a";
const EXCEPTION: AppliedStrategy = { strategy: "manual_review", from: "operator" };
/** The operator's strategy for all other resources, which no plan loosens. */
const DEFAULT: AppliedStrategy = { strategy: "manual_review", from: "default" };
const HIGH_RISK: AppliedStrategy = { strategy: "manual_review", from: "high_risk" };
const HOME_EXCEPTION = { resource: "~/repo/**", strategy: "priority_wins" } as const;
const OF_PLAN: Contenders = {
  commands: [
    openPlan({ steps: 2, questions: { answerMs: 600_000 } }),
    { type: "admitPlanSteps", steps: [planStep("a"), planStep("b")] },
    ...["a", "b"].flatMap((name) => [dispatch(name), startStep(name)]),
  ],
  stepIds: [planStep("a").stepId, planStep("b").stepId],
};
const DEFAULT_UNKNOWN = "the operator's strategy for all other resources is not recorded";
const EXCEPTION_UNKNOWN = "whether the operator had an exception for it is not recorded";
const TEXT_DELETED = "its plan may have a rule for it, and its text is not kept any more";

const describePlan = (conflictPolicy: ArbiterPolicy): object => ({
  ...plan([step("a"), step("b")]),
  coordinationId: RUN,
  conflictPolicy,
});

describe("a policy that takes away the list that decided, and names no strategy", () => {
  test.each<[AppliedStrategy, ArbiterPolicy]>([
    [EXCEPTION, { overrides: [] }],
    [EXCEPTION, { overrides: [{ resource: "~/notes/**", strategy: "owner_wins" }] }],
    [HIGH_RISK, { highRisk: [] }],
  ])("does not know what decides in place of %j under %j", async (applied, conflicts) => {
    const { points, uncertain } = await replayUnderPolicy({ conflicts }, playConflict(FILE, applied));
    expect(points).toMatchObject([
      { resource: FILE, would: "the operator's strategy for all other resources decides" },
    ]);
    expect(points[0]).toMatchObject({
      certainty: "unknown",
      why: expect.stringContaining(DEFAULT_UNKNOWN) as string,
    });
    expect(uncertain).toEqual([]);
  });

  it("names the plan's rule, which counts unless the operator's strategy, which is not known, is manual_review", async () => {
    const commands = playConflict(FILE, HIGH_RISK, OF_PLAN);
    const text = describePlan({ strategy: "priority_wins" });
    const { points } = await replayUnderPolicy({ conflicts: { highRisk: [] } }, commands, text);
    expect(points).toMatchObject([
      { would: "priority_wins decides", why: expect.stringContaining(DEFAULT_UNKNOWN) as string },
    ]);
    expect(points[0]).toMatchObject({ certainty: "unknown" });
  });

  test.each<[string, AppliedStrategy, ArbiterPolicy | undefined, string]>([
    ["the configuration's strategy", HIGH_RISK, undefined, "owner_wins (default)"],
    ["the plan's strategy", HIGH_RISK, { strategy: "owner_wins" }, "owner_wins (plan)"],
    [
      "the plan's exception",
      EXCEPTION,
      { overrides: [{ resource: FILE, strategy: "owner_wins" }] },
      "(plan)",
    ],
  ])("knows that %s decides where the configuration's is told", async (_, applied, conflictPolicy, why) => {
    const policy: ReplayPolicy = {
      conflicts: { highRisk: [], overrides: [] },
      configured: { strategy: "owner_wins", overrides: [] },
    };
    const text = conflictPolicy && describePlan(conflictPolicy);
    const commands = playConflict(FILE, applied, text && OF_PLAN);
    const { points } = await replayUnderPolicy(policy, commands, text);
    expect(points[0]).toMatchObject({ certainty: "differs", why: expect.stringContaining(why) as string });
  });
});

describe("a policy that takes away what is high-risk, and names no exceptions", () => {
  const PRIORITY = { resource: "/repo/**", strategy: "priority_wins" } as const;

  test.each(["owner_wins", "manual_review"] as const)("is not sure that %s decides", async (strategy) => {
    const conflicts = { highRisk: [], strategy };
    const { points, uncertain } = await replayUnderPolicy({ conflicts }, playConflict(FILE, HIGH_RISK));
    expect(points).toMatchObject([{ would: `${strategy} decides`, certainty: "unknown" }]);
    expect(points[0]?.why).toContain(EXCEPTION_UNKNOWN);
    expect(uncertain).toEqual([]);
  });

  it("knows that an exception of the configuration decides", async () => {
    const policy: ReplayPolicy = {
      conflicts: { highRisk: [], strategy: "owner_wins" },
      configured: { strategy: "owner_wins", overrides: [PRIORITY] },
    };
    const { points } = await replayUnderPolicy(policy, playConflict(FILE, HIGH_RISK));
    expect(points).toMatchObject([
      { certainty: "differs", why: expect.stringContaining("priority_wins (operator)") as string },
    ]);
  });

  it("has its own exceptions in place of the configuration's", async () => {
    const policy: ReplayPolicy = {
      conflicts: { highRisk: [], overrides: [] },
      configured: { strategy: "owner_wins", overrides: [PRIORITY] },
    };
    const { points } = await replayUnderPolicy(policy, playConflict(FILE, HIGH_RISK));
    expect(points[0]?.why).toContain("owner_wins (default)");
  });

  it("leaves a file that no exception ruled on then without one", async () => {
    const policy: ReplayPolicy = {
      conflicts: { highRisk: [] },
      configured: { strategy: "owner_wins", overrides: [PRIORITY] },
    };
    const commands = playConflict(FILE, { strategy: "owner_wins", from: "default" });
    expect((await replayUnderPolicy(policy, commands)).points).toEqual([]);
  });

  test.each<[string, ReplayPolicy]>([
    ["the configuration", { configured: { strategy: "owner_wins", overrides: [HOME_EXCEPTION] } }],
    ["the policy", { conflicts: { strategy: "owner_wins", overrides: [HOME_EXCEPTION] } }],
  ])("is not sure where an exception of %s is for a home folder", async (_, { conflicts, ...policy }) => {
    const under: ReplayPolicy = { ...policy, conflicts: { ...conflicts, highRisk: [] } };
    const { points } = await replayUnderPolicy(under, playConflict(FILE, HIGH_RISK));
    expect(points).toMatchObject([{ would: "owner_wins decides", certainty: "unknown" }]);
    expect(points[0]?.why).toContain("which folder `~` of a pattern stands for is not recorded");
  });
});

describe("a plan whose text is not kept", () => {
  const playPlan = (applied: AppliedStrategy): readonly Command[] => playConflict(FILE, applied, OF_PLAN);

  test.each<[AppliedStrategy, ArbiterPolicy]>([
    [HIGH_RISK, { highRisk: [], strategy: "owner_wins" }],
    [HIGH_RISK, { highRisk: [], overrides: [{ resource: "/repo/**", strategy: "owner_wins" }] }],
    [EXCEPTION, { overrides: [], strategy: "owner_wins" }],
    [DEFAULT, { strategy: "owner_wins" }],
  ])("may have a rule of its own in place of %j under %j", async (applied, conflicts) => {
    const { points } = await replayUnderPolicy({ conflicts }, playPlan(applied));
    expect(points).toMatchObject([{ would: "owner_wins decides", certainty: "unknown" }]);
    expect(points[0]?.why).toContain(TEXT_DELETED);
  });

  it.each([EXCEPTION, DEFAULT])(
    "has none in place of %j where the policy makes an exception",
    async (applied) => {
      const overrides = [{ resource: "/repo/**", strategy: "owner_wins" as const }];
      const { points } = await replayUnderPolicy({ conflicts: { overrides } }, playPlan(applied));
      expect(points[0]).toMatchObject({ certainty: "differs" });
    },
  );

  it("has none in place of another strategy for all resources, which its own would have come before", async () => {
    const conflicts: ArbiterPolicy = { strategy: "owner_wins" };
    const applied: AppliedStrategy = { strategy: "priority_wins", from: "default" };
    const { points } = await replayUnderPolicy({ conflicts }, playPlan(applied));
    expect(points.filter(({ certainty }) => certainty === "unknown")).toEqual([]);
  });
});
