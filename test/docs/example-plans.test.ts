import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { DEMO_PLAN } from "../../scripts/demo-script.ts";
import { checkPlan } from "../../src/agents/coordination/plan/check-plan.ts";

const problemsOf = (plan: unknown): unknown => {
  const checked = checkPlan(plan);
  return checked.kind === "refused" ? checked.problems : [];
};

describe("the plans that a newcomer meets first", () => {
  it("the demo's is sound", () => {
    expect(problemsOf(DEMO_PLAN)).toEqual([]);
  });

  it("the README's is sound", () => {
    const readme = readFileSync(join(import.meta.dirname, "..", "..", "README.md"), "utf8");
    const [, yaml] = /```yaml\n(.+?)```/su.exec(readme) ?? [];
    expect(problemsOf(parse(yaml ?? ""))).toEqual([]);
  });
});
