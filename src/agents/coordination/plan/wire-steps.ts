/** Owns: which step depends on which, by their indices in the plan, and what is wrong with the names of dependencies. */
import { BOUNDS } from "../contracts/bounds.ts";
import type { StepId } from "../contracts/ids.ts";
import type { CoordinationStep } from "../contracts/plan.ts";
import { quoteName, type ProblemList } from "./plan-problem.ts";
import type { FanIn } from "./step-graph.ts";

export interface Wiring {
  readonly indexOf: ReadonlyMap<StepId, number>;
  /** By step: what it depends on that is in the plan and is not itself, each once. */
  readonly dependencies: readonly (readonly number[])[];
  readonly fanIns: readonly FanIn[];
}

/**
 * Adds a problem for too many steps of the plan and one for too many dependencies. Returns whether the list has a problem
 * then, of whatever kind.
 */
export function addSizeProblems(steps: readonly CoordinationStep[], problems: ProblemList): boolean {
  let dependencies = 0;
  for (const { dependsOn } of steps) dependencies += dependsOn?.length ?? 0;
  const { planStepsMax, planDependenciesMax } = BOUNDS;
  if (steps.length > planStepsMax)
    problems.add("PLAN_TOO_LARGE", ["steps"], describeTooMany(steps.length, "steps", planStepsMax));
  if (dependencies > planDependenciesMax)
    problems.add(
      "PLAN_TOO_LARGE",
      ["steps"],
      describeTooMany(dependencies, "dependencies", planDependenciesMax),
    );
  return problems.problems.length > 0;
}

function describeTooMany(count: number, subject: string, countMax: number): string {
  return `the plan has ${count} ${subject}, but at most ${countMax} are allowed; split it into several plans`;
}

/**
 * Returns, by the index of each step, the steps that it depends on and how many of them must complete; names that are
 * wrong are added to the problems.
 */
export function wireSteps(steps: readonly CoordinationStep[], problems: ProblemList): Wiring {
  const indexOf = new Map<StepId, number>();
  for (const [index, { stepId }] of steps.entries()) {
    checkReservedId(stepId, index, problems);
    const first = indexOf.get(stepId);
    if (first === undefined) indexOf.set(stepId, index);
    else {
      const message = `steps[${first}] has the id ${quoteName(stepId)} already; give this step an id of its own`;
      problems.add("STEP_DUPLICATE", ["steps", index, "stepId"], message);
    }
  }
  return {
    indexOf,
    dependencies: steps.map((step, index) => resolveDependencies(step, { index, indexOf, problems })),
    fanIns: steps.map((step, index) => resolveFanIn(step, index, problems)),
  };
}

/** The steps that the layer itself adds to a coordination begin so. */
const RESERVED = "@";

function checkReservedId(stepId: StepId, index: number, problems: ProblemList): void {
  if (!stepId.startsWith(RESERVED)) return;
  const message = `ids that begin with ${RESERVED} are for steps that are added while the plan runs; choose another id than ${quoteName(stepId)}`;
  problems.add("STEP_ID_RESERVED", ["steps", index, "stepId"], message);
}

/** The place of a step in its plan, with all places by name, to resolve the names of its dependencies. */
interface DependencyNaming {
  readonly index: number;
  readonly indexOf: ReadonlyMap<StepId, number>;
  readonly problems: ProblemList;
}

/** Returns the indices of a step's dependencies, each once; reports names that are unknown, repeated or its own. */
function resolveDependencies(
  { stepId, dependsOn = [] }: CoordinationStep,
  naming: DependencyNaming,
): number[] {
  const { index, indexOf, problems } = naming;
  const resolvedIndices = new Set<number>();
  for (const [position, name] of dependsOn.entries()) {
    const path = ["steps", index, "dependsOn", position];
    const dependency = indexOf.get(name);
    if (name === stepId)
      problems.add(
        "DEPENDENCY_SELF",
        path,
        `step ${quoteName(name)} waits for itself; remove this dependency`,
      );
    else if (dependency === undefined)
      problems.add(
        "DEPENDENCY_UNKNOWN",
        path,
        `no step has the id ${quoteName(name)}; correct the id or add the step`,
      );
    else if (resolvedIndices.has(dependency))
      problems.add("DEPENDENCY_DUPLICATE", path, `${quoteName(name)} is named twice; remove one of them`);
    else resolvedIndices.add(dependency);
  }
  return [...resolvedIndices];
}

/**
 * Returns how many dependencies a step needs; reports a number that is impossible, and one that is stated where there
 * are none.
 */
function resolveFanIn(step: CoordinationStep, index: number, problems: ProblemList): FanIn {
  const { fanIn = "all", dependsOn = [] } = step;
  const path = ["steps", index, "fanIn"];
  if (step.fanIn !== undefined && dependsOn.length === 0)
    problems.add(
      "FAN_IN_WITHOUT_DEPENDENCIES",
      path,
      "there is nothing to wait for; remove fanIn or name steps in dependsOn",
    );
  if (fanIn === "all") return { kind: "all", count: dependsOn.length };
  if (fanIn === "any") return { kind: "any", count: 1 };
  const { min } = fanIn;
  if (dependsOn.length > 0 && min > dependsOn.length)
    problems.add(
      "FAN_IN_TOO_LARGE",
      [...path, "min"],
      `${min} of ${dependsOn.length} dependencies can never complete; lower min or name more steps in dependsOn`,
    );
  return { kind: "min", count: min };
}
