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

/** Returns the refusal of an append by a process that does not own the run any more. */
export function findLostOwner(
  { runId, owner }: OwnedAppend,
  head: OwnerRow | undefined,
): CoordinationError | undefined {
  if (!owner) return undefined;
  const isOwner = head ? head.owner_id === owner.id && head.owner_token === owner.token : owner.token === 1;
  return isOwner ? undefined : createNotOwner(runId, owner);
}

export function createNotOwner(runId: string, { id, token }: OwnerToken): CoordinationError {
  return new CoordinationError("NOT_OWNER", `${runId} is not driven by ${id} with token ${token}`);
}

/** Returns the owners that rows name, by the ids of the runs. */
export function listOwners(
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

/** Returns who owns the run after an append that was not refused. */
export function findOwnerAfter({ owner }: OwnedAppend, head: OwnerRow | undefined): OwnerRow {
  if (head) return { owner_id: head.owner_id, owner_token: head.owner_token };
  return owner ? { owner_id: owner.id, owner_token: owner.token } : NOBODY;
}

/** True when the owner of the run has to be told of the append. */
export function isArrival({ owner }: OwnedAppend, head: OwnerRow | undefined): boolean {
  return !owner && head !== undefined && head.owner_id !== NOBODY.owner_id;
}
