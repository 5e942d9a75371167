/**
 * Owns: everything that is wrong with an untrusted value as a plan that nobody has run yet: also its ids. Plans that the ledger has
 * already may have ids that no new plan may have.
 */
import { BOUNDS } from "../contracts/bounds.ts";
import { hasHiddenCharacters } from "../std/hidden-characters.ts";
import { isRecord } from "../std/is-record.ts";
import { checkPlan } from "./check-plan.ts";
import type { Compilation, CompileOptions } from "./compile-plan.ts";
import { createProblemList, quoteName, type PlanProblem } from "./plan-problem.ts";

/**
 * An id stands in commands that people type, in lines of chats, and before `:` in keys: with a `:` of its own, two plans could have
 * the same key.
 */
const PLAN_ID = /^(?:[A-Za-z0-9][A-Za-z0-9._@/-]*)?$/;

interface NewPlanOptions extends CompileOptions {
  /** It is a plan of the ledger under another id, whose steps keep their ids. */
  readonly isFork?: boolean;
}

/**
 * Returns the compiled form of an untrusted plan that nobody has run yet, or its problems, up to a bound: those of its
 * ids, then those of `checkPlan`.
 */
export function checkNewPlan(value: unknown, options: NewPlanOptions = {}): Compilation {
  const checked = checkPlan(value, options);
  const idProblems = listIdProblems(value, options);
  if (idProblems.length === 0) return checked;
  const others = checked.kind === "refused" ? checked.problems : [];
  return { kind: "refused", problems: [...idProblems, ...others].slice(0, BOUNDS.planProblemsMax) };
}

/** Lists the problems of ids that are texts; the schema names all others. */
function listIdProblems(value: unknown, { isFork = false }: NewPlanOptions): readonly PlanProblem[] {
  const problems = createProblemList();
  const { coordinationId, steps } = isRecord(value) ? value : {};
  if (typeof coordinationId === "string" && !PLAN_ID.test(coordinationId)) {
    const rule =
      "the id of a plan begins with a letter (a to z, A to Z) or a digit, and has nothing else than these, `.`, `_`, `-`, `@` and `/`";
    problems.add(
      "ID_INVALID",
      ["coordinationId"],
      `${rule}; choose another id than ${quoteName(coordinationId)}`,
    );
  }
  if (!Array.isArray(steps)) return problems.problems;
  const checkedSteps: readonly unknown[] = steps.slice(0, BOUNDS.planStepsMax);
  for (const [index, step] of checkedSteps.entries()) {
    const { stepId } = isRecord(step) ? step : {};
    const problem = typeof stepId === "string" ? findStepIdProblem(stepId, isFork) : undefined;
    if (problem) problems.add(problem.code, ["steps", index, "stepId"], problem.message);
  }
  return problems.problems;
}

function findStepIdProblem(stepId: string, isFork: boolean): Omit<PlanProblem, "path"> | undefined {
  // Half of a surrogate pair is stored as another character, and the log would no longer match its hashes.
  if (!stepId.isWellFormed())
    return {
      code: "SCHEMA_MISMATCH",
      message: "this is no Unicode text: it has half of a surrogate pair",
    };
  // A step's id may be a name in any language. It stands between `:` in keys, and within one line of a message.
  if (isFork || !(stepId.includes(":") || hasHiddenCharacters(stepId))) return undefined;
  return {
    code: "ID_INVALID",
    message: `the id of a step has no \`:\`, no line break and no character that is not seen; choose another id than ${quoteName(stepId)}`,
  };
}
