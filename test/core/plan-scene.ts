/** Owns: plans for tests, written short. */
import { checkPlan } from "../../src/agents/coordination/plan/check-plan.ts";
import { compilePlan, type Compilation } from "../../src/agents/coordination/plan/compile-plan.ts";
import type { CoordinationPlan } from "../../src/agents/coordination/contracts/plan.ts";
import type { CompiledStep, StepGraph } from "../../src/agents/coordination/plan/step-graph.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** A step by its id; `after` are the ids that it depends on. */
export function step(stepId: string, after: readonly string[] = [], fields: Fields = {}): Fields {
  return { stepId, agent: "main", task: "t", ...(after.length > 0 && { dependsOn: after }), ...fields };
}

export function plan(steps: readonly unknown[], fields: Fields = {}): Fields {
  return {
    coordinationId: "co-1",
    objective: "test",
    ownerSession: "agent:main:main",
    steps,
    conflictPolicy: { strategy: "owner_wins" },
    failurePolicy: { retryBudget: 2, timeoutPolicy: "fail_fast", escalationPolicy: "none" },
    ...fields,
  };
}

/** Without the schema, as the core calls it. */
export function compile(steps: readonly unknown[], fields: Fields = {}): Compilation {
  return compilePlan(plan(steps, fields) as unknown as CoordinationPlan);
}

export function graphOf(steps: readonly unknown[], fields: Fields = {}): StepGraph {
  const checked = checkPlan(plan(steps, fields));
  if (checked.kind === "compiled") return checked.graph;
  throw new Error(JSON.stringify(checked.problems));
}

export function stepOf(graph: StepGraph, stepId: string): CompiledStep {
  const found = graph.steps.find((each) => each.stepId === stepId);
  if (found) return found;
  throw new Error(`no step ${stepId}`);
}

/** As `CODE path`. */
export function problemsOf(steps: readonly unknown[], fields: Fields = {}): string[] {
  const checked = checkPlan(plan(steps, fields));
  return checked.kind === "refused" ? checked.problems.map(({ code, path }) => `${code} ${path}`) : [];
}

export function messagesOf(steps: readonly unknown[], fields: Fields = {}): string[] {
  const checked = checkPlan(plan(steps, fields));
  return checked.kind === "refused" ? checked.problems.map(({ message }) => message) : [];
}
