/**
 * Owns: the ledger of a gateway, open for writing. One that is on a server may be reached by other gateways: one of them drives
 * its coordinations (`gateway-seat.ts`), and no other one appends to them.
 */
import { randomUUID } from "node:crypto";
import { createGatewayOwnerId } from "../agents/coordination/runtime/ownership/gateway-owner.ts";
import type { Clock, SteadyClock } from "../agents/coordination/ports/clock.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import type { RunOwner } from "../agents/coordination/ports/run-owners.ts";
import { takeSeat, type GatewaySeat } from "../agents/coordination/runtime/ownership/gateway-seat.ts";
import { isProcessGone, readProcessName } from "../platform/process-name.ts";
import { isPostgresUrl, openLedgerStore } from "./open-ledger-store.ts";

/** A gateway that is not heard of for so long has lost its place. */
const LEASE_MS = 10_000;
/** A gateway must not be blocked by another process's lock for longer than this. */
const BUSY_TIMEOUT_MS = 100;

type OpenedLedger = Awaited<ReturnType<typeof openLedgerStore>>;

export interface GatewayLedgerOptions {
  /** The path of a file, or the URL of a server. */
  readonly place: string;
  /** Names the gateway. */
  readonly gateway: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly steady: SteadyClock;
  /** Hears once that another process drives the coordinations now. */
  readonly onLost: () => void;
  /** Absent: 10 seconds. */
  readonly leaseMs?: number;
}

/** @throws CoordinationError as `openDatabase` of the kind does; `LEDGER_BUSY` where they are another gateway's */
export async function openGatewayLedger(options: GatewayLedgerOptions): Promise<OpenedLedger> {
  const { place } = options;
  const store = await openLedgerStore({ place, mode: "write", busyTimeoutMs: BUSY_TIMEOUT_MS });
  if (!isPostgresUrl(place)) return store;
  try {
    return guardStore(store, await takeOwnSeat(store, options));
  } catch (error) {
    await store.close();
    throw error;
  }
}

function takeOwnSeat(
  { workflows: { owners } }: OpenedLedger,
  { gateway, leaseMs = LEASE_MS, ...options }: GatewayLedgerOptions,
): Promise<GatewaySeat> {
  const process = readProcessName();
  const owner: RunOwner = {
    id: createGatewayOwnerId(gateway, randomUUID()),
    ...(process !== undefined && { process }),
  };
  return takeSeat({ ...options, owners, owner, leaseMs, isProcessGone });
}

function guardStore(store: OpenedLedger, seat: GatewaySeat): OpenedLedger {
  return {
    ...store,
    append: async (request) => {
      seat.check();
      await store.append(request);
    },
    close: async () => {
      // A server that is away is no reason to keep connections open.
      await seat.leave().catch(() => undefined);
      await store.close();
    },
  };
}
