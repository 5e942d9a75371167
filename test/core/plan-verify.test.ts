import { describe, expect, it } from "vitest";
import { compile, problemsOf, step, type Fields } from "./plan-scene.ts";

describe("what a plan wants to have verified", () => {
  const createVerifiedStep = (checks: Fields): Fields => step("a", [], { verify: { checks } });

  it.each([
    [
      "a pattern that no linear engine matches",
      { kind: "pattern", pattern: "(a)\\1" },
      "CHECK_INVALID",
      "pattern",
    ],
    ["a pattern that is none", { kind: "pattern", pattern: "(" }, "CHECK_INVALID", "pattern"],
    [
      "a schema that is none",
      { kind: "schema", schema: { type: "no" } },
      "OUTPUT_SCHEMA_INVALID",
      "schema.type",
    ],
  ])("is refused for %s, and told where", (_, check, code, at) => {
    expect(problemsOf([createVerifiedStep({ key: check })])).toEqual([
      `${code} steps[0].verify.checks.key.${at}`,
    ]);
  });

  it("may be a check that the operator defines, which is looked up when the plan is submitted", () => {
    expect(problemsOf([createVerifiedStep({ lint: true })])).toEqual([]);
  });

  it("goes with its step, and the planner's confidence does, too", () => {
    const verify = { checks: { lint: true }, revisionsMax: 1 };
    const compiled = compile([step("a", [], { verify, confidence: 0.4 }), step("b")]);
    expect(compiled).toMatchObject({
      graph: { steps: [{ stepId: "a", verify, confidence: 0.4 }, { stepId: "b" }] },
    });
  });
});

describe("what a plan is to reach", () => {
  const criteriaOf = (...successCriteria: readonly Fields[]): unknown =>
    problemsOf([step("a")], { successCriteria });

  it("is a key, alone or with the output that says so", () => {
    expect(criteriaOf({ key: "x", when: "{{steps.a.outputs.ok}}" }, { key: "y" })).toEqual([]);
  });

  it("has no key twice", () => {
    expect(criteriaOf({ key: "x" }, { key: "x" })).toEqual(["CRITERION_DUPLICATE successCriteria[1].key"]);
  });

  it.each([
    ["{{steps.z.outputs.ok}}", "BINDING_UNKNOWN_STEP"],
    ["it is {{steps.a.outputs.ok}}", "CRITERION_INVALID"],
    ["always", "CRITERION_INVALID"],
    ["{{steps.a}}", "BINDING_SYNTAX"],
  ])("is not told by %s", (when, code) => {
    expect(criteriaOf({ key: "x", when })).toEqual([`${code} successCriteria[0].when`]);
  });
});
