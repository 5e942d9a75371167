/** Owns: what comes before the end of a spawn is recorded: lost words fail it, and a plan ends that nobody waits for any more. */
import type { Command } from "../../contracts/commands.ts";
import { stepError } from "../../contracts/fact-fields.ts";
import type { SubmittingAttempt } from "./attempt-use.ts";
import { cancelNested, type NestedDependencies } from "./nested-plans.ts";

/** The commands that say how a spawn ended. */
interface SpawnEnd {
  readonly commands: readonly Command[];
  /** False where words of the child were held back and cannot be kept. */
  readonly isKept: boolean;
}

/** Prepares the end of a spawn and returns the commands that record it. @throws CoordinationError */
export async function prepareSpawnEnd(
  dependencies: NestedDependencies,
  child: SubmittingAttempt,
  { commands, isKept }: SpawnEnd,
): Promise<readonly Command[]> {
  const prepared = isKept ? commands : commands.map(refuseCompletion);
  if (prepared.some(({ type }) => type === "failStep" || type === "timeOutStep"))
    await cancelNested(dependencies, child);
  return prepared;
}

/** G1: its parent has a placeholder, and there is nothing to rule on. Commands that complete nothing stay as they are. */
function refuseCompletion(command: Command): Command {
  if (command.type !== "completeStep") return command;
  const { stepId, attempt, via } = command;
  const error = stepError("result_lost", "what the agent said was held back and could not be kept");
  return { type: "failStep", stepId, attempt, error, cancelled: false, via };
}
