import { describe, expect, it } from "vitest";
import { arbitrate } from "../../src/agents/coordination/arbitration/arbitrate.ts";
import {
  pluginRulingSchema,
  type PluginRuling,
} from "../../src/agents/coordination/contracts/arbitration.ts";
import {
  conflictStrategySchema,
  type ConflictStrategy,
} from "../../src/agents/coordination/contracts/plan.ts";
import { draftResolutionByRules } from "../../src/agents/coordination/dispatch/conflict-facts.ts";
import {
  createAsk,
  openAtWork,
  createContest,
  createContestant,
  createHolder,
  NOTES,
  openOf,
  payloadsOf,
  request,
} from "./claims-scene.ts";
import { stepId } from "./scene.ts";

const ME = createContestant(1, 9);
const CLAIMS = [createHolder(3, 2), createHolder(2, 1), ME];
const FOR_ME: PluginRuling = { plugin: "plugin:guard", award: "requester" };
const FOR_THEM: PluginRuling = { plugin: "plugin:guard", award: "holder" };

const rule = (hook: PluginRuling, strategy: ConflictStrategy = "owner_wins") =>
  arbitrate({ requester: stepId(1), claims: CLAIMS, strategy, hook });

describe("what a plugin ruled", () => {
  it.each(conflictStrategySchema.options)("takes the place of %s", (strategy) => {
    expect(rule(FOR_ME, strategy)).toMatchObject({
      kind: "granted",
      winner: ME,
      rule: "hook",
      because: "plugin:guard",
      losers: [{ stepId: "step-2" }, { stepId: "step-3" }],
    });
    expect(rule(FOR_THEM, strategy)).toMatchObject({
      kind: "refused",
      winner: { stepId: "step-2" },
      losers: [ME],
      rule: "hook",
      because: "plugin:guard",
    });
  });

  it("is for the holders where it failed, whatever else is recorded", () => {
    expect(rule({ award: "holder", failed: true })).toMatchObject({ kind: "refused", because: "plugin" });
    expect(rule({ ...FOR_ME, failed: true })).toMatchObject({ kind: "refused", because: "plugin:guard" });
  });

  it("does not depend on the order of the claims", () => {
    for (const hook of [FOR_ME, FOR_THEM])
      expect(
        arbitrate({ requester: stepId(1), claims: CLAIMS.toReversed(), strategy: "owner_wins", hook }),
      ).toStrictEqual(rule(hook));
  });

  it("names a plugin as its checks and channels are named, or none", () => {
    expect(pluginRulingSchema.safeParse(FOR_ME).success).toBe(true);
    for (const plugin of ["guard", "plugin:", "plugin:Guard", `plugin:${"g".repeat(58)}`])
      expect(pluginRulingSchema.safeParse({ plugin, award: "holder" }).success, plugin).toBe(false);
  });
});

describe("a contest that a plugin ruled on", () => {
  const createAskedScene = (hook: PluginRuling, from: "default" | "high_risk" = "default") => {
    const strategy = from === "high_risk" ? "manual_review" : "owner_wins";
    const claims = [createHolder(2, 1), createContestant(1, 2)];
    const heldRequest = request(2, createAsk(NOTES, 1));
    return openAtWork(
      2,
      heldRequest,
      request(1, createAsk(NOTES, 2, { contest: createContest(claims, { hook, from, strategy }) })),
    );
  };

  it("is recorded with the plugin and whom it ruled for, and with nothing that it said", () => {
    const { log } = createAskedScene(FOR_ME);
    expect(payloadsOf(log, "conflict.detected")[0]?.contest?.hook).toEqual(FOR_ME);
    expect(payloadsOf(log, "conflict.resolved")).toMatchObject([
      { strategy: "owner_wins", winner: "step-1", losers: ["step-2"], rule: "hook", because: "plugin:guard" },
    ]);
    expect(payloadsOf(log, "claim.released")).toMatchObject([{ stepId: "step-2", because: "preempted" }]);
  });

  it("A1: is resolved by what is recorded as it was resolved, for ever", () => {
    for (const hook of [FOR_ME, FOR_THEM, { award: "holder", failed: true } as const]) {
      const scene = createAskedScene(hook);
      const [conflict] = openOf(scene).conflicts;
      expect(conflict && draftResolutionByRules(conflict)?.payload).toEqual(conflict?.resolution);
    }
  });

  it("stays with people where it is high-risk", () => {
    const { log } = createAskedScene(FOR_ME, "high_risk");
    expect(payloadsOf(log, "conflict.resolved")).toMatchObject([
      { losers: ["step-1"], rule: "strategy", because: "manual-review" },
    ]);
  });

  it("is another conflict than the same one ruled on by the strategy", () => {
    const claims = [createHolder(2, 1), createContestant(1, 2)];
    const requestAgain = (hook?: PluginRuling) =>
      request(1, createAsk(NOTES, 2, { contest: createContest(claims, hook ? { hook } : {}) }));
    const scene = openAtWork(2, request(2, createAsk(NOTES, 1)), requestAgain(), requestAgain(FOR_THEM));
    expect(payloadsOf(scene.log, "conflict.resolved").map(({ because }) => because)).toEqual([
      "lease-holder",
      "plugin:guard",
    ]);
    for (const hook of [undefined, FOR_THEM]) expect(scene.when(requestAgain(hook)).kind).toBe("replay");
    expect(scene.when(requestAgain({ award: "holder", failed: true })).kind).toBe("accepted");
  });
});
