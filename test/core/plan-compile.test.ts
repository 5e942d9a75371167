import { describe, expect, it } from "vitest";
import { PLAN_PROBLEMS } from "../../src/agents/coordination/plan/plan-problem.ts";
import { checkPlan } from "../../src/agents/coordination/plan/check-plan.ts";
import { compile, messagesOf, problemsOf, step, type Fields } from "./plan-scene.ts";

const createInput = (value: unknown): Fields => ({ input: { x: value } });

const closed = { type: "object", properties: { a: { type: "string" } }, additionalProperties: false };

/** All problems of these steps of this plan, in this order. */
const CASES: [string, readonly unknown[], readonly string[], Fields?][] = [
  ["a sound plan", [step("a"), step("b", ["a"])], []],
  ["two steps of one id", [step("a"), step("b"), step("a")], ["STEP_DUPLICATE steps[2].stepId"]],
  ["an id of the layer's own steps", [step("@a"), step("a@")], ["STEP_ID_RESERVED steps[0].stepId"]],
  ["an unknown dependency", [step("a", ["z"])], ["DEPENDENCY_UNKNOWN steps[0].dependsOn[0]"]],
  ["a dependency on itself", [step("b"), step("a", ["b", "a"])], ["DEPENDENCY_SELF steps[1].dependsOn[1]"]],
  [
    "a dependency named twice",
    [step("a"), step("b", ["a", "a"])],
    ["DEPENDENCY_DUPLICATE steps[1].dependsOn[1]"],
  ],
  ["a circle", [step("a", ["b"]), step("b", ["a"])], ["DEPENDENCY_CYCLE steps[0].dependsOn[0]"]],
  [
    "two circles, one behind the other, and what is behind them",
    [
      ...[step("a", ["b"]), step("b", ["a"]), step("c", ["a", "d"]), step("d", ["c"])],
      ...[step("e", ["d"]), step("f", ["e"]), step("free"), step("g", ["free", "f"], { fanIn: "any" })],
    ],
    [
      "DEPENDENCY_CYCLE steps[0].dependsOn[0]",
      "DEPENDENCY_CYCLE steps[2].dependsOn[1]",
      "STEP_UNREACHABLE steps[4].dependsOn[0]",
      "STEP_UNREACHABLE steps[5].dependsOn[0]",
    ],
  ],
  [
    "a circle that a fan-in could leave open",
    [step("c"), step("a", ["b", "c"], { fanIn: "any" }), step("b", ["a"])],
    ["DEPENDENCY_CYCLE steps[1].dependsOn[0]"],
  ],
  ["a fan-in of nothing", [step("a", [], { fanIn: "any" })], ["FAN_IN_WITHOUT_DEPENDENCIES steps[0].fanIn"]],
  [
    "a fan-in that is too large, and what waits for it",
    [step("a"), step("b", ["a"], { fanIn: { min: 2 } }), step("c", ["b"])],
    ["FAN_IN_TOO_LARGE steps[1].fanIn.min", "STEP_UNREACHABLE steps[2].dependsOn[0]"],
  ],
  [
    "a timeout beyond the deadline",
    [step("a", [], { timeoutMs: 101 })],
    ["DEADLINE_IMPOSSIBLE steps[0].timeoutMs"],
    { deadlineMs: 100 },
  ],
  [
    "a chain beyond the deadline, once and not again behind it",
    [
      ...[step("a", [], { timeoutMs: 60 }), step("b", ["a"], { timeoutMs: 60 })],
      ...[step("c", ["b"], { timeoutMs: 60 }), step("d", ["a"], { timeoutMs: 40 })],
    ],
    ["DEADLINE_IMPOSSIBLE steps[1].timeoutMs"],
    { deadlineMs: 100 },
  ],
  [
    "a chain that is beyond the deadline by one dependency of two that suffice",
    [
      step("a", [], { timeoutMs: 90 }),
      step("b", [], { timeoutMs: 10 }),
      step("c", ["a", "b"], { fanIn: "any", timeoutMs: 90 }),
    ],
    [],
    { deadlineMs: 100 },
  ],
  [
    "a default timeout that does not fit twice",
    [step("a"), step("b", ["a"])],
    ["DEADLINE_IMPOSSIBLE defaults.timeoutMs"],
    { deadlineMs: 100, defaults: { timeoutMs: 60 } },
  ],
  ["timeouts that are not stated", [step("a"), step("b", ["a"])], [], { deadlineMs: 100 }],
  [
    "a backoff as long as the deadline",
    [step("a", [], { retry: { budget: 1, backoffMs: 100 } })],
    ["DEADLINE_IMPOSSIBLE steps[0].retry.backoffMs"],
    { deadlineMs: 100 },
  ],
  ["a timeout of 0", [step("a", [], { timeoutMs: 0 })], ["SCHEMA_MISMATCH steps[0].timeoutMs"]],
  [
    "retries beyond the plan's budget",
    [step("a", [], { retry: { budget: 3 } })],
    ["RETRY_OVER_BUDGET defaults.retry.budget", "RETRY_OVER_BUDGET steps[0].retry.budget"],
    { defaults: { retry: { budget: 4 } } },
  ],
  [
    "retries of what is sent once",
    [
      step("a", [], { deliveryMode: "best_effort", retry: { budget: 1 } }),
      step("b", [], { retry: { budget: 9 }, deliveryMode: "best_effort" }),
      step("c", [], { deliveryMode: "best_effort", retry: { budget: 0 } }),
      step("d", [], { deliveryMode: "best_effort", retry: { backoffMs: 5, budget: 0 } }),
      step("e", [], { deliveryMode: "best_effort" }),
    ],
    ["RETRY_OVER_BUDGET steps[0].retry.budget", "RETRY_OVER_BUDGET steps[1].retry.budget"],
    { defaults: { retry: { budget: 2 } } },
  ],
  [
    "retries of what is sent once by default",
    [step("a", [], { retry: { budget: 1 } }), step("b", [], { deliveryMode: "at_least_once" }), step("c")],
    ["RETRY_OVER_BUDGET steps[0].retry.budget"],
    { defaults: { deliveryMode: "best_effort", retry: { budget: 2 } } },
  ],
  ["no step at all", [], ["SCHEMA_MISMATCH steps"]],
  [
    "wrong fields and a wrong graph",
    [step("a", [], { lane: "fast", later: 1 }), step("b", ["z"]), "text"],
    [
      "SCHEMA_MISMATCH failurePolicy",
      "SCHEMA_MISMATCH steps[0].lane",
      "SCHEMA_MISMATCH steps[0]",
      "SCHEMA_MISMATCH steps[2]",
      "DEPENDENCY_UNKNOWN steps[1].dependsOn[0]",
    ],
    { failurePolicy: 1 },
  ],
  [
    "wrong dependencies, of which no binding problem follows",
    [step("a"), step("b", [], { dependsOn: "a" }), step("c", ["b"], createInput("{{steps.a.outputs.x}}"))],
    ["SCHEMA_MISMATCH steps[1].dependsOn"],
  ],
  [
    "bindings to a step that is not there",
    [step("a", [], createInput("{{steps.z.outputs.x}} or {{steps.y.outputs.x}}"))],
    ["BINDING_UNKNOWN_STEP steps[0].input.x", "BINDING_UNKNOWN_STEP steps[0].input.x"],
  ],
  [
    "bindings to the step itself, to one that comes later and to one beside it",
    [
      step("a", [], {
        input: { own: "{{steps.a.outputs.x}}", list: [1, { later: "{{steps.b.outputs.x}}" }] },
      }),
      step("b", ["a"], createInput("{{steps.c.outputs.x}}")),
      step("c"),
    ],
    [
      "BINDING_NOT_DEPENDENCY steps[0].input.own",
      "BINDING_NOT_DEPENDENCY steps[0].input.list[1].later",
      "BINDING_NOT_DEPENDENCY steps[1].input.x",
    ],
  ],
  [
    "a binding across several steps",
    [step("c", ["b"], createInput("{{steps.a.outputs.x}}")), step("b", ["a"]), step("a")],
    [],
  ],
  [
    "bindings to outputs that the schema excludes",
    [
      step("a", [], {
        outputSchema: {
          ...closed,
          properties: { ...closed.properties, list: { type: "array", items: closed } },
        },
      }),
      step("b", ["a"], {
        input: {
          right: "{{steps.a.outputs.a}} {{steps.a.outputs.list[3].a}}",
          name: "{{steps.a.outputs.b}}",
          deep: "{{steps.a.outputs.a.b}}",
          item: "{{steps.a.outputs.list.a}}",
          inner: "{{steps.a.outputs.list[0].b}}",
        },
      }),
    ],
    ["name", "deep", "item", "inner"].map((key) => `BINDING_UNDECLARED_OUTPUT steps[1].input.${key}`),
  ],
  [
    "a key with braces",
    [step("a", [], { input: { "{{steps.b.outputs.x}}": 1 } })],
    ["BINDING_SYNTAX steps[0].input.{{steps.b.outputs.x}}"],
  ],
];

describe("compilePlan", () => {
  it.each(CASES)("of %s finds what is wrong, and no more", (_, steps, expected, fields = {}) => {
    expect(problemsOf(steps, fields)).toEqual(expected);
  });

  it.each(
    [
      ...[
        "{{",
        "a {{ b",
        "{{}}",
        "{{x}}",
        "{{ steps.a.outputs.x }}",
        "{{steps.a.outputs}}",
        "{{steps.a.outputs.}}",
      ],
      ...["{{steps.a.x}}", "{{steps..outputs.x}}", "{{steps.a.outputs.x.}}", "{{steps.a.outputs.x y}}"],
      ...[
        "{{steps.a.outputs.x[}}",
        "{{steps.a.outputs.x[-1]}}",
        "{{steps.a.outputs.x[01]}}",
        "{{steps.a.outputs[0]}}",
      ],
      ...[
        "{{steps.a.outputs.x[10000]}}",
        "{{steps.a.outputs.x[99999999999999999999]}}",
        "{{{steps.a.outputs.x}}}",
      ],
      ...["{{steps.a.outputs.__proto__}}", "{{steps.a.outputs.x()}}", "{{steps.a.outputs.x|upper}}"],
      `{{steps.a.outputs.${"x.".repeat(16)}x}}`,
      `{{steps.a.outputs.${"x".repeat(65)}}}`,
      `{{${"x".repeat(10_000)}}}`,
    ].map((text) => [text]),
  )("refuses %s as a binding, and says where it is and how one is written", (text) => {
    const steps = [step("a"), step("b", ["a"], createInput(`12{{steps.a.outputs.x}}${text}`))];
    expect(problemsOf(steps)).toEqual(["BINDING_SYNTAX steps[1].input.x"]);
    const [message = ""] = messagesOf(steps);
    expect(message).toMatch(/^at character \d+, /u);
    expect(message).toContain("{{steps.<stepId>.outputs.<path>}}");
    expect(message.length).toBeLessThan(400);
  });

  it("names the circle, and leaves out the middle of a long one", () => {
    expect(messagesOf([step("a", ["b"]), step("b", ["c"]), step("c", ["b", "a"])])[0]).toBe(
      'these steps wait for each other in a circle: "a" -> "b" -> "c" -> "a"; remove one of these dependencies',
    );
    const ring = Array.from({ length: 1_000 }, (_, index) => step(`s${index}`, [`s${(index + 1) % 1_000}`]));
    const [message = ""] = messagesOf(ring);
    expect(message).toContain('"s4" -> (991 more) -> "s996"');
  });

  it.each([
    ["an input that is too deep", { a: nestLevels(17) }, "INPUT_TOO_LARGE"],
    ["an input with too many values", { a: Array.from({ length: 9_999 }, () => [0, 0]) }, "INPUT_TOO_LARGE"],
    ["an input with too many characters", { a: "x".repeat(400_000) }, "INPUT_TOO_LARGE"],
    ["too many bindings", { a: "{{steps.a.outputs.x}}".repeat(1_001) }, "INPUT_TOO_LARGE"],
    ["an input deeper than any stack", { a: nestLevels(100_000) }, "INPUT_TOO_LARGE"],
  ])("refuses %s, whether the schema was asked or not", (_, value, code) => {
    const compiled = compile([step("a"), step("b", ["a"], { input: value })]);
    expect(compiled).toMatchObject({ kind: "refused", problems: [{ code }] });
  });

  it("ends its list at the hundredth problem", () => {
    const compiled = compile(Array.from({ length: 500 }, () => step("a", ["z"])));
    expect(compiled.kind === "refused" && compiled.problems.length).toBe(100);
  });

  it("has a case for every code but those of files, sizes and submission", () => {
    const found = new Set(CASES.flatMap(([, , expected]) => expected.map((each) => each.split(" ")[0])));
    const others = [
      ...["FILE_SYNTAX", "PLAN_TOO_LARGE", "INPUT_TOO_LARGE", "OUTPUT_SCHEMA_INVALID"],
      // Codes of `plan-verify.test.ts`.
      ...["CHECK_INVALID", "CRITERION_DUPLICATE", "CRITERION_INVALID"],
      // Found when a plan is submitted.
      ...[
        "CHECK_UNKNOWN",
        "ID_INVALID",
        "COORDINATION_TAKEN",
        "DENIED_BY_PLUGIN",
        "OWNER_MISMATCH",
        "NESTED_TOO_DEEP",
        "NESTED_OPEN",
        "AGENT_NOT_ALLOWED",
        "NESTED_LATE",
        "NESTED_SPAWN",
        "NESTED_BUDGET",
        "PRIVILEGE_UNENFORCEABLE",
        "WORKTREE_UNAVAILABLE",
      ],
    ];
    expect([...found, ...others].toSorted()).toEqual(Object.keys(PLAN_PROBLEMS).toSorted());
  });

  it.each([null, 5, "plan", [], {}, { steps: 1 }, { steps: [null] }])("refuses %j as a plan", (value) => {
    expect(checkPlan(value).kind).toBe("refused");
  });
});

function nestLevels(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}
