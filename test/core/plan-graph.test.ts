import { describe, expect, it } from "vitest";
import { compilePlan } from "../../src/agents/coordination/plan/compile-plan.ts";
import type { CoordinationPlan } from "../../src/agents/coordination/contracts/plan.ts";
import { graphOf, plan, step, stepOf, type Fields } from "./plan-scene.ts";

const createInput = (value: unknown): Fields => ({ input: { x: value } });

describe("the graph", () => {
  it("has typed references and templates where the input has bindings", () => {
    const graph = graphOf([
      step("a.b"),
      step("c", ["a.b"], {
        input: {
          whole: "{{steps.a.b.outputs.list[0].name}}",
          text: ["<{{steps.a.b.outputs.x}}{{steps.a.b.outputs.y-z}}>", "plain }}", 7],
        },
      }),
    ]);
    const createReference = (...path: (string | number)[]): object => ({
      kind: "reference",
      stepId: "a.b",
      path,
    });
    expect(stepOf(graph, "c").bindings).toEqual([
      { at: ["whole"], value: createReference("list", 0, "name") },
      {
        at: ["text", 0],
        value: { kind: "template", parts: ["<", createReference("x"), createReference("y-z"), ">"] },
      },
    ]);
  });

  it("fills in what a step does not say from the plan's defaults, then from the layer's", () => {
    const plain = stepOf(graphOf([step("a")]), "a");
    expect(plain).toMatchObject({
      lane: "data",
      priority: "normal",
      deliveryMode: "at_least_once",
      timeoutMs: 86_400_000,
      retry: { budget: 2, backoffMs: 1_000 },
      fanIn: { kind: "all", count: 0 },
      resources: [],
      input: {},
    });
    const defaults = {
      lane: "control",
      priority: "low",
      deliveryMode: "best_effort",
      timeoutMs: 5,
      retry: { budget: 1, backoffMs: 9 },
    };
    const once = { ...defaults, retry: { budget: 0, backoffMs: 9 } };
    expect(stepOf(graphOf([step("a")], { defaults }), "a")).toMatchObject(once);
    const ownFields = {
      lane: "escalation",
      priority: "critical",
      timeoutMs: 7,
      retry: { budget: 0, backoffMs: 3 },
    };
    expect(stepOf(graphOf([step("a", [], ownFields)], { defaults }), "a")).toMatchObject(ownFields);
  });

  it("cuts a timeout that the plan does not state to the deadline, and takes the host's before its own", () => {
    expect(stepOf(graphOf([step("a")], { deadlineMs: 50 }), "a").timeoutMs).toBe(50);
    const compiled = compilePlan(plan([step("a")]) as unknown as CoordinationPlan, { timeoutMs: 77 });
    expect(compiled).toMatchObject({ graph: { steps: [{ timeoutMs: 77 }] } });
  });

  it("counts depth, weighs the critical path by timeouts and names it", () => {
    const createTimedStep = (id: string, after: string[], timeoutMs: number): Fields =>
      step(id, after, { timeoutMs });
    const steps = [
      createTimedStep("d", ["b", "c"], 1),
      createTimedStep("b", ["a"], 10),
      createTimedStep("c", ["a"], 20),
      createTimedStep("a", [], 5),
      createTimedStep("e", [], 3),
    ];
    const graph = graphOf(steps);
    expect(graph).toMatchObject({ depth: 3, criticalPathMs: 26, criticalPath: ["a", "c", "d"] });
    const shown = graph.steps.map(({ stepId, depth, criticalPathMs }) => [stepId, depth, criticalPathMs]);
    expect(shown).toEqual([
      ["a", 0, 26],
      ["e", 0, 3],
      ["b", 1, 11],
      ["c", 1, 21],
      ["d", 2, 1],
    ]);
    expect(stepOf(graph, "a").dependents).toEqual(["b", "c"]);
  });

  it.each([
    [undefined, { kind: "all", count: 3 }],
    ["all", { kind: "all", count: 3 }],
    ["any", { kind: "any", count: 1 }],
    [{ min: 2 }, { kind: "min", count: 2 }],
  ])("has the fan-in %j as a predicate over a count", (fanIn, expected) => {
    const steps = [
      step("a"),
      step("b"),
      step("c"),
      step("d", ["c", "a", "b"], fanIn === undefined ? {} : { fanIn }),
    ];
    const compiled = stepOf(graphOf(steps), "d");
    expect(compiled.fanIn).toEqual(expected);
    expect(compiled.dependsOn).toEqual(["a", "b", "c"]);
  });

  it("spells every resource in one way", () => {
    const resources = ["queue:x", "file:/a//b/./c/", "file:/a/b/c", "file:rel/./x", "e\u0301", "\u00e9"];
    expect(stepOf(graphOf([step("a", [], { resources })]), "a").resources).toEqual([
      ...["file:/a/b/c", "file:rel/x", "queue:x", "\u00e9"],
    ]);
  });

  it("has budgets as whole numbers, a millionth of a dollar at the least", () => {
    const budget = { spawns: 7, tokens: 9_000, costUsd: 1.1, wallMs: 5 };
    const graph = graphOf([step("a", [], { budget: { costUsd: 1e-9 } }), step("b", [], { budget: {} })], {
      budget,
    });
    expect(graph.budget).toEqual({ spawns: 7, tokens: 9_000, costMicroUsd: 1_100_000, wallMs: 5 });
    expect(stepOf(graph, "a").budget).toEqual({ costMicroUsd: 1 });
    expect(stepOf(graph, "b")).not.toHaveProperty("budget");
    const rounded = graphOf([step("a")], { budget: { costUsd: 0.000_001_2 } });
    expect(rounded.budget).toEqual({ costMicroUsd: 2 });
    expect(graphOf([step("a")])).not.toHaveProperty("budget");
  });

  it("survives JSON", () => {
    const graph = graphOf([step("a"), step("b", ["a"], createInput("{{steps.a.outputs.x}}"))], {
      deadlineMs: 9,
      budget: { spawns: 1 },
    });
    expect(JSON.parse(JSON.stringify(graph))).toEqual(graph);
  });
});
