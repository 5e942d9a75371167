/**
 * Owns: everything that is wrong with an untrusted value as a plan, at once: its fields and, as far as they are right, its
 * graph.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import {
  anyFieldsSchema,
  coordinationStepSchema,
  parsePlan,
  planOutlineSchema,
  type CoordinationPlan,
  type CoordinationStep,
} from "../contracts/plan.ts";
import {
  formatProblemPath,
  parseBounded,
  PLAN_BOUNDS,
  type ValidationProblem,
} from "../contracts/validation.ts";
import { compilePlan, type Compilation, type CompileOptions } from "./compile-plan.ts";
import type { PlanProblem } from "./plan-problem.ts";

/**
 * Returns the compiled form of an untrusted value as a plan, or what is wrong with it, up to a bound: with its fields
 * and, as far as these can be read, with its graph.
 */
export function checkPlan(value: unknown, options: CompileOptions = {}): Compilation {
  const parsed = parsePlan(value);
  if (parsed.ok) return compilePlan(parsed.value, options);
  const { problems, rest } = salvagePlan(value);
  const fields = (problems.length > 0 ? problems : parsed.problems).map(createSchemaProblem);
  const graph = rest ? compilePlan(rest, options) : undefined;
  const others = graph?.kind === "refused" ? graph.problems : [];
  return { kind: "refused", problems: [...fields, ...others].slice(0, BOUNDS.planProblemsMax) };
}

function createSchemaProblem({ path, expected, received }: ValidationProblem): PlanProblem {
  const message =
    received === "it" ? `there is ${expected}; remove it` : `expected ${expected}, got ${received}`;
  return { path, code: "SCHEMA_MISMATCH", message };
}

/** The problems of a value as a plan, and the part of it that can still be checked. */
interface SalvagedPlan {
  readonly problems: readonly ValidationProblem[];
  /** The part of the plan that can still be checked as a graph; absent where that would only repeat problems. */
  readonly rest?: CoordinationPlan;
}

/** Returns what is wrong with the fields of a plan, and the part whose graph can still be checked. */
function salvagePlan(value: unknown): SalvagedPlan {
  const fields = parseBounded(anyFieldsSchema, value, PLAN_BOUNDS);
  if (!fields.ok) return { problems: fields.problems };
  const outline = parseBounded(planOutlineSchema, fields.value, PLAN_BOUNDS);
  const problems = outline.ok ? [] : [...outline.problems];
  const steps = parseBounded(planOutlineSchema.shape.steps, fields.value["steps"], PLAN_BOUNDS);
  if (!steps.ok) return { problems };
  const salvaged = steps.value.map((step, index) =>
    problems.length < BOUNDS.validationProblemsMax ? salvageStep(step, index, problems) : undefined,
  );
  if (problems.length >= BOUNDS.validationProblemsMax)
    return { problems: problems.slice(0, BOUNDS.validationProblemsMax) };
  const salvagedSteps = salvaged.filter((step) => step !== undefined);
  // With a step's dependencies unknown, nothing can be said of what comes before what.
  const isWired = salvagedSteps.every(({ isWhole }) => isWhole);
  const keptSteps = salvagedSteps.map(({ step: { input, ...step } }) =>
    isWired && input ? { ...step, input } : step,
  );
  return { problems, rest: createSubstitutePlan(fields.value, keptSteps) };
}

interface SalvagedStep {
  readonly step: CoordinationStep;
  /** Whether its dependencies are known. */
  readonly isWhole: boolean;
}

/**
 * Returns a step without its wrong fields, with stand-ins for those that it needs, and adds the problems of the wrong
 * ones.
 */
function salvageStep(value: unknown, index: number, problems: ValidationProblem[]): SalvagedStep {
  const parsed = parseBounded(coordinationStepSchema, value, PLAN_BOUNDS);
  if (parsed.ok) return { step: parsed.value, isWhole: true };
  const place = formatProblemPath(["steps", index]);
  for (const problem of parsed.problems)
    problems.push({ ...problem, path: problem.path === "(root)" ? place : `${place}.${problem.path}` });
  const fields = parseBounded(anyFieldsSchema, value, PLAN_BOUNDS);
  const validFields = fields.ok ? pickValidFields(fields.value) : {};
  // A step keeps its place in the plan, for the paths of what is found in others.
  const placeholders = { stepId: `(unnamed ${index})`, agent: "-", task: "-", timeoutMs: 1 };
  const named = {
    ...placeholders,
    ...validFields,
  } as CoordinationStep;
  const isWhole =
    fields.ok && ["dependsOn", "fanIn"].every((key) => key in validFields || !(key in fields.value));
  if (isWhole) return { step: named, isWhole };
  const { dependsOn: _dependsOn, fanIn: _fanIn, ...step } = named;
  return { step, isWhole };
}

function pickValidFields(fields: Readonly<Record<string, unknown>>): Partial<CoordinationStep> {
  const validFields: Record<string, unknown> = {};
  for (const [key, schema] of Object.entries(coordinationStepSchema.shape)) {
    const parsed = Object.hasOwn(fields, key) ? parseBounded(schema, fields[key], PLAN_BOUNDS) : undefined;
    if (parsed?.ok) validFields[key] = parsed.value;
  }
  return validFields;
}

/** Builds a plan with neutral values in place of what is wrong, so that no fault is reported twice. */
function createSubstitutePlan(
  fields: Readonly<Record<string, unknown>>,
  steps: CoordinationStep[],
): CoordinationPlan {
  const { shape } = planOutlineSchema;
  const deadline = parseBounded(shape.deadlineMs, fields["deadlineMs"], PLAN_BOUNDS);
  const defaults = parseBounded(shape.defaults, fields["defaults"], PLAN_BOUNDS);
  const failure = parseBounded(shape.failurePolicy, fields["failurePolicy"], PLAN_BOUNDS);
  return {
    coordinationId: "-" as CoordinationPlan["coordinationId"],
    objective: "-",
    ownerSession: "-" as CoordinationPlan["ownerSession"],
    conflictPolicy: {},
    failurePolicy: failure.ok
      ? failure.value
      : { retryBudget: BOUNDS.retryBudgetMax, timeoutPolicy: "fail_fast", escalationPolicy: "none" },
    ...(deadline.ok && deadline.value !== undefined && { deadlineMs: deadline.value }),
    ...(defaults.ok && defaults.value && { defaults: defaults.value }),
    steps,
  };
}
