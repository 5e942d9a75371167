/** Owns: spawns with privileges of which an earlier process died before it had recorded their children. */
import type { CoordinationId, EpochMs, SessionKey } from "../../contracts/ids.ts";
import { findSessionOfPhase, listOpenSteps, type Coordination, type Step } from "../../ledger/state.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LedgerStore } from "../../ports/ledger-store.ts";
import type { ListQuery } from "../../ports/run-store.ts";
import { createOnceLoader } from "../../std/load-once.ts";
import { listRuns } from "../log/read-pages.ts";
import { readUnlessDamaged } from "../log/read-state.ts";
import type { RunLog } from "../log/run-log.ts";

export interface ChildlessSpawnDependencies {
  readonly store: Pick<LedgerStore, "listUnproven">;
  readonly runs: Pick<RunLog, "findOnDisk">;
  /** When this process began: it waits by itself for the children of its own spawns. */
  readonly beganAtMs: EpochMs;
  readonly clock: Pick<Clock, "now">;
  /** True of a coordination that another gateway opened. */
  readonly isAway: (state: Coordination) => boolean;
}

/**
 * Returns a function that is true while a spawn with privileges that an earlier process began, and that this session made,
 * may have a child that the ledger does not know; where nobody knows who made the child, while any such spawn may. It lists
 * the coordinations once, and looks only at those that had such a spawn when it last looked: no more can come up.
 */
export function createChildlessSpawnFinder(
  dependencies: ChildlessSpawnDependencies,
): (parent: SessionKey | undefined) => Promise<boolean> {
  const listOnce = createOnceLoader(() => listCoordinations(dependencies));
  let remaining: readonly CoordinationId[] | undefined;
  return async (parent) => {
    const found: CoordinationId[] = [];
    let isOfParent = false;
    for (const coordinationId of remaining ?? (await listOnce())) {
      const sources = await listSourcesOfChildless(dependencies, coordinationId);
      if (sources.length > 0) found.push(coordinationId);
      isOfParent ||= sources.some((source) => parent === undefined || source === parent);
    }
    remaining = found;
    return isOfParent;
  };
}

/** Lists the coordinations that may have open steps; one whose summary is unreadable may. */
async function listCoordinations({ store }: ChildlessSpawnDependencies): Promise<CoordinationId[]> {
  const found: CoordinationId[] = [];
  const listed = { list: (query: ListQuery) => store.listUnproven(query) };
  for await (const { runId, summary } of listRuns(listed, { status: "running" }))
    if (summary?.steps.open !== 0) found.push(runId);
  return found;
}

/**
 * Lists the sessions that made such spawns of a coordination. D1: a child that is recorded and not on disk yet cannot be
 * found by its session. One that a damaged log may hide is nobody's: nothing will ever be recorded there.
 */
async function listSourcesOfChildless(
  { runs, beganAtMs, clock, isAway }: ChildlessSpawnDependencies,
  coordinationId: CoordinationId,
): Promise<readonly SessionKey[]> {
  const find = (state: Coordination): readonly SessionKey[] | undefined => {
    // The agents of a plan, and so what they spawn, may be in any gateway.
    if (state.kind !== "open" || (!state.plan && isAway(state))) return undefined;
    const now = clock.now();
    const childless = listOpenSteps(state).filter((step) => isChildless(step, beganAtMs, now));
    return childless.length === 0 ? undefined : childless.map(({ spec }) => spec.sourceSession);
  };
  return (await readUnlessDamaged(() => runs.findOnDisk(coordinationId, find))) ?? [];
}

/**
 * True of a spawn of a model: where we choose the session of an attempt, its dispatch names it. A spawn that was begun
 * later than now is of an earlier process, after which the clock was put back.
 */
function isChildless({ spec, phase }: Step, beganAtMs: EpochMs, now: EpochMs): boolean {
  return (
    spec.privilege !== undefined &&
    phase.status === "dispatched" &&
    (phase.dispatchedAtMs < beganAtMs || phase.dispatchedAtMs > now) &&
    findSessionOfPhase(phase) === undefined
  );
}
