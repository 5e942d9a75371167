/** Owns: reading a ledger, and what lies beside it, without a coordinator: all that most commands need. */
import { dirname, join } from "node:path";
import type { Health, HealthSink } from "../agents/coordination/ports/health-sink.ts";
import {
  createHealthFile,
  readHealth,
  readWritingGateway,
  type WritingGateway,
} from "../infra/health/health-file.ts";
import type { LedgerHeads, OpenedLedger } from "../infra/ledger/opened-ledger.ts";
import { backUpLedger as backUpSqliteLedger } from "../infra/sqlite/back-up-ledger.ts";
import { readHostBackup, type HostBackup } from "../infra/sqlite/read-host-backup.ts";
import { isProcessThere, readBootName, readProcessName } from "../platform/process-name.ts";
import { assertIsFile, isPostgresUrl, openLedgerStore } from "./open-ledger-store.ts";
import type { ReportedLedger } from "./reports/reported-ledger.ts";

const READER_BUSY_TIMEOUT_MS = 5_000;

export interface LedgerReader extends ReportedLedger {
  readonly heads: LedgerHeads;
  readonly readMovedFrom: OpenedLedger["readMovedFrom"];
}

/**
 * Opens the ledger at a path or URL in its read mode, which changes nothing there; waits for a while where the ledger
 * is busy. @throws CoordinationError as `openDatabase` does.
 */
export function openLedgerForReading(path: string): Promise<LedgerReader> {
  return openLedgerStore({ place: path, mode: "read", busyTimeoutMs: READER_BUSY_TIMEOUT_MS });
}

/**
 * Copies a ledger file that may be written meanwhile to `target`, and returns the size of the copy in bytes. @throws
 * CoordinationError as `backUpLedger` of infra
 */
export async function backUpLedger(
  path: string,
  target: string,
  onProgress: (pages: { readonly totalPages: number; readonly remainingPages: number }) => void,
): Promise<number> {
  assertIsFile(path);
  return backUpSqliteLedger({ path, target, busyTimeoutMs: READER_BUSY_TIMEOUT_MS, onProgress });
}

/** Returns when the host of this state folder last made a backup with the ledger in it, by the host's own database. */
export function readLastBackup(stateDir: string): Promise<HostBackup> {
  return readHostBackup(join(stateDir, "state", "openclaw.sqlite"));
}

/**
 * Creates the sink that writes the gateway's health to the file beside the ledger, for `readHealthBeside` of another
 * process. It creates nothing before the first write. `hashConfig` returns the hash of the configuration that is
 * coordinated by.
 */
export function createHealthSink(ledgerPath: string, hashConfig: () => string | undefined): HealthSink {
  const process = readProcessName();
  const boot = readBootName();
  return createHealthFile(joinHealthPath(ledgerPath), () => {
    const configSha256 = hashConfig();
    if (process === undefined) return undefined;
    return { process, ...(boot && { boot }), ...(configSha256 && { configSha256 }) };
  });
}

/**
 * Returns what a gateway last wrote about its health beside the ledger file at this path; `undefined` for a ledger on
 * a server, and where there is nothing readable.
 */
export function readHealthBeside(ledgerPath: string): Health | undefined {
  // Beside a ledger on a server there are no files.
  if (isPostgresUrl(ledgerPath)) return undefined;
  return readHealth(joinHealthPath(ledgerPath));
}

/** True where the health file beside the ledger was last written by another process, which is certainly still alive. */
export function isReportedByAnother(ledgerPath: string): boolean {
  const gateway = readGatewayBeside(ledgerPath);
  return gateway !== undefined && gateway.process !== readProcessName() && isProcessThere(gateway.process);
}

/**
 * Returns which gateway process last wrote the health file beside the ledger at this path; `undefined` for a ledger on
 * a server, and where that is not known.
 */
export function readGatewayBeside(ledgerPath: string): WritingGateway | undefined {
  return isPostgresUrl(ledgerPath) ? undefined : readWritingGateway(joinHealthPath(ledgerPath));
}

/** Returns the file in which the gateway reports its health. */
function joinHealthPath(ledgerPath: string): string {
  return join(dirname(ledgerPath), "health.json");
}
