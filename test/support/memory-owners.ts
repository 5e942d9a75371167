/** Owns: which process drives which run (`RunOwners`) in memory, with the meaning of the port. */
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { hasRunEnded } from "../../src/agents/coordination/contracts/workflows/workflow-summary.ts";
import type { OwnedRun, OwnerBeat, RunOwners } from "../../src/agents/coordination/ports/run-owners.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";
import { findLostOwner, isArrival, NOBODY, findOwnerAfter } from "../../src/infra/ledger/owner-fence.ts";
import type { Answer, MemoryRun } from "./memory-run.ts";

export interface OwnedRuns {
  readonly runs: ReadonlyMap<CoordinationId, MemoryRun>;
  readonly owners: Map<string, OwnerBeat>;
}

export function createMemoryOwners({ runs, owners }: OwnedRuns, answer: Answer): RunOwners {
  const listOpen = (isWanted: (run: MemoryRun) => boolean, after: number, limit: number) =>
    [...runs]
      .filter(([, run]) => !hasRunEnded(run.summary.status) && run.ordinal > after && isWanted(run))
      .slice(0, limit);
  return {
    beat: (owner) =>
      answer(() => {
        owners.set(owner.id, { ...owner, count: (owners.get(owner.id)?.count ?? 0) + 1 });
      }),
    beats: () => answer(() => [...owners.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))),
    remove: (id) =>
      answer(() => {
        owners.delete(id);
      }),
    take: ({ owner, from, limit }) =>
      answer(() => {
        const isFree = ({ owner: { owner_id: id } }: MemoryRun): boolean =>
          id !== owner && (!owners.has(id) || from.includes(id));
        return listOpen(isFree, 0, limit).map(([runId, run]) => {
          run.owner = { owner_id: owner, owner_token: run.owner.owner_token + 1 };
          return ownedRunOf(runId, run);
        });
      }),
    list: (id, { after, limit }) =>
      answer(() =>
        listOpen((run) => run.owner.owner_id === id, after?.ordinal ?? 0, limit).map(([runId, run]) =>
          ownedRunOf(runId, run),
        ),
      ),
    ownerOf: (runId) =>
      answer(() => {
        const { owner_id: id, owner_token: token } = runs.get(runId)?.owner ?? NOBODY;
        return id === NOBODY.owner_id ? undefined : { id, token };
      }),
    collectArrivals: (id, limit) =>
      answer(() => {
        const arrived = [...runs]
          .filter(([, { hasArrived, owner }]) => hasArrived && owner.owner_id === id)
          .slice(0, limit);
        for (const [, run] of arrived) run.hasArrived = false;
        return arrived.map(([runId, { events }]) => ({ runId, length: events.length }));
      }),
  };
}

function ownedRunOf(runId: CoordinationId, { ordinal, owner: { owner_token: token } }: MemoryRun): OwnedRun {
  return { runId, ordinal, token };
}

/** @throws CoordinationError `NOT_OWNER` */
export function checkOwner(request: WorkflowAppend, run: MemoryRun | undefined): void {
  const refusal = findLostOwner(request, run?.owner);
  if (refusal) throw refusal;
}

export function noteOwner(request: WorkflowAppend, run: MemoryRun, isNew: boolean): void {
  const before = isNew ? undefined : run.owner;
  run.owner = findOwnerAfter(request, before);
  if (isArrival(request, before)) run.hasArrived = true;
}
