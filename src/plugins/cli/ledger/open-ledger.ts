/** Owns: which ledger a command reads. */
import type { LedgerReader } from "../../ledger-reader.ts";
import { readLedgerConfig } from "../../openclaw/host/operator-config.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import type { ReaderOptions } from "../terminal/run-command.ts";

/** Lazy: registering the commands must not load the database driver. */
export function loadLedgerReader() {
  return import("../../ledger-reader.ts");
}

/**
 * Returns the path or the URL of the ledger that is read: within the host, of the one that its configuration names.
 * @throws CoordinationError `CONFIG_INVALID`
 */
export async function resolveLedgerPath(host: CliHost, { ledger }: ReaderOptions): Promise<string> {
  if (ledger !== undefined) return ledger;
  const { findLedgerPlace } = await import("../../ledger-setting.ts");
  return findLedgerPlace(readLedgerConfig(host.config.known), {
    stateDir: await host.stateDir(),
    readVariable: (name) => process.env[name],
  });
}

/** Returns how the place of the ledger that is read is shown; of a gateway whose setting cannot be read, its file. */
export async function describeLedgerPath(host: CliHost, options: ReaderOptions): Promise<string> {
  const path = await resolveLedgerPath(host, options).catch(() => resolvePathBeside(host, options));
  return formatLedger(path);
}

/** Returns the file beside which health, keys and the outcome of `verify` lie, whether the ledger is in it or on a server. */
export async function resolvePathBeside(host: CliHost, { ledger }: ReaderOptions): Promise<string> {
  return ledger ?? (await import("../../ledger-setting.ts")).joinLedgerPath(await host.stateDir());
}

/** Returns how a ledger's place is shown: without a password. */
export async function formatLedger(path: string): Promise<string> {
  return (await import("../../open-ledger-store.ts")).formatLedgerPlace(path);
}

/** True for a ledger that is a file, with others beside it. */
export async function isLedgerFile(path: string): Promise<boolean> {
  return !(await import("../../open-ledger-store.ts")).isPostgresUrl(path);
}

/** Opens the ledger for the time of `use`. @throws CoordinationError */
export async function withLedger<T>(
  host: CliHost,
  options: ReaderOptions,
  use: (reader: LedgerReader) => Promise<T>,
): Promise<T> {
  const path = await resolveLedgerPath(host, options);
  const { openLedgerForReading } = await loadLedgerReader();
  const reader = await openLedgerForReading(path);
  try {
    return await use(reader);
  } finally {
    await reader.close();
  }
}
