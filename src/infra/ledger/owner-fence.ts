/** Owns: whether an append comes from the owner of its run (O2), and what it makes of who owns the run. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
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
  if (isOwner) return undefined;
  return new CoordinationError(
    "NOT_OWNER",
    `${runId} is not driven by ${owner.id} with token ${owner.token}`,
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
