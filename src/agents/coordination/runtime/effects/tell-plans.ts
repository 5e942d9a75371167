/** Owns: when those who show plans hear of them. */
import { addMs } from "../../contracts/ids.ts";
import type { Coordination } from "../../ledger/state.ts";
import { planSnapshot } from "../log/plan-snapshot.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

type Telling = Pick<RuntimeDependencies, "onPlan" | "runs" | "homes" | "store" | "clock">;

/** At the start so many of the newest ended plans are shown once more. */
const RECENT_MAX = 20;
const RECENT_MS = 24 * 3_600_000;

/** Shows a plan to its watchers, once its state is on disk or could not be brought there. */
export function tellPlan({ onPlan, runs, homes }: Telling, state: Coordination): void {
  // Its owner's session, which shows it, is in its home gateway.
  if (homes?.nameAway(state) !== undefined) return;
  const snapshot = onPlan && planSnapshot(state);
  if (snapshot) void runs.settled(state.coordinationId).then(() => onPlan(snapshot));
}

/** A process that was killed may have ended plans that were never shown as ended. */
export async function tellRecentPlans(dependencies: Telling): Promise<void> {
  if (!dependencies.onPlan) return;
  const earliest = addMs(dependencies.clock.now(), -RECENT_MS);
  for (const { runId, summary } of await dependencies.store.list({ limit: RECENT_MAX, status: "ended" }))
    if (summary.createdAtMs >= earliest) tellPlan(dependencies, await dependencies.runs.state(runId));
}
