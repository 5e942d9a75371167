import { describe, expect, it } from "vitest";
import type { Verdict } from "../../src/agents/coordination/contracts/verification.ts";
import { answer, CHECKING, held, noVerdict, ofType, verdict } from "./gates-scene.ts";
import { expire, plannedStep } from "./planned-scene.ts";

const after = (name: string) => plannedStep(name, { after: ["a"] });
const asked = () => {
  const scene = held(CHECKING, 10_000, { others: [after("b")] });
  const late = (ruling: Verdict) => verdict(scene, "a", ruling);
  const verdicts = { pass: late("pass"), fail: late("fail"), revise: late("revise") };
  return { scene: scene.then(noVerdict(scene, "a")), verdicts };
};
const RULINGS = ["pass", "fail", "revise"] as const;

describe("a verdict that comes when people have ruled", () => {
  it.each(RULINGS)("is too late where they released the result, also %s: it is recorded once", (ruling) => {
    const { scene, verdicts } = asked();
    scene.then(answer("approve"));
    expect(scene.says(verdicts[ruling])).toBe("STEP_ENDED step.outcome_refused");
    expect(scene.says(verdicts[ruling])).toBe("STEP_ENDED");
    expect(scene.status("a")).toBe("completed");
    expect(scene.plans()).toEqual(["runStep b 1"]);
    expect(ofType(scene, "agent.verified")).toEqual([]);
  });

  it.each(RULINGS)("is too late where they replaced it, also %s", (ruling) => {
    const { scene, verdicts } = asked();
    scene.then(answer("answer"));
    const { phase } = scene.step("a");
    expect(scene.says(verdicts[ruling])).toMatch(/^STEP_ENDED/u);
    expect(scene.step("a").phase).toEqual(phase);
  });

  it.each([
    ["withheld it", "deny"],
    ["did not answer", "expire"],
  ])("lets nothing through where they %s", (_, end) => {
    const { scene, verdicts } = asked();
    if (end === "deny") scene.then(answer("deny"));
    else scene.when(expire(), 10 * 24 * 3_600_000);
    expect(scene.status("a")).toBe("failed");
    expect(scene.when(verdicts.pass).kind).toBe("refused");
    expect(scene.status("a")).toBe("failed");
    expect(ofType(scene, "step.completed")).toEqual([]);
  });
});
