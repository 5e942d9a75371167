/** Owns: the ledger of a gateway, open for writing. One that is on a server is shared with other gateways. */
import { randomUUID } from "node:crypto";
import type { GatewayConfig } from "../agents/coordination/contracts/config/ledger-config.ts";
import { createGatewayOwnerId } from "../agents/coordination/runtime/ownership/gateway-owner.ts";
import type { Clock, SteadyClock } from "../agents/coordination/ports/clock.ts";
import type { Logger } from "../agents/coordination/ports/logger.ts";
import type { RunOwner } from "../agents/coordination/ports/run-owners.ts";
import { takeSeat } from "../agents/coordination/runtime/ownership/gateway-seat.ts";
import type { SharedLedgerDependencies } from "../agents/coordination/runtime/ownership/shared-ledger.ts";
import { isProcessGone, readProcessName } from "../platform/process-name.ts";
import type { NoteAppend } from "./metrics/time-appends.ts";
import { isPostgresUrl, openLedgerStore } from "./open-ledger-store.ts";

/** A file that another process has locked blocks the whole gateway for so long. */
const FILE_BUSY_MS = 100;
/** On a server only appends wait. A process that was stopped in the middle of one holds the lock for 2 s. */
const SERVER_BUSY_MS = 5_000;

export interface GatewayLedger {
  readonly store: Awaited<ReturnType<typeof openLedgerStore>>;
  /** Absent for a file, which is this gateway's alone. */
  readonly shared?: Omit<SharedLedgerDependencies, "owners" | "onReplaced">;
}

export interface GatewayLedgerOptions {
  /** The path of a file, or the URL of a server. */
  readonly place: string;
  /** Names the gateway. */
  readonly gateway: string;
  readonly settings: Pick<GatewayConfig, "leaseMs" | "orphanMs">;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly steady: SteadyClock;
  /** Aborted when the gateway stops. */
  readonly signal?: AbortSignal;
  /** Hears how long each append took; absent: nobody measures. */
  readonly noteAppend?: NoteAppend;
}

/**
 * Opens the gateway's ledger for writing and returns its store; for a ledger on a server it first waits for the seat
 * of this gateway's name, and returns the settings of sharing as well. It closes the store again where that fails.
 * @throws CoordinationError as `openDatabase` of the kind does; `LEDGER_BUSY` where another process is this gateway,
 * and `LEDGER_CLOSED` where the gateway stops before that
 */
export async function openGatewayLedger(options: GatewayLedgerOptions): Promise<GatewayLedger> {
  const { place, gateway, settings, logger, clock, steady, signal } = options;
  const isOnServer = isPostgresUrl(place);
  const busyTimeoutMs = isOnServer ? SERVER_BUSY_MS : FILE_BUSY_MS;
  const opened = await openLedgerStore({ place, mode: "write", busyTimeoutMs });
  const store = await withTimedAppends(opened, options);
  if (!isOnServer) return { store };
  const process = readProcessName();
  const owner: RunOwner = {
    id: createGatewayOwnerId(gateway, randomUUID()),
    ...(process !== undefined && { process }),
  };
  const shared = { ...settings, gateway, owner, steady, isProcessGone };
  try {
    await takeSeat({ ...shared, owners: store.owners, clock, logger, ...(signal && { signal }) });
    const movedFrom = await store.readMovedFrom();
    return { store, shared: { ...shared, ...(movedFrom !== undefined && { movedFrom }) } };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Returns the store with appends that tell how long they took, where somebody wants to know. */
async function withTimedAppends(
  store: GatewayLedger["store"],
  { noteAppend }: GatewayLedgerOptions,
): Promise<GatewayLedger["store"]> {
  if (!noteAppend) return store;
  const { timeAppends } = await import("./metrics/time-appends.ts");
  return { ...timeAppends(store, noteAppend), workflows: timeAppends(store.workflows, noteAppend) };
}
