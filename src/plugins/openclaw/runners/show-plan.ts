/** Owns: showing plans in the host's list of flows, with the objective in words as long as it is kept. */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import type { PlanSnapshot } from "../../../agents/coordination/runtime/log/plan-snapshot.ts";
import type { FlowMirror } from "./flow-mirror.ts";
import { createRecentMap } from "../../../agents/coordination/std/recent.ts";

/** Objectives that are remembered; others are read again. */
const OBJECTIVES_MAX = 100;

/**
 * Creates the function that shows a plan's newest snapshot in the host's list of flows, with the text of its
 * objective, or the coordination's id where that cannot be read.
 */
export function createShowPlan(
  mirror: FlowMirror,
  textOf: (sha256: string) => Promise<string | undefined>,
): (snapshot: PlanSnapshot) => void {
  const objectives = createRecentMap<Promise<string>>(OBJECTIVES_MAX);
  const readObjective = async ({ objective, coordinationId }: PlanSnapshot): Promise<string> => {
    try {
      return (await textOf(objective.sha256)) ?? coordinationId;
    } catch {
      return coordinationId;
    }
  };
  const newest = new Map<CoordinationId, PlanSnapshot>();
  const show = async (snapshot: PlanSnapshot): Promise<void> => {
    const { coordinationId } = snapshot;
    const isWaiting = newest.has(coordinationId);
    newest.set(coordinationId, snapshot);
    if (isWaiting) return;
    const reading = objectives.get(coordinationId) ?? readObjective(snapshot);
    objectives.set(coordinationId, reading);
    const objective = await reading;
    // Only the newest of those that came meanwhile counts.
    const latest = newest.get(coordinationId) ?? snapshot;
    newest.delete(coordinationId);
    mirror.show({ ...latest, objective });
  };
  return (snapshot) => void show(snapshot);
}
