/** Owns: which ledger a command reads, and saying that a part of it cannot be read. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { readLedgerConfig } from "../../openclaw/host/operator-config.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import type { ReaderOptions } from "../terminal/run-command.ts";

/** Keys beside the ledger: of interrupt tokens, and of the names of texts that are kept back. */
export const KEY_FILES = ["interrupt-key", "withheld-key"] as const;

/** Lazy: registering the commands must not load the database driver. */
export function loadLedgerReader() {
  return import("../../ledger-reader.ts");
}

/**
 * Returns the path or the URL of the ledger that is read: without `--ledger`, of the one that the gateway's configuration names.
 * @throws CoordinationError `CONFIG_INVALID`
 */
export async function resolveLedgerPath(host: CliHost, { ledger }: ReaderOptions): Promise<string> {
  if (ledger !== undefined) return ledger;
  const { findLedgerPlace } = await import("../../ledger-setting.ts");
  const stateDir = await host.stateDir();
  try {
    const setting = readLedgerConfig(await readGatewayConfig(host, stateDir));
    return findLedgerPlace(setting, { stateDir, readVariable: (name) => process.env[name] });
  } catch (cause) {
    throw new UnknownLedgerError("CONFIG_INVALID", describeError(cause), { cause });
  }
}

/** Its advice has the way round the configuration, too. */
class UnknownLedgerError extends CoordinationError {
  override get advice(): string {
    return "Correct OpenClaw's configuration, which says where the ledger is, or name the ledger with `--ledger`.";
  }
}

/** Where OpenClaw is not there, the ledger is in the state folder, unless its configuration is there and may say otherwise. */
async function readGatewayConfig({ config }: CliHost, stateDir: string): Promise<unknown> {
  if (config.known) return config.known;
  const mayNameLedger = await config.mayNameLedger?.(stateDir);
  if (mayNameLedger === false) return undefined;
  const read = await config.read();
  if (read) return read.config;
  if (!mayNameLedger) return undefined;
  throw new CoordinationError(
    "CONFIG_INVALID",
    "OpenClaw is not installed beside this command, so its configuration, which may name a ledger, cannot be read",
  );
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

/** Warns that a list lacks what damaged logs hold. Not all logs are read for conflicts: there may be more damaged ones. */
export async function warnOfUnreadable(
  { stderr, program }: CliHost,
  subject: "questions of" | "conflicts of at least",
  unreadable: readonly CoordinationId[],
): Promise<void> {
  if (unreadable.length === 0) return;
  const damaged = formatCount(unreadable.length, "damaged coordination");
  await stderr.write(`The ${subject} ${damaged} cannot be read: run \`${program} verify\`.\n`);
}
