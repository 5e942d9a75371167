import { describe, expect, it } from "vitest";
import type { Verdict } from "../../src/agents/coordination/contracts/verification.ts";
import {
  answer,
  CHECKING,
  createHeldScene,
  ruleNoVerdict,
  filterByType,
  ruleVerdict,
} from "./gates-scene.ts";
import { expire, planStep } from "./planned-scene.ts";

const planStepAfter = (name: string) => planStep(name, { after: ["a"] });
const createAskedScene = () => {
  const scene = createHeldScene(CHECKING, 10_000, { others: [planStepAfter("b")] });
  const rule = (ruling: Verdict) => ruleVerdict(scene, "a", ruling);
  const verdicts = { pass: rule("pass"), fail: rule("fail"), revise: rule("revise") };
  return { scene: scene.then(ruleNoVerdict(scene, "a")), verdicts };
};
const RULINGS = ["pass", "fail", "revise"] as const;

describe("a verdict that comes when people have ruled", () => {
  it.each(RULINGS)("is too late where they released the result, also %s: it is recorded once", (ruling) => {
    const { scene, verdicts } = createAskedScene();
    scene.then(answer("approve"));
    expect(scene.says(verdicts[ruling])).toBe("STEP_ENDED step.outcome_refused");
    expect(scene.says(verdicts[ruling])).toBe("STEP_ENDED");
    expect(scene.status("a")).toBe("completed");
    expect(scene.plans()).toEqual(["runStep b 1"]);
    expect(filterByType(scene, "agent.verified")).toEqual([]);
  });

  it.each(RULINGS)("is too late where they replaced it, also %s", (ruling) => {
    const { scene, verdicts } = createAskedScene();
    scene.then(answer("answer"));
    const { phase } = scene.step("a");
    expect(scene.says(verdicts[ruling])).toMatch(/^STEP_ENDED/u);
    expect(scene.step("a").phase).toEqual(phase);
  });

  it.each([
    ["withheld it", "deny"],
    ["did not answer", "expire"],
  ])("lets nothing through where they %s", (_, end) => {
    const { scene, verdicts } = createAskedScene();
    if (end === "deny") scene.then(answer("deny"));
    else scene.when(expire(), 10 * 24 * 3_600_000);
    expect(scene.status("a")).toBe("failed");
    expect(scene.when(verdicts.pass).kind).toBe("refused");
    expect(scene.status("a")).toBe("failed");
    expect(filterByType(scene, "step.completed")).toEqual([]);
  });
});
