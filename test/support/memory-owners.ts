/** Owns: which process drives which run (`RunOwners`) in memory, with the meaning of the port. */
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { OwnedRun, OwnerBeat, RunOwners } from "../../src/agents/coordination/ports/run-owners.ts";
import {
  createNotOwnerError,
  findLostOwnership,
  findOwnerAfterAppend,
  mustTellOwner,
  mapOwnersByRun,
  type OwnedAppend,
} from "../../src/infra/ledger/owner-fence.ts";
import type { Answer, OwnedKeptRun } from "./memory-run.ts";

export interface OwnedRuns<Summary> {
  readonly runs: ReadonlyMap<CoordinationId, OwnedKeptRun<Summary>>;
  readonly owners: Map<string, OwnerBeat>;
  readonly hasEnded: (summary: Summary) => boolean;
}

export function createMemoryOwners<Summary>(
  { runs, owners, hasEnded }: OwnedRuns<Summary>,
  answer: Answer,
): RunOwners {
  type Run = OwnedKeptRun<Summary>;
  const listOpen = (isWanted: (run: Run) => boolean, after: number, limit: number) =>
    [...runs]
      .filter(([, run]) => !hasEnded(run.summary) && run.ordinal > after && isWanted(run))
      .slice(0, limit);
  const forgetMissed = (owner: string, from: readonly string[]): void => {
    for (const run of runs.values()) {
      const id = run.owner.owner_id;
      const isGone = id !== owner && (from.includes(id) || !owners.has(id));
      if (isGone && hasEnded(run.summary)) run.hasArrived = false;
    }
  };
  return {
    beat: (owner) =>
      answer(() => {
        owners.set(owner.id, { ...owner, count: (owners.get(owner.id)?.count ?? 0) + 1 });
      }),
    beats: () => answer(() => [...owners.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))),
    remove: (id) =>
      answer(() => {
        owners.delete(id);
        forgetMissed("", [id]);
      }),
    holders: () =>
      answer(() => {
        const open = listOpen(() => true, 0, runs.size);
        return [...new Set(open.map(([, { owner }]) => owner.owner_id))].toSorted();
      }),
    take: ({ owner, from, limit, isOnlyFrom = false }) =>
      answer(() => {
        forgetMissed(owner, from);
        const isFree = ({ owner: { owner_id: id } }: Run): boolean =>
          id !== owner && (from.includes(id) || (!isOnlyFrom && !owners.has(id)));
        return listOpen(isFree, 0, limit).map(([runId, run]) => {
          run.owner = { owner_id: owner, owner_token: run.owner.owner_token + 1 };
          return ownedRunOf(runId, run);
        });
      }),
    give: (runId, owner, to) =>
      answer(() => {
        const run = runs.get(runId);
        if (!run || hasEnded(run.summary)) throw createNotOwnerError(runId, owner);
        checkOwner({ runId, owner }, run);
        run.owner = { owner_id: to, owner_token: owner.token + 1 };
        run.hasArrived = true;
      }),
    list: (id, { after, limit }) =>
      answer(() =>
        listOpen((run) => run.owner.owner_id === id, after?.ordinal ?? 0, limit).map(([runId, run]) =>
          ownedRunOf(runId, run),
        ),
      ),
    ownersOf: (runIds) =>
      answer(() =>
        mapOwnersByRun(
          runIds.flatMap((runId) => {
            const run = runs.get(runId);
            return run ? [{ run_id: runId, ...run.owner }] : [];
          }),
        ),
      ),
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

function ownedRunOf(
  runId: CoordinationId,
  { ordinal, owner: { owner_token: token } }: OwnedKeptRun<unknown>,
): OwnedRun {
  return { runId, ordinal, token };
}

/** @throws CoordinationError `NOT_OWNER` */
export function checkOwner(request: OwnedAppend, run: OwnedKeptRun<unknown> | undefined): void {
  const refusal = findLostOwnership(request, run?.owner);
  if (refusal) throw refusal;
}

export function noteOwner(request: OwnedAppend, run: OwnedKeptRun<unknown>, isNew: boolean): void {
  const before = isNew ? undefined : run.owner;
  run.owner = findOwnerAfterAppend(request, before);
  if (mustTellOwner(request, before)) run.hasArrived = true;
}
