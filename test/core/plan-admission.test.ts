import { describe, expect, it } from "vitest";
import { stepAdmittedSchema, type ContentRef } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { EventId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  createPlannedSteps,
  type PlanAdmission,
} from "../../src/agents/coordination/plan/create-planned-steps.ts";
import { graphOf, step } from "./plan-scene.ts";

const refOf = (text: string): ContentRef => ({ sha256: "0".repeat(64), bytes: text.length });
const admitting: PlanAdmission = {
  ownerSession: "agent:main:main" as SessionKey,
  runnerOf: (agent) => (agent.startsWith("acp-") ? "acp_stdio" : "subagent"),
  refOf,
  gateStep: () => ({}),
};

describe("plannedStepsOf", () => {
  it("says of a step all that the plan says, and nothing of its input", () => {
    const budget = { costUsd: 2 };
    const ownFields = {
      priority: "high",
      lane: "control",
      timeoutMs: 9,
      retry: { budget: 1, backoffMs: 4 },
      budget,
    };
    const graph = graphOf([
      step("b", ["a", "c"], {
        fanIn: { min: 1 },
        ...ownFields,
        agent: "acp-x",
        task: "task",
        input: { secret: 1 },
      }),
      ...[step("c"), step("a")],
    ]);
    const steps = createPlannedSteps(graph, admitting);
    expect(steps.map(({ stepId }) => stepId)).toEqual(["a", "c", "b"]);
    expect(steps[2]).toEqual({
      stepId: "b",
      name: "b",
      agentId: "acp-x",
      runner: "acp_stdio",
      sourceSession: "agent:main:main",
      lane: "control",
      priority: "high",
      deliveryMode: "at_least_once",
      timeoutMs: 9,
      retryBudget: 1,
      input: refOf("task"),
      collect: false,
      call: {},
      planned: {
        dependsOn: ["a", "c"],
        fanIn: 1,
        backoffMs: 4,
        criticalPathMs: 9,
        budget: { costMicroUsd: 2_000_000 },
      },
    });
    expect(steps[0]).toMatchObject({ runner: "subagent", planned: { dependsOn: [], fanIn: 0 } });
    for (const each of steps) expect(stepAdmittedSchema.parse(each)).toEqual(each);
  });

  it("says of a step that a fork has from its source what came of it there, and neither holds nor doubts it", () => {
    const graph = graphOf([step("a", [], { confidence: 0.4 }), step("b")]);
    const kept = { eventId: "co-1:7" as EventId, output: refOf("out"), released: "approved" } as const;
    const gate = { threshold: 7_000 };
    const [a, b] = createPlannedSteps(graph, {
      ...admitting,
      gateStep: () => ({ gate, decision: { confidence: 4_000, floor: 5_000 } }),
      carried: new Map([["a" as StepId, kept]]),
    });
    expect(a).toMatchObject({ stepId: "a", carried: kept });
    expect(a).not.toHaveProperty("gate");
    expect(a).not.toHaveProperty("decision");
    expect(b).toMatchObject({ gate });
    expect(b).not.toHaveProperty("carried");
    expect(stepAdmittedSchema.parse(a)).toEqual(a);
  });

  it("says what holds the results of a step, and what its planner doubts", () => {
    const graph = graphOf([step("a", [], { agent: "acp-x", confidence: 0.4 }), step("b")]);
    const requests: unknown[] = [];
    const gate = { threshold: 7_000, checks: ["lint"] };
    const decision = { confidence: 4_000, floor: 5_000 };
    const [a, b] = createPlannedSteps(graph, {
      ...admitting,
      gateStep: ({ stepId, confidence }, runner) => {
        requests.push([stepId, confidence, runner]);
        return confidence === undefined ? {} : { gate, decision };
      },
    });
    expect(requests).toEqual([
      ["a", 0.4, "acp_stdio"],
      ["b", undefined, "subagent"],
    ]);
    expect(a).toMatchObject({ gate, decision });
    expect(b).not.toHaveProperty("gate");
    expect(stepAdmittedSchema.parse(a)).toEqual(a);
  });

  it("has no name for a step whose id is too long for one", () => {
    const [long] = createPlannedSteps(graphOf([step("s".repeat(65))]), admitting);
    expect(long).not.toHaveProperty("name");
  });

  it("gives a range, and asks for no more than that", () => {
    const graph = graphOf(Array.from({ length: 10 }, (_, index) => step(`s${index}`)));
    let requestCount = 0;
    const counting: PlanAdmission = {
      ...admitting,
      refOf: (text) => {
        requestCount += 1;
        return refOf(text);
      },
    };
    const listRange = (from: number, to: number): string[] =>
      createPlannedSteps(graph, counting, { from, to }).map(({ stepId }) => stepId);
    expect([...listRange(0, 4), ...listRange(4, 8), ...listRange(8, 12)]).toEqual(
      graph.steps.map(({ stepId }) => stepId),
    );
    expect(requestCount).toBe(10);
  });
});
