/**
 * Owns: that one gateway drives the coordinations of a ledger which several can reach, and one process of it at a time.
 *
 * G1 The coordinations of a ledger are those of the gateway that drove them first, by its name: their children and sessions are
 * there, and another gateway would give up work that goes on, and tell sessions of its own. It is refused.
 * G2 A process drives them after no other one told of itself for a whole lease, by this process's own steady clock (O4), or
 * every other one is known to have ended. Of two that begin at once, each withdraws when it sees the other.
 * G3 A process that could not tell of itself for a lease, because it was paused or cut off, appends nothing until it knows that
 * no other one took its place; where one did, it appends nothing more.
 */
import { CoordinationError } from "../../contracts/errors.ts";
import { addMs } from "../../contracts/ids.ts";
import type { Clock, SteadyClock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import type { OwnerBeat, RunOwner, RunOwners } from "../../ports/run-owners.ts";
import { createHomeOwnerId, isHomeOwnerId, parseGatewayOwnerId } from "./gateway-owner.ts";

export interface GatewaySeat {
  /** @throws CoordinationError `NOT_OWNER` while it is not certain that this process may append (G3) */
  check(): void;
  /** Lets another process of this gateway drive them at once. */
  leave(): Promise<void>;
}

export interface SeatParts {
  readonly owners: Pick<RunOwners, "beat" | "beats" | "remove">;
  /** Its id is one of `createGatewayOwnerId`. */
  readonly owner: RunOwner;
  readonly clock: Clock;
  readonly steady: SteadyClock;
  readonly leaseMs: number;
  readonly isProcessGone: (process: string) => boolean;
  readonly logger: Logger;
  /** Hears once that another process drives them now. */
  readonly onLost: () => void;
}

/** Beats, and looks at those of others, in the time of a lease: a few may come late. */
const BEATS_PER_LEASE = 5;

interface Seated extends SeatParts {
  /** By the steady clock, before the newest beat that arrived was sent. */
  beatAtMs: number;
  isLost: boolean;
  isLeft: boolean;
  cancel: () => void;
}

/** @throws CoordinationError `LEDGER_BUSY` where the coordinations are another gateway's, or another process drives them */
export async function takeSeat(parts: SeatParts): Promise<GatewaySeat> {
  await waitForRivals(parts);
  const seated: Seated = {
    ...parts,
    beatAtMs: parts.steady.elapsedMs(),
    isLost: false,
    isLeft: false,
    cancel: () => undefined,
  };
  await parts.owners.beat(parts.owner);
  const [rival] = await listRivals(parts);
  if (rival) {
    await parts.owners.remove(parts.owner.id);
    throw createTakenError(parts, rival);
  }
  await keepHome(parts);
  scheduleBeat(seated);
  return {
    check: () => {
      if (!isCertain(seated)) throw createLostError();
    },
    leave: async () => {
      seated.isLeft = true;
      seated.cancel();
      if (!seated.isLost) await parts.owners.remove(parts.owner.id);
    },
  };
}

/** Tells for as long as there is the ledger whose its coordinations are (G1). */
async function keepHome({ owners, owner }: SeatParts): Promise<void> {
  const id = createHomeOwnerId(parseGatewayOwnerId(owner.id) ?? owner.id);
  if (!(await owners.beats()).some((row) => row.id === id)) await owners.beat({ id });
}

/** Resolves when every other process of this gateway has left, or is known to be gone and is removed. */
async function waitForRivals(parts: SeatParts): Promise<void> {
  const first = await listRivals(parts);
  const foreign = first.find((rival) => !isOfSameGateway(parts, rival));
  if (foreign) throw createTakenError(parts, foreign);
  const sinceMs = parts.steady.elapsedMs();
  if (first.length > 0) parts.logger.info({}, "waits for the lease of this gateway's earlier process to end");
  let rivals = first;
  while (rivals.length > 0 && parts.steady.elapsedMs() - sinceMs < parts.leaseMs) {
    await waitFor(parts, parts.leaseMs / BEATS_PER_LEASE);
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
  const living = rivals.find(({ id, count }) => first.find((rival) => rival.id === id)?.count !== count);
  if (living) throw createTakenError(parts, living);
}

function waitFor({ clock }: SeatParts, durationMs: number): Promise<void> {
  return new Promise((resolve) => clock.wakeAt(addMs(clock.now(), durationMs), resolve));
}

/**
 * Lists the rows of other gateways, and of other processes of this one. Of this one, those whose process is known to have ended
 * are removed.
 */
async function listRivals(parts: SeatParts): Promise<OwnerBeat[]> {
  const { owners, owner, isProcessGone } = parts;
  const rivals: OwnerBeat[] = [];
  for (const row of await owners.beats()) {
    if (row.id === owner.id || parseGatewayOwnerId(row.id) === undefined) continue;
    const isOwn = isOfSameGateway(parts, row);
    if (isOwn && isHomeOwnerId(row.id)) continue;
    if (isOwn && row.process !== undefined && isProcessGone(row.process)) await owners.remove(row.id);
    else rivals.push(row);
  }
  return rivals;
}

function isOfSameGateway({ owner }: SeatParts, row: OwnerBeat): boolean {
  return parseGatewayOwnerId(owner.id) === parseGatewayOwnerId(row.id);
}

function isCertain({ isLost, beatAtMs, steady, leaseMs }: Seated): boolean {
  return !isLost && steady.elapsedMs() - beatAtMs < leaseMs;
}

function scheduleBeat(seated: Seated): void {
  if (seated.isLeft || seated.isLost) return;
  const { clock, leaseMs, logger } = seated;
  seated.cancel = clock.wakeAt(addMs(clock.now(), leaseMs / BEATS_PER_LEASE), () => {
    sendBeat(seated)
      .catch((error: unknown) => {
        const name = error instanceof Error ? error.name : "unknown";
        if (!seated.isLeft)
          logger.warn({ error: name }, "the ledger could not be told that this gateway is there");
      })
      .finally(() => {
        scheduleBeat(seated);
      });
  });
}

async function sendBeat(seated: Seated): Promise<void> {
  const { owners, owner, steady } = seated;
  const sentAtMs = steady.elapsedMs();
  await owners.beat(owner);
  if (seated.isLeft) {
    // It was under way when this gateway left.
    await owners.remove(owner.id);
    return;
  }
  // Also in time: a beat that arrived late may follow on the beat of who took the place.
  const rivals = await listRivals(seated);
  if (rivals.length === 0) seated.beatAtMs = sentAtMs;
  else await giveUp(seated);
}

async function giveUp(seated: Seated): Promise<void> {
  seated.isLost = true;
  seated.logger.error(
    { owner: seated.owner.id },
    "another process drives the coordinations of this ledger now; restart this gateway when that one is stopped",
  );
  seated.onLost();
  await seated.owners.remove(seated.owner.id);
}

function createTakenError(parts: SeatParts, rival: OwnerBeat): CoordinationError {
  const gateway = parseGatewayOwnerId(rival.id) ?? rival.id;
  const message = isOfSameGateway(parts, rival)
    ? `another process drives the coordinations of this ledger as gateway ${gateway}; stop it, or give this one a gateway.id and a database of its own`
    : `gateway ${gateway} drives the coordinations of this ledger, and no other one does; give this one a database of its own, or, when that one is gone for good, its name as gateway.id`;
  return new CoordinationError("LEDGER_BUSY", message);
}

function createLostError(): CoordinationError {
  return new CoordinationError(
    "NOT_OWNER",
    "this gateway could not tell the ledger for a whole lease that it is there; another one may drive its coordinations now",
  );
}
