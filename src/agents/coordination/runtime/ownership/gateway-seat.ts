/**
 * Owns: that one process at a time drives coordinations under the name of a gateway.
 *
 * G1 A process begins after no other one of its gateway told of itself for a whole lease, by this process's own steady clock (O4), or
 * every other one is known to have ended. Two that begin at once both withdraw when they see each other.
 */
import { CoordinationError } from "../../contracts/errors.ts";
import type { Clock, SteadyClock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { OwnerBeat, RunOwner, RunOwners } from "../../ports/run-owners.ts";
import { waitForDuration } from "../../std/wait-for.ts";
import { parseGatewayOwnerId } from "./gateway-owner.ts";

export interface SeatDependencies {
  readonly owners: RunOwners;
  /** Its id is one of `createGatewayOwnerId`. */
  readonly owner: RunOwner;
  readonly clock: Clock;
  readonly steady: SteadyClock;
  readonly leaseMs: number;
  /** True when a process is known to have ended; false where it is there, or where nothing is known of it. */
  readonly isProcessGone: (process: string) => boolean;
  readonly logger: Logger;
  /** Aborted when the process stops: then it waits for nobody. */
  readonly signal?: AbortSignal;
}

/** Looks at others in the time of a lease. */
const LOOKS_PER_LEASE = 5;

/**
 * Waits, for a lease at most, until earlier processes of this gateway are gone, removes them from the list of owners
 * and adds this one. @throws CoordinationError `LEDGER_BUSY` where another one is there, and `LEDGER_CLOSED` when the
 * process stops
 */
export async function takeSeat(dependencies: SeatDependencies): Promise<void> {
  await waitForRivals(dependencies);
  await dependencies.owners.beat(dependencies.owner);
  const [rival] = await listRivals(dependencies);
  if (!rival) return;
  await dependencies.owners.remove(dependencies.owner.id);
  throw createGatewayTakenError(dependencies);
}

/** Resolves when every other process of this gateway has left, or is known to be gone and is removed. */
async function waitForRivals(dependencies: SeatDependencies): Promise<void> {
  const first = await listRivals(dependencies);
  const sinceMs = dependencies.steady.elapsedMs();
  if (first.length > 0)
    dependencies.logger.info({}, "waits for the lease of this gateway's earlier process to end");
  let rivals = first;
  while (rivals.length > 0 && dependencies.steady.elapsedMs() - sinceMs < dependencies.leaseMs) {
    await waitForDuration(dependencies.clock, dependencies.leaseMs / LOOKS_PER_LEASE, dependencies.signal);
    if (dependencies.signal?.aborted)
      throw new CoordinationError("LEDGER_CLOSED", "coordination stopped before it had begun");
    rivals = await listRivals(dependencies);
    assertNoLivingRivals(
      dependencies,
      first,
      rivals.filter(({ process }) => process === undefined || process !== dependencies.owner.process),
    );
  }
  // This process itself may take longer to end what it drove before its configuration was changed.
  assertNoLivingRivals(dependencies, first, rivals);
  for (const { id } of rivals) await dependencies.owners.remove(id);
}

/** @throws CoordinationError `LEDGER_BUSY` when one of them told of itself after the first look */
function assertNoLivingRivals(
  dependencies: SeatDependencies,
  first: readonly OwnerBeat[],
  rivals: readonly OwnerBeat[],
): void {
  if (rivals.some(({ id, count }) => first.find((rival) => rival.id === id)?.count !== count))
    throw createGatewayTakenError(dependencies);
}

/** Lists the rows of other processes of this gateway, and removes those whose process is known to have ended. */
async function listRivals({ owners, owner, isProcessGone }: SeatDependencies): Promise<OwnerBeat[]> {
  const rivals: OwnerBeat[] = [];
  for (const row of await owners.beats()) {
    if (row.id === owner.id || !isOfSameGateway(owner, row)) continue;
    if (row.process !== undefined && isProcessGone(row.process)) await owners.remove(row.id);
    else rivals.push(row);
  }
  return rivals;
}

/**
 * True where both owners are processes of one gateway, at the same time or one after the other; false where the first
 * is no gateway.
 */
export function isOfSameGateway(owner: RunOwner, { id }: RunOwner): boolean {
  const gateway = parseGatewayOwnerId(owner.id);
  return gateway !== undefined && gateway === parseGatewayOwnerId(id);
}

function createGatewayTakenError({ owner }: SeatDependencies): CoordinationError {
  const gateway = parseGatewayOwnerId(owner.id) ?? owner.id;
  return new CoordinationError(
    "LEDGER_BUSY",
    `another process drives coordinations of this ledger as gateway ${gateway}; stop it, or give this one a gateway.id of its own`,
  );
}
