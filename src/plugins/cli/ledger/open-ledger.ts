/** Owns: which ledger a command reads, and saying that a part of it cannot be read. */
import { CoordinationError, createInputError } from "../../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { describeError } from "../../../agents/coordination/std/describe-error.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { readLedgerConfig } from "../../openclaw/host/operator-config.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { findAddressScheme } from "../files/named-path.ts";
import type { ReaderOptions } from "../terminal/run-command.ts";

/** Keys beside the ledger: of interrupt tokens, and of the names of texts that are kept back. */
export const KEY_FILES = ["interrupt-key", "withheld-key"] as const;

/**
 * Returns the module that opens ledgers for reading, imported only now: registering the commands must not load the
 * database driver.
 */
export function importLedgerReader() {
  return import("../../ledger-reader.ts");
}

/**
 * Returns the path or URL of the ledger that a command reads: that of `--ledger`, else of the one that the gateway's
 * configuration names. @throws CoordinationError `CONFIG_INVALID` where the configuration does not say, else as
 * `parseLedgerPlace`
 */
export async function resolveLedgerPath(host: CliHost, { ledger }: ReaderOptions): Promise<string> {
  if (ledger !== undefined) return parseLedgerPlace(ledger, "--ledger");
  const { findLedgerPlace } = await import("../../ledger-setting.ts");
  const stateDir = await host.stateDir();
  try {
    const setting = readLedgerConfig(await readGatewayConfig(host, stateDir));
    return findLedgerPlace(setting, { stateDir, readVariable: (name) => process.env[name] });
  } catch (cause) {
    throw new UnknownLedgerError("CONFIG_INVALID", describeError(cause), { cause });
  }
}

/**
 * Returns the path or the URL of a ledger that an option's text is. The address of another kind of server would be taken
 * for a path, with its password. @throws CoordinationError `INPUT_INVALID` for such an address, and nothing
 */
export async function parseLedgerPlace(text: string, option: string): Promise<string> {
  if (text.trim() === "") throw createInputError(`${option}: expected a file or postgres://, got nothing`);
  const scheme = findAddressScheme(text);
  if (scheme === undefined || !(await isFileLedger(text))) return text;
  throw createInputError(`${option}: a ledger is a file or at postgres://, not at ${scheme}`);
}

/** Its advice has the way round the configuration, too. */
class UnknownLedgerError extends CoordinationError {
  override get advice(): string {
    return "Correct OpenClaw's configuration, which says where the ledger is, or name the ledger with `--ledger`.";
  }
}

/**
 * Reads the configuration that may name a ledger; `undefined` where none can. Throws where OpenClaw, which reads it,
 * is not installed and its configuration may name one.
 */
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

/**
 * Returns the place of the ledger that a command reads, as people are shown it; the gateway's default file where its
 * setting cannot be read. Does not throw for that. @throws CoordinationError as `parseLedgerPlace`
 */
export async function describeLedgerPath(host: CliHost, options: ReaderOptions): Promise<string> {
  const path = await resolveLedgerPath(host, options).catch(() => resolveSidecarPath(host, options));
  return formatLedgerLocation(path);
}

/**
 * Returns `--ledger` as it is given, else the path in the state folder beside which health, keys and the outcome of
 * `verify` lie, even where the ledger itself is on a server. @throws CoordinationError as `parseLedgerPlace`
 */
export async function resolveSidecarPath(host: CliHost, { ledger }: ReaderOptions): Promise<string> {
  if (ledger !== undefined) return parseLedgerPlace(ledger, "--ledger");
  return (await import("../../ledger-setting.ts")).joinLedgerPath(await host.stateDir());
}

/** Returns the path or URL of a ledger without a password; loads the module for that only now. */
export async function formatLedgerLocation(path: string): Promise<string> {
  return (await import("../../open-ledger-store.ts")).formatLedgerPlace(path);
}

/**
 * Returns whether a ledger's place is the path of a file, and not the URL of a server; loads the module for that only
 * now.
 */
export async function isFileLedger(path: string): Promise<boolean> {
  return !(await import("../../open-ledger-store.ts")).isPostgresUrl(path);
}

/**
 * Opens the ledger that a command reads, calls `use` with its reader, closes it, and returns what `use` returned.
 * @throws CoordinationError
 */
export async function withLedger<T>(
  host: CliHost,
  options: ReaderOptions,
  use: (reader: LedgerReader) => Promise<T>,
): Promise<T> {
  const path = await resolveLedgerPath(host, options);
  const { openLedgerForReading } = await importLedgerReader();
  const reader = await openLedgerForReading(path);
  try {
    return await use(reader);
  } finally {
    await reader.close();
  }
}

/**
 * Writes to stderr that a list lacks what damaged coordinations hold; nothing without any. Not all logs are read for
 * conflicts: there may be more damaged ones.
 */
export async function warnOfUnreadable(
  { stderr, program }: CliHost,
  subject: "questions of" | "conflicts of at least",
  unreadable: readonly CoordinationId[],
): Promise<void> {
  if (unreadable.length === 0) return;
  const damaged = formatCount(unreadable.length, "damaged coordination");
  await stderr.write(`The ${subject} ${damaged} cannot be read: run \`${program} verify\`.\n`);
}
