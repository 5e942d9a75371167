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

/** Parses a plan as `plan validate` does. @throws CoordinationError `INPUT_INVALID` where it is too large */
export async function readPlanText(text: string): Promise<PlanTextRead> {
  const [{ parsePlanText }, { placeProblems }] = await Promise.all([
    import("../../cli/files/plan-file.ts"),
    import("../../cli/files/place-problems.ts"),
  ]);
  const loaded = await parsePlanText(text);
  if (!loaded.ok) return { ok: false, problems: await placeProblems(text, loaded.problems) };
  return { ok: true, value: loaded.value, place: (problems) => placeProblems(text, problems) };
}
