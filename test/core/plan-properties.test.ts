import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { parsePlan } from "../../src/agents/coordination/contracts/plan.ts";
import { computeBackoffMs, computeBackoffRange } from "../../src/agents/coordination/plan/backoff.ts";
import { checkPlan } from "../../src/agents/coordination/plan/check-plan.ts";
import { compilePlan } from "../../src/agents/coordination/plan/compile-plan.ts";
import type { StepGraph } from "../../src/agents/coordination/plan/step-graph.ts";
import { compile, plan, step, type Fields } from "./plan-scene.ts";

const RUNS = Number(process.env["PROPERTY_RUNS"] ?? 300);

interface Node {
  readonly id: string;
  readonly after: readonly string[];
  readonly fields: Fields;
}

/** Acyclic by construction: a step depends only on steps before it in the list, whose ids are in no order. */
const dags: fc.Arbitrary<Node[]> = fc
  .uniqueArray(
    fc.string({ minLength: 1, maxLength: 6 }).filter((id) => !id.startsWith("@")),
    { minLength: 1, maxLength: 30 },
  )
  .chain((ids) =>
    fc.tuple(
      ...ids.map((id, index) =>
        fc.record({
          id: fc.constant(id),
          after: fc.subarray(ids.slice(0, index), { maxLength: Math.min(4, index) }),
          fields: fc.record({
            timeoutMs: fc.integer({ min: 1, max: 1_000 }),
            priority: fc.constantFrom("low", "critical"),
          }),
        }),
      ),
    ),
  );

const stepsOf = (nodes: readonly Node[]): Fields[] =>
  nodes.map(({ id, after, fields }) => step(id, after, fields));

function requireCompiled(steps: readonly unknown[]): StepGraph {
  const result = compile(steps);
  if (result.kind === "compiled") return result.graph;
  throw new Error(JSON.stringify(result.problems));
}

const shuffled = dags.chain((nodes) =>
  fc.tuple(fc.constant(nodes), fc.shuffledSubarray(nodes, { minLength: nodes.length })),
);

describe("for every acyclic plan", () => {
  it("every step comes after all that it depends on, whatever the order in the plan", () => {
    fc.assert(
      fc.property(shuffled, ([nodes, inFile]) => {
        const { steps, depth } = requireCompiled(stepsOf(inFile));
        const places = new Map(steps.map(({ stepId }, index) => [String(stepId), index]));
        expect(places.size).toBe(nodes.length);
        for (const { id, after } of nodes)
          for (const each of after) expect(places.get(each)).toBeLessThan(places.get(id) ?? -1);
        expect(depth).toBe(Math.max(...steps.map((each) => each.depth)) + 1);
      }),
      { numRuns: RUNS },
    );
  });

  it("the graph does not depend on the order in the plan (P1)", () => {
    fc.assert(
      fc.property(shuffled, ([nodes, inFile]) => {
        expect(requireCompiled(stepsOf(inFile))).toEqual(requireCompiled(stepsOf(nodes)));
      }),
      { numRuns: RUNS },
    );
  });

  it("an edge back is refused as a circle, which is one", () => {
    const closed = fc.tuple(dags, fc.nat());
    fc.assert(
      fc.property(closed, fc.constantFrom(undefined, "any"), ([nodes, choice], fanIn) => {
        const edges = nodes.flatMap(({ id, after }) => after.map((each) => [each, id] as const));
        const edge = edges[choice % edges.length];
        if (!edge) return;
        const [from, to] = edge;
        const back = nodes.map((node) =>
          node.id === from
            ? { ...node, after: [...node.after, to], fields: { ...node.fields, ...(fanIn && { fanIn }) } }
            : node,
        );
        const result = compile(stepsOf(back));
        const codes = result.kind === "refused" ? result.problems.map(({ code }) => code) : [];
        expect(codes.filter((code) => code === "DEPENDENCY_CYCLE")).toHaveLength(1);
        expect(new Set(codes.filter((code) => code !== "DEPENDENCY_CYCLE"))).toEqual(
          new Set(codes.includes("STEP_UNREACHABLE") ? ["STEP_UNREACHABLE"] : []),
        );
      }),
      { numRuns: RUNS },
    );
  });

  it("a binding is taken exactly where there is a way back to the step that it names", () => {
    const bound = dags.chain((nodes) =>
      fc.tuple(fc.constant(nodes), fc.nat(nodes.length - 1), fc.nat(nodes.length - 1)),
    );
    fc.assert(
      fc.property(bound, ([nodes, user, source]) => {
        const named = nodes.map(({ after }, index) => ({
          id: `s${index}`,
          fields: {},
          after: after.map((each) => `s${nodes.findIndex(({ id }) => id === each)}`),
        }));
        const steps = stepsOf(named).map((each, index) =>
          index === user ? { ...each, input: { x: `{{steps.s${source}.outputs.x}}` } } : each,
        );
        const before = new Set<string>();
        const visit = (id: string): void => {
          for (const each of named.find((node) => node.id === id)?.after ?? []) {
            before.add(each);
            visit(each);
          }
        };
        visit(`s${user}`);
        expect(compile(steps).kind).toBe(before.has(`s${source}`) ? "compiled" : "refused");
      }),
      { numRuns: RUNS },
    );
  });
});

const ids = fc.constantFrom("a", "b", "c", "d", "e");
const texts = fc.oneof(
  fc.string(),
  fc
    .tuple(ids, fc.constantFrom("x", "y[0].z", "", "[", "x.y"))
    .map(([id, path]) => `{{steps.${id}.outputs.${path}}}`),
  fc.constantFrom("{{", "}}", "{{steps.", "{{{{}}}}"),
);
const schemas = fc.oneof(
  fc.dictionary(fc.constantFrom("type", "$ref", "allOf", "properties", "items", "required"), fc.jsonValue()),
  fc.constantFrom({}, { $ref: "#" }, { type: "object", properties: { x: {} }, additionalProperties: false }),
);
const anyStep = fc.record(
  {
    stepId: ids,
    agent: fc.constant("main"),
    task: fc.constant("t"),
    dependsOn: fc.array(ids, { maxLength: 4 }),
    fanIn: fc.oneof(fc.constantFrom("all", "any"), fc.record({ min: fc.integer({ min: 1, max: 5 }) })),
    input: fc.dictionary(fc.string(), fc.oneof(texts, fc.array(texts), fc.jsonValue())),
    outputSchema: schemas,
    timeoutMs: fc.integer({ min: 1, max: 1_000 }),
    retry: fc.record({
      budget: fc.integer({ min: 0, max: 4 }),
      backoffMs: fc.integer({ min: 1, max: 1_000 }),
    }),
  },
  { requiredKeys: ["stepId", "agent", "task"] },
);
const anyPlan = fc
  .tuple(
    fc.array(anyStep, { minLength: 1, maxLength: 8 }),
    fc.option(fc.integer({ min: 1, max: 2_000 }), { nil: undefined }),
  )
  .map(([steps, deadlineMs]) => plan(steps, deadlineMs === undefined ? {} : { deadlineMs }));

describe("for every plan that the schema takes", () => {
  it("it compiles, or is refused with problems that have a path, a known code and a sentence (P2, P3)", () => {
    fc.assert(
      fc.property(anyPlan, (value) => {
        const parsed = parsePlan(value);
        if (!parsed.ok) return;
        const result = compilePlan(parsed.value);
        if (result.kind === "compiled") return;
        expect(result.problems.length).toBeGreaterThan(0);
        expect(result.problems.length).toBeLessThanOrEqual(BOUNDS.planProblemsMax);
        for (const { path, message } of result.problems) {
          expect(path.length).toBeLessThanOrEqual(BOUNDS.problemPathCharsMax);
          expect(message).toMatch(/^.{10,}$/su);
        }
      }),
      { numRuns: RUNS * 3 },
    );
  });
});

describe("for every value", () => {
  it("checkPlan does not throw, and takes what compilePlan takes", () => {
    const spoilt = fc
      .tuple(anyPlan, fc.string(), fc.jsonValue())
      .map(([value, key, junk]) => ({ ...value, [key]: junk }));
    const badSteps = fc.array(
      fc.oneof(
        anyStep,
        fc.jsonValue(),
        fc.dictionary(fc.constantFrom("stepId", "dependsOn", "fanIn", "input"), fc.jsonValue()),
      ),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue(),
          fc.anything(),
          anyPlan,
          spoilt,
          badSteps.map((steps) => plan(steps)),
        ),
        (value) => {
          const checked = checkPlan(value);
          const parsed = parsePlan(value);
          if (parsed.ok) expect(checked).toEqual(compilePlan(parsed.value));
          else
            expect(checked).toMatchObject({
              kind: "refused",
              problems: [expect.anything(), ...(checked.kind === "refused" ? checked.problems.slice(1) : [])],
            });
        },
      ),
      { numRuns: RUNS },
    );
  });
});

describe("backoffMs", () => {
  const rules = fc.record({
    budget: fc.constant(100),
    backoffMs: fc.integer({ min: 1, max: BOUNDS.durationMsMax }),
  });

  it("is the same for the same seed and attempt, and within bounds that never fall", () => {
    fc.assert(
      fc.property(rules, fc.integer({ min: 1, max: 101 }), fc.string(), (rule, attempt, seed) => {
        const { minMs, maxMs } = computeBackoffRange(rule, attempt);
        const waitMs = computeBackoffMs(rule, attempt, seed);
        expect(waitMs).toBe(computeBackoffMs(rule, attempt, seed));
        expect(Number.isSafeInteger(waitMs)).toBe(true);
        expect(waitMs).toBeGreaterThanOrEqual(minMs);
        expect(waitMs).toBeLessThanOrEqual(maxMs);
        const next = computeBackoffRange(rule, attempt + 1);
        expect(next.minMs).toBeGreaterThanOrEqual(minMs);
        expect(next.maxMs).toBeGreaterThanOrEqual(maxMs);
        expect(maxMs).toBeLessThanOrEqual(Math.max(rule.backoffMs, BOUNDS.backoffMsMax));
      }),
      { numRuns: RUNS },
    );
  });

  it("doubles up to an hour", () => {
    const ranges = [1, 2, 3, 12, 13, 100].map(
      (attempt) => computeBackoffRange({ budget: 100, backoffMs: 1_000 }, attempt).maxMs,
    );
    expect(ranges).toEqual([1_000, 2_000, 4_000, 2_048_000, 3_600_000, 3_600_000]);
  });

  it("spreads steps that failed together over the whole range", () => {
    const waits = Array.from({ length: 1_000 }, (_, index) =>
      computeBackoffMs({ budget: 1, backoffMs: 1_000 }, 1, `7:step-${index}`),
    );
    const quarters = [500, 625, 750, 875].map(
      (from) => waits.filter((each) => each >= from && each < from + 125).length,
    );
    for (const quarter of quarters) expect(quarter).toBeGreaterThan(150);
  });

  it("is what it was in the first release (a recorded seed is replayed)", () => {
    expect([1, 2, 3].map((attempt) => computeBackoffMs({ budget: 3, backoffMs: 1_000 }, attempt, "seed")))
      .toMatchInlineSnapshot(`
      [
        913,
        1444,
        3255,
      ]
    `);
  });
});
