/** Owns: when those who show plans hear of them. */
import { addMs } from "../../contracts/ids.ts";
import type { Coordination } from "../../ledger/state.ts";
import { createPlanSnapshot } from "../log/plan-snapshot.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

type Telling = Pick<RuntimeDependencies, "onPlan" | "runs" | "homes" | "store" | "clock">;

/** At the start so many of the newest ended plans are shown once more. */
const RECENT_MAX = 20;
const RECENT_MS = 24 * 3_600_000;

/**
 * Has `onPlan` called with a snapshot of the plan once the coordination's appends are on disk or have failed, and does
 * not wait for that; does nothing without a plan, or where its home is another gateway.
 */
export function showPlan({ onPlan, runs, homes }: Telling, state: Coordination): void {
  // Its owner's session, which shows it, is in its home gateway.
  if (homes?.nameAway(state) !== undefined) return;
  const snapshot = onPlan && createPlanSnapshot(state);
  if (snapshot) void runs.settled(state.coordinationId).then(() => onPlan(snapshot));
}

/**
 * Shows once more up to `RECENT_MAX` ended plans that were begun within `RECENT_MS`, because a killed process may
 * never have shown them as ended; does nothing without `onPlan`.
 */
export async function showRecentlyEndedPlans(dependencies: Telling): Promise<void> {
  if (!dependencies.onPlan) return;
  const earliest = addMs(dependencies.clock.now(), -RECENT_MS);
  for (const { runId, summary } of await dependencies.store.list({ limit: RECENT_MAX, status: "ended" }))
    if (summary.createdAtMs >= earliest) showPlan(dependencies, await dependencies.runs.state(runId));
}
