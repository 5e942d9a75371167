/** Owns: the table of planted faults, which shows what the simulator finds, and putting one of them into a source. */
import { BUDGET_FAULTS } from "./planted-budget-faults.ts";
import { CLAIM_FAULTS } from "./planted-claim-faults.ts";
import { CONFIGURATION_FAULTS } from "./planted-configuration-faults.ts";
import type { PlantedFault } from "./planted-fault.ts";
import { FORK_FAULTS } from "./planted-fork-faults.ts";
import { GATE_FAULTS } from "./planted-gate-faults.ts";
import { OUTAGE_FAULTS } from "./planted-outage-faults.ts";
import { PLAN_FAULTS } from "./planted-plan-faults.ts";
import { PRUNING_FAULTS } from "./planted-pruning-faults.ts";
import { REFUSAL_FAULTS } from "./planted-refusal-faults.ts";
import { TEXT_FAULTS } from "./planted-text-faults.ts";
import { WORKFLOW_FAULTS } from "./planted-workflow-faults.ts";
import { WORKTREE_FAULTS } from "./planted-worktree-faults.ts";

export const PLANTED_FAULTS: readonly PlantedFault[] = [
  ...PLAN_FAULTS,
  ...BUDGET_FAULTS,
  ...REFUSAL_FAULTS,
  ...FORK_FAULTS,
  ...GATE_FAULTS,
  ...CLAIM_FAULTS,
  ...WORKFLOW_FAULTS,
  ...WORKTREE_FAULTS,
  ...CONFIGURATION_FAULTS,
  ...PRUNING_FAULTS,
  ...OUTAGE_FAULTS,
  ...TEXT_FAULTS,
];

/** @throws Error where the text to be replaced does not occur exactly once */
export function applyFault({ name, file, find, replace }: PlantedFault, source: string): string {
  const [before, after, ...more] = source.split(find);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`the planted fault ${name} does not fit ${file} any more`);
  return `${before}${replace}${after}`;
}
