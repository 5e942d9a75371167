/** Owns: what comes before the end of a spawn is recorded: lost words fail it, and a plan ends that nobody waits for any more. */
import type { Command } from "../../contracts/commands.ts";
import { createStepError } from "../../contracts/fact-fields.ts";
import type { SubmittingAttempt } from "./attempt-use.ts";
import { cancelNestedPlans, type NestedDependencies } from "./nested-plans.ts";

/** The commands that say how a spawn ended. */
interface SpawnEnd {
  readonly commands: readonly Command[];
  /** False where words of the child were held back and cannot be kept. */
  readonly isKept: boolean;
}

/**
 * Returns the commands that record the end of a spawn, a completion turned into a failure where the child's words were
 * lost; where it fails, the plans that the child has open are cancelled first. @throws CoordinationError
 */
export async function prepareSpawnEnd(
  dependencies: NestedDependencies,
  child: SubmittingAttempt,
  { commands, isKept }: SpawnEnd,
): Promise<readonly Command[]> {
  const prepared = isKept ? commands : commands.map(failLostCompletion);
  if (prepared.some(({ type }) => type === "failStep" || type === "timeOutStep"))
    await cancelNestedPlans(dependencies, child);
  return prepared;
}

/**
 * Turns a completion into a failure, because the words of the child are lost (G1); other commands stay as they are.
 * Its parent has a placeholder, and there is nothing to rule on.
 */
function failLostCompletion(command: Command): Command {
  if (command.type !== "completeStep") return command;
  const { stepId, attempt, via } = command;
  const error = createStepError("result_lost", "what the agent said was held back and could not be kept");
  return { type: "failStep", stepId, attempt, error, cancelled: false, via };
}
