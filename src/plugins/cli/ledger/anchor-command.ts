/** Owns: `ledger anchor` and `ledger key`. Does not own: holding a ledger against an anchor (`verify-command.ts`). */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { formatPrintable } from "../terminal/printable.ts";
import {
  parseFilePath,
  runCommand,
  withExamples,
  withJsonOption,
  withReaderOptions,
  writeJson,
  writeLines,
  type JsonOption,
  type ReaderOptions,
} from "../terminal/run-command.ts";
import { createProgressLine } from "../terminal/progress-line.ts";
import { withLedger } from "./open-ledger.ts";
import { formatProblemCount, proveLedger } from "./verify-command.ts";

/** Imports the module when it is needed: registering the commands must not load the database driver. */
function importAnchorChecks() {
  return import("../../anchor-checks.ts");
}

interface AnchorOptions extends ReaderOptions {
  readonly sign?: string;
}

/** Adds the command `ledger anchor`, which verifies the ledger and writes an anchor of what it holds to a file. */
export function addAnchorCommand(group: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(group.command("anchor"))
    .description("Prove the ledger, and write down what it holds for a later `verify --anchor`")
    .argument("<file>", "where the anchor goes; an older one of the same ledger is replaced")
    .option("--sign <keyfile>", "sign it with this Ed25519 key (PEM), see `ledger key`")
    .action((file: string, options: AnchorOptions) =>
      runCommand(host, options, () => writeLedgerAnchor(host, parseFilePath(file, "file"), options)),
    );
  withExamples(command, host, [
    "ledger anchor anchor.json",
    "ledger anchor anchor.json --sign anchor-key",
    "verify --anchor anchor.json --public-key anchor-key.pub",
  ]);
}

/** Adds the command `ledger key`, which creates a key pair for signing anchors. */
export function addKeyCommand(group: CommandGroup, host: CliHost): void {
  const command = withJsonOption(group.command("key"))
    .description("Make an Ed25519 key that signs anchors")
    .argument("<file>", "where the private key goes (mode 0600); the public one goes to FILE.pub")
    .action((file: string, options: JsonOption) =>
      runCommand(host, options, () => createAnchorKey(host, parseFilePath(file, "file"), options)),
    );
  withExamples(command, host, ["ledger key anchor-key", "ledger anchor anchor.json --sign anchor-key"]);
}

/**
 * Proves the ledger and writes its anchor to a file. The extent is taken before the ledger is proven, so that what is
 * appended meanwhile is not in the anchor.
 */
async function writeLedgerAnchor(host: CliHost, file: string, options: AnchorOptions): Promise<void> {
  const { makeAnchor, readSigningKey, saveAnchor } = await importAnchorChecks();
  const key = options.sign === undefined ? undefined : readSigningKey(parseFilePath(options.sign, "--sign"));
  const events = await withLedger(host, options, ({ heads }) => heads.newestNumber());
  await assertLedgerUndamaged(host, options);
  const progress = createProgressLine(host);
  const making = withLedger(host, options, async (reader) => {
    const made = await makeAnchor(reader, {
      events,
      madeAtMs: host.now(),
      ...(key && { key }),
      onProgress: (runs) => {
        progress.show(() => `anchored ${formatCount(runs, "run")}`);
      },
    });
    await saveAnchor(reader, file, made);
    return made;
  });
  const anchor = await progress.clearAfter(making);
  const { runs, madeAt } = anchor;
  const isSigned = anchor.signature !== undefined;
  if (options.json) {
    await writeJson(host, { file, runs, events, madeAt, signed: isSigned });
    return;
  }
  const extent = `${formatCount(runs, "run")}, ${formatCount(events, "event")}`;
  await writeLines(host, [
    formatForStdout(host, `${file} anchors ${extent}${isSigned ? ", signed" : ""}.`),
    "Keep it where whoever can write the ledger cannot change it.",
  ]);
}

/** @throws CoordinationError `LEDGER_CORRUPT`: an anchor of a damaged ledger would say that the damage is right. */
async function assertLedgerUndamaged(host: CliHost, options: ReaderOptions): Promise<void> {
  const verified = await proveLedger(host, options);
  if (verified.ok) return;
  const [first] = verified.problems;
  throw new CoordinationError(
    "LEDGER_CORRUPT",
    `no anchor was made, because the ledger has ${formatProblemCount(verified)}, first: ${String(first?.message)}`,
  );
}

/** Creates a pair of keys that signs anchors, and prints where both are. */
async function createAnchorKey(host: CliHost, file: string, options: JsonOption): Promise<void> {
  const { createSigningKeyFiles } = await importAnchorChecks();
  const publicFile = createSigningKeyFiles(file);
  if (options.json) {
    await writeJson(host, { privateKey: file, publicKey: publicFile });
    return;
  }
  await writeLines(host, [
    formatForStdout(
      host,
      `${file} is the private key; keep it where nobody else reads it, best not beside the ledger.`,
    ),
    formatForStdout(host, `${publicFile} is the public key; give it to whoever is to check your anchors.`),
  ]);
}

function formatForStdout(host: CliHost, text: string): string {
  return formatPrintable(text, host.stdout.terminal.unicode);
}
