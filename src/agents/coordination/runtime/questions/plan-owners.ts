/** Owns: whose plans a question belongs to, and for whom in the end its agents work. */
import type { OwnerPlace } from "../../contracts/coordination-summary.ts";
import type { Answerer } from "../../contracts/escalation.ts";
import type { CoordinationId, SessionKey } from "../../contracts/ids.ts";
import type { Coordination, Escalation, OpenCoordination } from "../../ledger/state.ts";
import { nameChildReference } from "../../ledger/summary.ts";
import type { RunLog } from "../log/run-log.ts";

/** A question to people, its coordination and who answers it. */
interface QuestionToAnswer {
  readonly state: OpenCoordination;
  readonly question: Escalation;
  readonly request: { readonly by: Answerer };
}

/**
 * Lists the sessions that own the plan of a question and the plans around it, whose approval may not count;
 * `undefined` unless the plan is nested, a different approver is required and a session answers.
 */
export async function listPlanOwners(
  runs: Pick<RunLog, "state">,
  { state: innermost, question: { requireDifferentApprover }, request: { by } }: QuestionToAnswer,
): Promise<SessionKey[] | undefined> {
  if (!innermost.created.parent || !requireDifferentApprover || by.session === undefined) return undefined;
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

/** As of `LedgerStore`. Whose a coordination is stands in its summary, which is there for a damaged log, too. */
export interface OwnerReads {
  holders(name: string, limit: number): Promise<readonly CoordinationId[]>;
  findUnproven(coordinationId: CoordinationId): Promise<{ readonly summary?: OwnerPlace } | undefined>;
}

/**
 * Lists the owner of the coordination that a session was spawned in, then the one above that owner, and so on, as far
 * as the spawns are recorded; empty where nobody spawned it.
 */
export async function listOwnersAround(reads: OwnerReads, session: SessionKey): Promise<OwnerPlace[]> {
  const owners: OwnerPlace[] = [];
  const passed = new Set<SessionKey>();
  let child = session;
  // A host may use a key again, so that a session seems to be its own parent.
  while (!passed.has(child)) {
    passed.add(child);
    const [runId] = await reads.holders(nameChildReference(child), 1);
    const owner = runId && (await reads.findUnproven(runId))?.summary;
    if (!owner) break;
    if (!passed.has(owner.ownerSession)) owners.push(owner);
    child = owner.ownerSession;
  }
  return owners;
}
