/** Owns: the step that a session works on, or worked on, by what the ledger says of its children (H3). */
import type { SessionKey } from "../../contracts/ids.ts";
import { hasRoomForText } from "../../ledger/readable-results.ts";
import type { KnownCoordination, OpenCoordination, Step } from "../../ledger/state.ts";
import { nameChildReference } from "../../ledger/summary.ts";
import type { ReferenceFinder } from "../../ports/ledger-store.ts";
import type { RunLog } from "./run-log.ts";

export interface StepOfChild {
  readonly state: KnownCoordination;
  readonly step: Step;
}

/** A step of a coordination that is open. */
export interface OpenStep {
  readonly state: OpenCoordination;
  readonly step: Step;
}

/** The collaborators that find the step of a child. */
interface StepLookupDependencies {
  readonly store: ReferenceFinder;
  readonly runs: Pick<RunLog, "state">;
}

/**
 * Finds the step that a session works on, or worked on, with the state of its coordination, open or ended; `undefined`
 * where there is none. @throws CoordinationError as `LedgerStore.find` and `RunLog.state`.
 */
export async function findStepOfChild(
  { store, runs }: StepLookupDependencies,
  session: SessionKey,
): Promise<StepOfChild | undefined> {
  const found = await store.find(nameChildReference(session));
  if (!found?.stepId) return undefined;
  const state = await runs.state(found.runId);
  if (state.kind === "unopened") return undefined;
  const step = state.steps.get(found.stepId);
  return step && { state, step };
}

/**
 * True where the ledger takes one more long text of a child session: its coordination is open, and its step has room
 * for it.
 */
export function canKeepText({ state, step }: StepOfChild): boolean {
  return state.kind === "open" && hasRoomForText(step);
}
