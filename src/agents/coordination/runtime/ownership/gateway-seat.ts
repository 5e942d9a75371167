/**
 * Owns: that one process at a time drives coordinations under the name of a gateway.
 *
 * G1 A process begins after no other one of its gateway told of itself for a whole lease, by this process's own steady clock (O4), or
 * every other one is known to have ended. Two that begin at once both withdraw when they see each other.
 */
import { CoordinationError } from "../../contracts/errors.ts";
import { addMs } from "../../contracts/ids.ts";
import type { Clock, SteadyClock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { OwnerBeat, RunOwner, RunOwners } from "../../ports/run-owners.ts";
import { parseGatewayOwnerId } from "./gateway-owner.ts";

export interface SeatParts {
  readonly owners: RunOwners;
  /** Its id is one of `createGatewayOwnerId`. */
  readonly owner: RunOwner;
  readonly clock: Clock;
  readonly steady: SteadyClock;
  readonly leaseMs: number;
  /** True when a process is known to have ended; false where it is there, or where nothing is known of it. */
  readonly isProcessGone: (process: string) => boolean;
  readonly logger: Logger;
}

/** Looks at others in the time of a lease. */
const LOOKS_PER_LEASE = 5;

/** Resolves when this process is the one of its gateway. @throws CoordinationError `LEDGER_BUSY` where another one is */
export async function takeSeat(parts: SeatParts): Promise<void> {
  await waitForRivals(parts);
  await parts.owners.beat(parts.owner);
  const [rival] = await listRivals(parts);
  if (!rival) return;
  await parts.owners.remove(parts.owner.id);
  throw createTakenError(parts);
}

/** Resolves when every other process of this gateway has left, or is known to be gone and is removed. */
async function waitForRivals(parts: SeatParts): Promise<void> {
  const first = await listRivals(parts);
  const sinceMs = parts.steady.elapsedMs();
  if (first.length > 0) parts.logger.info({}, "waits for the lease of this gateway's earlier process to end");
  let rivals = first;
  while (rivals.length > 0 && parts.steady.elapsedMs() - sinceMs < parts.leaseMs) {
    await waitFor(parts, parts.leaseMs / LOOKS_PER_LEASE);
    rivals = await listRivals(parts);
    refuseLiving(
      parts,
      first,
      rivals.filter(({ process }) => process === undefined || process !== parts.owner.process),
    );
  }
  // This process itself may take longer to end what it drove before its configuration was changed.
  refuseLiving(parts, first, rivals);
  for (const { id } of rivals) await parts.owners.remove(id);
}

/** @throws CoordinationError `LEDGER_BUSY` when one of them told of itself after the first look */
function refuseLiving(parts: SeatParts, first: readonly OwnerBeat[], rivals: readonly OwnerBeat[]): void {
  if (rivals.some(({ id, count }) => first.find((rival) => rival.id === id)?.count !== count))
    throw createTakenError(parts);
}

function waitFor({ clock }: SeatParts, durationMs: number): Promise<void> {
  return new Promise((resolve) => clock.wakeAt(addMs(clock.now(), durationMs), resolve));
}

/** Lists the rows of other processes of this gateway, and removes those whose process is known to have ended. */
async function listRivals({ owners, owner, isProcessGone }: SeatParts): Promise<OwnerBeat[]> {
  const rivals: OwnerBeat[] = [];
  for (const row of await owners.beats()) {
    if (row.id === owner.id || !isOfSameGateway(owner, row)) continue;
    if (row.process !== undefined && isProcessGone(row.process)) await owners.remove(row.id);
    else rivals.push(row);
  }
  return rivals;
}

/** True for another process, or an earlier one, of the gateway that an owner is. */
export function isOfSameGateway(owner: RunOwner, { id }: RunOwner): boolean {
  const gateway = parseGatewayOwnerId(owner.id);
  return gateway !== undefined && gateway === parseGatewayOwnerId(id);
}

function createTakenError({ owner }: SeatParts): CoordinationError {
  const gateway = parseGatewayOwnerId(owner.id) ?? owner.id;
  return new CoordinationError(
    "LEDGER_BUSY",
    `another process drives coordinations of this ledger as gateway ${gateway}; stop it, or give this one a gateway.id of its own`,
  );
}
