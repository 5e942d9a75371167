/** Owns: which results a fork of a plan has from its source: those of the steps that had completed before its place there. */
import { CoordinationError } from "../../contracts/errors.ts";
import type { CarriedResult, ForkedFrom } from "../../contracts/fact-fields.ts";
import type { CoordinationId, StepId } from "../../contracts/ids.ts";
import type { Coordination, KnownCoordination } from "../../ledger/state.ts";
import type { LogReader } from "../../ports/ledger-store.ts";
import { rememberNewest } from "../../std/remember-newest.ts";
import { readStoredState } from "./read-state.ts";

/** Sources kept in memory while large plans are admitted bit by bit; others are read again. */
const SOURCES_MAX = 4;

export type CarriedResults = ReadonlyMap<StepId, CarriedResult>;

export interface ForkSources {
  /** The source as it was before a place, and at least as it began. @throws CoordinationError as `readStoredState` */
  stateAt(place: LogPosition): Promise<Coordination>;
  /** Returns the results that a fork from there has; `state` where it is known. @throws CoordinationError as `stateAt` */
  readCarriedResults(place: LogPosition, state?: Coordination): Promise<CarriedResults>;
}

/** A position in the log of a coordination: that of the event with the sequence. */
type LogPosition = Pick<ForkedFrom, "coordinationId" | "sequence">;

/**
 * Creates the reader of the sources of forks: their state at a place, and the results that had completed by then, of
 * which it remembers a few.
 */
export function createForkSources({ store }: { readonly store: LogReader }): ForkSources {
  const cachedResults = new Map<string, CarriedResults>();
  const stateAt = ({ coordinationId, sequence }: LogPosition): Promise<Coordination> =>
    readStoredState(store, coordinationId, Math.max(sequence, 1));
  const readCarriedResults = async (
    place: LogPosition,
    stateAtPlace?: Coordination,
    forks: readonly CoordinationId[] = [],
  ): Promise<CarriedResults> => {
    const { coordinationId } = place;
    if (forks.includes(coordinationId))
      throw new CoordinationError("LEDGER_CORRUPT", `${coordinationId} is a fork of itself`);
    const key = `${place.sequence}:${coordinationId}`;
    const before = cachedResults.get(key);
    if (before) return before;
    const state = stateAtPlace ?? (await stateAt(place));
    const earlier = isForkBeingAdmitted(state)
      ? await readCarriedResults(state.created.forkedFrom, undefined, [...forks, coordinationId])
      : [];
    const carried = new Map([...earlier, ...listCarriedResults(state)]);
    rememberNewest(cachedResults, key, carried, SOURCES_MAX);
    return carried;
  };
  return { stateAt, readCarriedResults: (place, state) => readCarriedResults(place, state) };
}

type Fork = KnownCoordination & { readonly created: { readonly forkedFrom: ForkedFrom } };

/** True for a fork that is itself still being admitted: what it has from its own source is not all there yet. */
function isForkBeingAdmitted(state: Coordination): state is Fork {
  if (state.kind === "unopened" || !state.created.forkedFrom) return false;
  return (state.plan?.admitted ?? 0) < (state.created.plan?.steps ?? 0);
}

/**
 * Returns the results of all completed steps by step id, empty for an unopened coordination. Those of steps outside
 * the plan are among them, and no fork admits such a step.
 */
export function listCarriedResults(state: Coordination): CarriedResults {
  if (state.kind === "unopened") return new Map();
  const carried = new Map<StepId, CarriedResult>();
  for (const { spec, phase, lastFactId } of state.steps.values()) {
    if (phase.status !== "completed") continue;
    const { output, released } = phase;
    carried.set(spec.stepId, {
      eventId: lastFactId,
      ...(output && { output }),
      ...(released && { released }),
    });
  }
  return carried;
}
