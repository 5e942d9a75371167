/** Owns: which ledger a command reads. */
import type { LedgerReader } from "../../compose.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import type { ReaderOptions } from "../terminal/run-command.ts";

/** Lazy: registering the commands must not load the database driver. */
export function loadComposition() {
  return import("../../compose.ts");
}

export async function resolveLedgerPath(host: CliHost, { ledger }: ReaderOptions): Promise<string> {
  if (ledger !== undefined) return ledger;
  return (await loadComposition()).joinLedgerPath(await host.stateDir());
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
  const { openLedgerForReading } = await loadComposition();
  const reader = await openLedgerForReading(path);
  try {
    return await use(reader);
  } finally {
    await reader.close();
  }
}
