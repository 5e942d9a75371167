/** Owns: when those who show plans hear of them. */
import { addMs, epochMsOf } from "../../contracts/ids.ts";
import type { Coordination } from "../../ledger/state.ts";
import { ignoreDamage } from "../log/ignore-damage.ts";
import { createPlanSnapshot } from "../log/plan-snapshot.ts";
import type { RuntimeDependencies } from "../environment/runtime-dependencies.ts";

type ShowPlanDependencies = Pick<RuntimeDependencies, "onPlan" | "runs" | "homes" | "store" | "clock">;

/** At the start so many coordinations that ended are looked at, those that began last. */
const RECENT_MAX = 200;
const RECENT_MS = 24 * 3_600_000;

/**
 * Has `onPlan` called with a snapshot of the plan once the coordination's appends are on disk or have failed, and does
 * not wait for that; does nothing without a plan, or where its home is another gateway.
 */
export function showPlan({ onPlan, runs, homes }: ShowPlanDependencies, state: Coordination): void {
  // Its owner's session, which shows it, is in its home gateway.
  if (homes?.nameAway(state) !== undefined) return;
  const snapshot = onPlan && createPlanSnapshot(state);
  if (snapshot) void runs.settled(state.coordinationId).then(() => onPlan(snapshot));
}

/**
 * Shows once more the plans among the `RECENT_MAX` newest coordinations that ended whose log has grown within
 * `RECENT_MS`, because a killed process may never have shown them as ended. Damaged ones are skipped. Does nothing
 * without `onPlan`. @throws CoordinationError where the ledger cannot be used right now
 */
export async function showRecentlyEndedPlans(dependencies: ShowPlanDependencies): Promise<void> {
  const { onPlan, store, runs, clock } = dependencies;
  if (!onPlan) return;
  const earliest = addMs(clock.now(), -RECENT_MS);
  for (const { runId, length } of await store.listUnproven({ limit: RECENT_MAX, status: "ended" })) {
    // One event tells the time; whole logs may be long.
    const [newest] = (await store.read(runId, { from: length - 1, limit: 1 }).catch(ignoreDamage)) ?? [];
    if (!newest || epochMsOf(newest.timestamp) < earliest) continue;
    const state = await runs.state(runId).catch(ignoreDamage);
    if (state) showPlan(dependencies, state);
  }
}
