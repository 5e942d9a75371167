/** Owns: faults in the budgets of plans and steps, and in when a step is given up. */
import type { PlantedFault } from "./planted-fault.ts";

const DISPATCH = "src/agents/coordination/dispatch";

export const BUDGET_FAULTS: readonly PlantedFault[] = [
  {
    name: "plan-time-is-free",
    file: `${DISPATCH}/plan-rules.ts`,
    find: '  if (budget.wallMs !== undefined && now - allowedFromMs >= budget.wallMs) return "wallMs";\n',
    replace: "",
    breaks: "steps begin after the time of the plan's budget",
  },
  {
    name: "tokens-are-free",
    file: `${DISPATCH}/plan-rules.ts`,
    find: 'const COUNTED = ["spawns", "tokens", "costMicroUsd"] as const;',
    replace: 'const COUNTED = ["spawns", "costMicroUsd"] as const;',
    breaks: "steps begin after the tokens of the budget are used up",
  },
  {
    name: "step-budget-is-free",
    file: `${DISPATCH}/next-attempt.ts`,
    find: "if (retryAtMs !== undefined && !limit)",
    replace: "if (retryAtMs !== undefined)",
    breaks: "a step is tried again though its own budget is used up",
  },
  {
    name: "spent-step-is-revised",
    file: `${DISPATCH}/decide-held.ts`,
    find: "  if (findSpentLimit(step, undefined, asking.now)) {\n",
    replace: '  if (findSpentLimit(step, undefined, asking.now) === "") {\n',
    breaks: "a result is revised though the budget of its step is used up",
  },
  {
    name: "deadline-ends-retries",
    file: `${DISPATCH}/next-attempt.ts`,
    find: "return deadlineAtMs !== undefined && atMs >= deadlineAtMs;",
    replace: "return deadlineAtMs !== undefined;",
    breaks: "a step of a plan with a deadline is given up before it",
  },
  {
    name: "budget-ends-retries",
    file: `${DISPATCH}/next-attempt.ts`,
    find: "  if (!budget) return undefined;\n",
    replace: '  if (!budget) return undefined;\n  if (budget.tokens !== undefined) return "tokens";\n',
    breaks: "a step with a budget is given up before that is used up",
  },
];
