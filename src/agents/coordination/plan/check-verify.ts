/** Owns: whether what a plan asks to be verified can be: its checks, and the criteria of its success. */
import type { StepId } from "../contracts/ids.ts";
import type { CoordinationPlan, CoordinationStep } from "../contracts/plan.ts";
import { checkOutputSchema } from "./output-schema.ts";
import { readPattern } from "./pattern-syntax.ts";
import { quoteName, type ProblemList } from "./plan-problem.ts";
import { readBinding } from "./read-bindings.ts";
import type { PathSegment } from "./step-graph.ts";

/**
 * Adds a problem to the plan's list for each check of a step's result whose schema or pattern cannot be used; returns
 * nothing.
 */
export function checkVerify({ verify }: CoordinationStep, index: number, problems: ProblemList): void {
  for (const [key, check] of Object.entries(verify?.checks ?? {})) {
    const path = ["steps", index, "verify", "checks", key];
    if (check === true) continue;
    if (check.kind === "schema") checkOutputSchema(check.schema, [...path, "schema"], problems);
    if (check.kind !== "pattern") continue;
    const { problem } = readPattern(check.pattern);
    if (problem)
      problems.add("CHECK_INVALID", [...path, "pattern"], `this pattern cannot be used: ${problem}`);
  }
}

/**
 * Adds a problem to the plan's list for each success criterion that repeats a key, whose `when` is not one binding, or
 * whose binding names an unknown step; returns nothing.
 */
export function checkSuccessCriteria(
  { successCriteria = [], steps }: CoordinationPlan,
  problems: ProblemList,
): void {
  const stepIds = new Set(steps.map(({ stepId }) => stepId));
  const keys = new Set<string>();
  for (const [index, { key, when }] of successCriteria.entries()) {
    const path: PathSegment[] = ["successCriteria", index];
    if (keys.has(key))
      problems.add(
        "CRITERION_DUPLICATE",
        [...path, "key"],
        `another criterion is called ${quoteName(key)}; rename one`,
      );
    keys.add(key);
    if (when !== undefined)
      checkCriterionBinding(when, { path: [...path, "when"], known: stepIds, problems });
  }
}

function checkCriterionBinding(
  when: string,
  {
    path,
    known: stepIds,
    problems,
  }: {
    readonly path: readonly PathSegment[];
    readonly known: ReadonlySet<StepId>;
    readonly problems: ProblemList;
  },
): void {
  const binding = readBinding(when, path, problems);
  if (binding?.kind === "reference") {
    if (stepIds.has(binding.stepId)) return;
    const message = `no step has the id ${quoteName(binding.stepId)}; correct the id or add the step`;
    problems.add("BINDING_UNKNOWN_STEP", path, message);
  } else if (binding || !when.includes("{{")) {
    const message =
      "it is not one binding and nothing else; write {{steps.<stepId>.outputs.<path>}}, or leave it out";
    problems.add("CRITERION_INVALID", path, message);
  }
}
