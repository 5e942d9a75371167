/** Owns: what can be wrong with a plan, and collecting it up to a bound. */
import { BOUNDS } from "../contracts/bounds.ts";
import { formatProblemPath } from "../contracts/validation.ts";
import type { PathSegment } from "./step-graph.ts";

/** Every code with what it means. `docs/plans.md` holds the same table; a test keeps them equal. */
export const PLAN_PROBLEMS = {
  FILE_SYNTAX: "the file is not JSON or YAML, or has a key twice",
  SCHEMA_MISMATCH: "a field is missing, unknown, of the wrong type or beyond its bound",
  PLAN_TOO_LARGE: "the plan has more steps or dependencies than a plan may have",
  STEP_DUPLICATE: "two steps have the same `stepId`",
  ID_INVALID: "the `coordinationId` or a `stepId` has a character that it may not have",
  STEP_ID_RESERVED: "a `stepId` begins with `@`",
  STEP_UNREACHABLE: "the step can never run, because of what it waits for",
  DEPENDENCY_UNKNOWN: "`dependsOn` names a step that is not in the plan",
  DEPENDENCY_SELF: "a step depends on itself",
  DEPENDENCY_DUPLICATE: "`dependsOn` names a step twice",
  DEPENDENCY_CYCLE: "steps depend on each other in a circle",
  FAN_IN_WITHOUT_DEPENDENCIES: "`fanIn` without anything in `dependsOn`",
  FAN_IN_TOO_LARGE: "`fanIn` asks for more steps than `dependsOn` names",
  DEADLINE_IMPOSSIBLE: "timeouts or a backoff cannot fit into the plan's `deadlineMs`",
  RETRY_OVER_BUDGET:
    "a retry budget is larger than `failurePolicy.retryBudget`, or above 0 where `deliveryMode` is `best_effort`",
  INPUT_TOO_LARGE: "an input is nested too deeply, or has too many values, bindings or characters",
  BINDING_SYNTAX: "a text with `{{` is not a binding",
  BINDING_UNKNOWN_STEP: "a binding names a step that is not in the plan",
  BINDING_NOT_DEPENDENCY:
    "a binding names a step that the step does not depend on, directly or through others",
  BINDING_UNDECLARED_OUTPUT: "a binding names an output that the other step's `outputSchema` excludes",
  OUTPUT_SCHEMA_INVALID: "`outputSchema` is not a usable JSON Schema",
  CHECK_INVALID: "a check of `verify` is not usable",
  CHECK_UNKNOWN: "`verify` names a check that the operator has not defined",
  CRITERION_DUPLICATE: "two criteria of `successCriteria` have the same key",
  CRITERION_INVALID: "`when` of a criterion is not one binding",
  NESTED_TOO_DEEP: "the plan comes from the child of a plan that comes from the child of a plan, and so on",
  NESTED_OPEN: "the child of a step has submitted a plan that still runs",
  NESTED_LATE:
    "the step that the submitting session worked on is over, or what it was spawned for was given up",
  NESTED_SPAWN: "the submitting session was spawned by an agent of a plan that still runs",
  NESTED_BUDGET:
    "nothing is left of the budget around it, the plan's or the operator's, or plans of others there may use the rest",
  PRIVILEGE_UNENFORCEABLE: "what an agent may do is narrowed, and its calls cannot be seen",
  COORDINATION_TAKEN: "another coordination has this `coordinationId` already",
  AGENT_NOT_ALLOWED: "the agent that submits the plan may not use the agent of a step",
  WORKTREE_UNAVAILABLE:
    "`isolate` asks for a worktree, and none can be made of the folder of the step's agent",
  DENIED_BY_PLUGIN: "a plugin that decides about plans says no",
  OWNER_MISMATCH: "a session submits a plan that another session would own",
} as const;

export type PlanProblemCode = keyof typeof PLAN_PROBLEMS;

export interface PlanProblem {
  /** As `steps[3].dependsOn[0]`. */
  readonly path: string;
  readonly code: PlanProblemCode;
  /** One sentence: what is wrong and what to do. */
  readonly message: string;
}

export interface ProblemList {
  readonly problems: readonly PlanProblem[];
  /** No more are taken; checks may stop. */
  isFull(): boolean;
  add(code: PlanProblemCode, path: readonly PathSegment[], message: string): void;
}

/** Returns an empty list of a plan's problems, which ignores what is added beyond a bound. */
export function createProblemList(): ProblemList {
  const problems: PlanProblem[] = [];
  const isFull = (): boolean => problems.length >= BOUNDS.planProblemsMax;
  return {
    problems,
    isFull,
    add: (code, path, message) => {
      if (!isFull()) problems.push({ path: formatProblemPath(path), code, message });
    },
  };
}

/** Returns a name in quotes for a sentence, cut where it is too long. */
export function quoteName(name: string): string {
  return JSON.stringify(
    name.length <= BOUNDS.nameCharsMax ? name : `${name.slice(0, BOUNDS.nameCharsMax)}...`,
  );
}

const CHAIN_NAMES_MAX = 10;

/** Formats names as `"a" -> "b" -> "c"`; the middle of a long chain is left out. */
export function formatChain(names: readonly string[]): string {
  const half = CHAIN_NAMES_MAX / 2;
  const shown =
    names.length <= CHAIN_NAMES_MAX
      ? names.map(quoteName)
      : [
          ...names.slice(0, half).map(quoteName),
          `(${names.length - CHAIN_NAMES_MAX} more)`,
          ...names.slice(-half).map(quoteName),
        ];
  return shown.join(" -> ");
}
