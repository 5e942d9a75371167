/** Owns: proving that a fork of a plan has from its source what had completed there before its place, and nothing else. */
import { isLedgerOutage } from "../contracts/errors.ts";
import type { CarriedResult, ForkedFrom } from "../contracts/fact-fields.ts";
import type { CoordinationId, StepId } from "../contracts/ids.ts";
import type { StoredProblem } from "../ports/ledger-store.ts";
import { isSameValue } from "../replay/same-value.ts";
import type { CarriedResults, ForkSources } from "./log/carried-results.ts";
import { describeError } from "../std/describe-error.ts";

export interface ForkToProve {
  readonly runId: CoordinationId;
  readonly forkedFrom: ForkedFrom;
  /** Those of its plan, where and as they were admitted. */
  readonly steps: readonly ForkedStep[];
}

export interface ForkedStep {
  readonly sequence: number;
  readonly stepId: StepId;
  readonly carried?: CarriedResult | undefined;
}

/**
 * Lists where the results of a fork differ from those of its source, or as the one problem why the source cannot tell;
 * empty where they agree. Throws where the ledger cannot be used right now.
 */
export async function findProblemsOfFork(sources: ForkSources, fork: ForkToProve): Promise<StoredProblem[]> {
  const { runId, forkedFrom } = fork;
  const { coordinationId: source, sequence: forkSequence } = forkedFrom;
  try {
    const state = await sources.stateAt(forkedFrom);
    const length = state.nextSequence;
    if (state.kind !== "unopened" && length >= forkSequence)
      return compareCarriedResults(fork, await sources.readCarriedResults(forkedFrom, state));
    const message =
      state.kind === "unopened"
        ? `its source ${source} is not there`
        : `it is a fork of ${source} from ${forkSequence}, which has ${length} events`;
    return [{ kind: "event_missing", message, runId, sequence: 0 }];
  } catch (error) {
    if (isLedgerOutage(error)) throw error;
    const why = describeError(error);
    const message = `what it has from ${source} cannot be told from there: ${why}`;
    return [{ kind: "fold_failed", message, runId, sequence: 0 }];
  }
}

/** Returns a problem for each step of the fork that has another result than its source had. */
function compareCarriedResults(
  { runId, forkedFrom, steps }: ForkToProve,
  there: CarriedResults,
): StoredProblem[] {
  const { coordinationId: source, sequence: place } = forkedFrom;
  return steps.flatMap(({ sequence, stepId, carried }): StoredProblem[] => {
    const expected = there.get(stepId);
    if (isSameValue(carried, expected)) return [];
    const message = expected
      ? `${stepId} has not the result that ${source} had before ${place}`
      : `${stepId} has a result, but had not completed in ${source} before ${place}`;
    return [{ kind: "event_forged", message, runId, sequence }];
  });
}
