/**
 * Owns: `ledger backup`. Does not own: proving the copy (`verify-command.ts`), anchors (`anchor-command.ts`), moving a ledger
 * (`copy-command.ts`), removing old runs (`prune-command.ts`).
 */
import { formatBytes } from "../../../agents/coordination/std/quantities.ts";
import { quoteShellWord } from "../../../agents/coordination/std/shell-arguments.ts";
import { findFilesBeside } from "../files/files-beside.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { createProgressLine } from "../terminal/progress-line.ts";
import {
  parseFilePath,
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  writeLines,
  type ReaderOptions,
} from "../terminal/run-command.ts";
import { addAnchorCommand, addKeyCommand } from "./anchor-command.ts";
import { addCopyCommand, COPY_EXAMPLES } from "./copy-command.ts";
import { KEY_FILES, importLedgerReader, resolveLedgerPath } from "./open-ledger.ts";
import { addPruneCommand, PRUNE_EXAMPLES } from "./prune-command.ts";

/** Adds the group of commands `ledger`: backup, copy, prune, anchor and key. */
export function addLedgerCommands(parent: CommandGroup, host: CliHost): void {
  const group = parent
    .command("ledger")
    .description("Back up, move or prune the ledger, and anchor what it holds");
  const command = withReaderOptions(group.command("backup"))
    .description("Copy the ledger to a new file, also while it is written")
    .argument("<file>", "where the copy goes; no file may be there yet")
    .action((file: string, options: ReaderOptions) =>
      runCommand(host, options, () => backUpAndReport(host, parseFilePath(file, "file"), options)),
    );
  const examples = ["ledger backup copy.sqlite", "ledger backup copy.sqlite --json"];
  addCopyCommand(group, host);
  addPruneCommand(group, host);
  addAnchorCommand(group, host);
  addKeyCommand(group, host);
  withExamples(group, host, [...examples, ...COPY_EXAMPLES, ...PRUNE_EXAMPLES, "ledger anchor anchor.json"]);
  withExamples(command, host, [...examples, "verify --ledger copy.sqlite"]);
}

/** Copies the ledger to a new file with a display of progress, and prints the outcome. */
async function backUpAndReport(host: CliHost, file: string, options: ReaderOptions): Promise<void> {
  const ledger = await resolveLedgerPath(host, options);
  const { backUpLedger } = await importLedgerReader();
  const progress = createProgressLine(host);
  const showCopied = ({ totalPages, remainingPages }: BackupPages): void => {
    progress.show(() => `copied ${formatShare(totalPages - remainingPages, totalPages)}`);
  };
  const bytes = await progress.clearAfter(backUpLedger(ledger, file, showCopied));
  if (options.json) {
    await writeJson(host, { ledger, file, bytes });
    return;
  }
  const print = (text: string): string => formatPrintable(text, host.stdout.terminal.unicode);
  await writeLines(host, [
    `${print(ledger)} is copied to ${print(file)} (${formatBytes(bytes)}).`,
    ...describeKeysLeftOut(ledger).map(print),
    `Prove the copy with \`${host.program} verify --ledger ${print(quoteShellWord(file))}\`.`,
  ]);
}

/** Says which keys beside the ledger are not in its copy; empty where there is none. */
function describeKeysLeftOut(ledger: string): string[] {
  const keys = findFilesBeside(ledger, KEY_FILES);
  return keys.length === 0
    ? []
    : [`The keys of the ledger are not in the copy. Back them up, too: ${keys.join(", ")}.`];
}

/** The pages of a database that a backup has and has not copied. */
interface BackupPages {
  readonly totalPages: number;
  readonly remainingPages: number;
}

/** Formats a part of a whole in percent, rounded down. */
function formatShare(copied: number, total: number): string {
  return `${total === 0 ? 100 : Math.floor((copied / total) * 100)} %`;
}
