/** Owns: spawns with privileges of which an earlier process died before it had recorded their children. */
import type { CoordinationId, EpochMs } from "../../contracts/ids.ts";
import { findSessionOfPhase, listOpenSteps, type Coordination, type Step } from "../../ledger/state.ts";
import type { LedgerStore } from "../../ports/ledger-store.ts";
import { createOnceLoader } from "../../std/load-once.ts";
import { listRuns } from "../log/read-pages.ts";
import { readUnlessDamaged } from "../log/read-state.ts";
import type { RunLog } from "../log/run-log.ts";

export interface ChildlessSpawnDependencies {
  readonly store: Pick<LedgerStore, "list">;
  readonly runs: Pick<RunLog, "findOnDisk">;
  /** When this process began: it waits by itself for the children of its own spawns. */
  readonly beganAtMs: EpochMs;
  /** True of a coordination that another gateway opened. */
  readonly isAway: (state: Coordination) => boolean;
}

/**
 * Returns a function that is true while a spawn with privileges that an earlier process began may have a child that the
 * ledger does not know. It lists the coordinations with such spawns once and then looks only at those: no more can come up.
 */
export function createChildlessSpawnFinder(dependencies: ChildlessSpawnDependencies): () => Promise<boolean> {
  const listOnce = createOnceLoader(() => listCoordinations(dependencies));
  let remaining: readonly CoordinationId[] | undefined;
  return async () => {
    const found: CoordinationId[] = [];
    for (const coordinationId of remaining ?? (await listOnce()))
      if (await hasChildlessSpawn(dependencies, coordinationId)) found.push(coordinationId);
    remaining = found;
    return found.length > 0;
  };
}

async function listCoordinations(dependencies: ChildlessSpawnDependencies): Promise<CoordinationId[]> {
  const found: CoordinationId[] = [];
  for await (const { runId, summary } of listRuns(dependencies.store, { status: "running" }))
    if (summary.steps.open > 0 && (await hasChildlessSpawn(dependencies, runId))) found.push(runId);
  return found;
}

/**
 * True where a coordination has such a spawn. D1: a child that is recorded and not on disk yet cannot be found by its
 * session. One that a damaged log may hide is nobody's: nothing will ever be recorded there.
 */
async function hasChildlessSpawn(
  { runs, beganAtMs, isAway }: ChildlessSpawnDependencies,
  coordinationId: CoordinationId,
): Promise<boolean> {
  const find = (state: Coordination): true | undefined => {
    // The agents of a plan, and so what they spawn, may be in any gateway.
    if (state.kind !== "open" || (!state.plan && isAway(state))) return undefined;
    return listOpenSteps(state).some((step) => isChildless(step, beganAtMs)) || undefined;
  };
  return (await readUnlessDamaged(() => runs.findOnDisk(coordinationId, find))) === true;
}

/** True of a spawn of a model: where we choose the session of an attempt, its dispatch names it. */
function isChildless({ spec, phase }: Step, beganAtMs: EpochMs): boolean {
  return (
    spec.privilege !== undefined &&
    phase.status === "dispatched" &&
    phase.dispatchedAtMs < beganAtMs &&
    findSessionOfPhase(phase) === undefined
  );
}
