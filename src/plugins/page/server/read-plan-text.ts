/** Owns: the text of a plan that somebody typed or dropped onto the page. */
import type { PlanProblem } from "../../../agents/coordination/plan/plan-problem.ts";
import type { PlacedProblem } from "../contract/actions.ts";

export type PlanTextRead =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** Adds to each problem where it stands in the text. */
      readonly place: (problems: readonly PlanProblem[]) => Promise<readonly PlacedProblem[]>;
    }
  | { readonly ok: false; readonly problems: readonly PlacedProblem[] };

/**
 * Parses the text of a plan file as `plan validate` does, and returns its value with how to locate problems in the
 * text, or the located problems. @throws CoordinationError `INPUT_INVALID` where it is too large
 */
export async function readPlanText(text: string): Promise<PlanTextRead> {
  const [{ parseJsonOrYaml }, { locateProblems }] = await Promise.all([
    import("../../cli/files/read-json-or-yaml.ts"),
    import("../../cli/files/place-problems.ts"),
  ]);
  const loaded = await parseJsonOrYaml(text, "a plan");
  if (!loaded.ok) return { ok: false, problems: await locateProblems(text, loaded.problems) };
  return { ok: true, value: loaded.value, place: (problems) => locateProblems(text, problems) };
}
