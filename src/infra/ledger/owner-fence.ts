/** Owns: whether a write comes from the owner of its run (O2), and who owns the run after it. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { OwnerToken } from "../../agents/coordination/ports/run-owners.ts";

/** Tells who owns a run, as its row says. */
export interface OwnerRow {
  /** Empty: nobody. */
  readonly owner_id: string;
  readonly owner_token: number;
}

export const NOBODY: OwnerRow = { owner_id: "", owner_token: 0 };

export interface OwnedAppend {
  readonly runId: string;
  readonly owner?: OwnerToken;
}

/**
 * Returns the `NOT_OWNER` error of an append by a process that does not own the run any more; `undefined` where it
 * does, and for an append that names no owner. Does not throw.
 */
export function findLostOwnership(
  { runId, owner }: OwnedAppend,
  head: OwnerRow | undefined,
): CoordinationError | undefined {
  if (!owner) return undefined;
  const isOwner = head ? head.owner_id === owner.id && head.owner_token === owner.token : owner.token === 1;
  return isOwner ? undefined : createNotOwnerError(runId, owner);
}

/** Creates the `NOT_OWNER` error that a run is not driven by this owner with this token. */
export function createNotOwnerError(runId: string, { id, token }: OwnerToken): CoordinationError {
  return new CoordinationError("NOT_OWNER", `${runId} is not driven by ${id} with token ${token}`);
}

/** Returns the owners of the runs of rows by the runs' ids; runs that nobody owns are left out. */
export function mapOwnersByRun(
  rows: readonly (OwnerRow & { readonly run_id: string })[],
): Map<CoordinationId, OwnerToken> {
  const ownedRows = rows.filter(({ owner_id }) => owner_id !== NOBODY.owner_id);
  return new Map(
    ownedRows.map(({ run_id, owner_id: id, owner_token: token }) => [
      run_id as CoordinationId,
      { id, token },
    ]),
  );
}

/**
 * Returns the owner to store with a run after an append that was not refused: the stored one, or for a new run the one
 * of the append, or nobody.
 */
export function findOwnerAfterAppend({ owner }: OwnedAppend, head: OwnerRow | undefined): OwnerRow {
  if (head) return { owner_id: head.owner_id, owner_token: head.owner_token };
  return owner ? { owner_id: owner.id, owner_token: owner.token } : NOBODY;
}

/**
 * Returns whether an append was made by another process than the run's owner, who then has to be told of it: the
 * append names no owner, but the stored run has one.
 */
export function mustTellOwner({ owner }: OwnedAppend, head: OwnerRow | undefined): boolean {
  return !owner && head !== undefined && head.owner_id !== NOBODY.owner_id;
}
