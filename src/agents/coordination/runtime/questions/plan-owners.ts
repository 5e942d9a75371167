/** Owns: whose plans a question belongs to. */
import type { SessionKey } from "../../contracts/ids.ts";
import type { Coordination, OpenCoordination } from "../../ledger/state.ts";
import type { RunLog } from "../log/run-log.ts";

/** Lists the sessions whose plans they are: that of the coordination, and those around it. */
export async function listPlanOwners(
  runs: Pick<RunLog, "state">,
  innermost: OpenCoordination,
): Promise<SessionKey[]> {
  const owners: SessionKey[] = [];
  let state: Coordination = innermost;
  while (state.kind !== "unopened" && state.created.plan) {
    const { ownerSession, parent } = state.created;
    owners.push(ownerSession);
    if (!parent) break;
    state = await runs.state(parent.coordinationId);
  }
  return owners;
}
