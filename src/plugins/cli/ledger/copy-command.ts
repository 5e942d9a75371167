/** Owns: `ledger copy`. Does not own: proving either ledger (`verify-command.ts`). */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { gatewayNameSchema } from "../../../agents/coordination/contracts/ids.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import { quoteShellWord } from "../../../agents/coordination/std/shell-arguments.ts";
import type { CopyPlaces, CopyProgress, LedgerCopy } from "../../copy-ledger-between.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { createProgressLine, type ProgressLine } from "../terminal/progress-line.ts";
import {
  runCommand,
  withExamples,
  withJsonOption,
  writeJson,
  writeLines,
  type JsonOption,
} from "../terminal/run-command.ts";
import { formatLedgerLocation, parseLedgerPlace } from "./open-ledger.ts";

export const COPY_EXAMPLES = [
  "ledger copy ledger.sqlite postgres://coordination@db.example/coordination --gateway office",
  "ledger copy postgres://coordination@db.example/coordination ledger.sqlite --gateway office --json",
];

/** Adds the command `ledger copy`, which copies a whole ledger between files and PostgreSQL. */
export function addCopyCommand(group: CommandGroup, host: CliHost): void {
  const command = withJsonOption(group.command("copy"))
    .description("Copy a whole ledger into an empty place, between files and PostgreSQL in any direction")
    .argument(
      "<from>",
      "the file or postgres:// to copy; it is only read, and nothing may write to it meanwhile",
    )
    .argument("<to>", "the file or postgres:// that the copy goes to; empty, or a copy of FROM to go on with")
    .option(
      "--gateway <id>",
      "to a server: the gateway.id of the gateway whose ledger FROM is; from a server to a file: of the one that is to use TO",
    )
    .action((from: string, to: string, options: CopyOptions) =>
      // Two ledgers are named; the message of an error says which of them it is about.
      runCommand(host, { ...options, ledger: "FILE" }, () =>
        copyAndReport(host, { from, to, gateway: parseGatewayId(options.gateway) }, options),
      ),
    );
  withExamples(command, host, [
    ...COPY_EXAMPLES,
    "verify --ledger postgres://coordination@db.example/coordination",
  ]);
}

interface CopyOptions extends JsonOption {
  readonly gateway?: string;
}

/** The source and the target of a copy. */
interface CopyEnds {
  readonly from: string;
  readonly to: string;
}

/** @throws CoordinationError `INPUT_INVALID` */
function parseGatewayId(text: string | undefined): string | undefined {
  if (text === undefined || gatewayNameSchema.safeParse(text).success) return text;
  throw new CoordinationError(
    "INPUT_INVALID",
    "--gateway: a gateway.id is letters, digits, dots, dashes and underscores",
  );
}

/** Copies the ledger with a display of progress, and prints the outcome. */
async function copyAndReport(host: CliHost, places: CopyPlaces, { json }: JsonOption): Promise<void> {
  await parseLedgerPlace(places.from, "from");
  await parseLedgerPlace(places.to, "to");
  const { copyLedgerBetween } = await import("../../copy-ledger-between.ts");
  const from = await formatLedgerLocation(places.from);
  const to = await formatLedgerLocation(places.to);
  const startedAtMs = host.now();
  const progress = createCopyProgress(host, startedAtMs);
  const made = await progress.clearAfter(copyLedgerBetween(places, progress.show));
  const seconds = (host.now() - startedAtMs) / 1_000;
  if (json) {
    const { tables, rows, bytes, isResumed: resumed, grownBy, headsSha256 } = made;
    const heads = { runs: tables["run"], sha256: headsSha256, equal: true };
    await writeJson(host, { from, to, resumed, grownBy, tables, rows, bytes, seconds, heads });
    return;
  }
  const lines = describeCopy(made, { from, to }, { program: host.program, seconds });
  await writeLines(
    host,
    lines.map((line) => formatPrintable(line, host.stdout.terminal.unicode)),
  );
}

function describeCopy(
  { tables, rows, grownBy, headsSha256 }: LedgerCopy,
  { from, to }: CopyEnds,
  { program, seconds }: { readonly program: string; readonly seconds: number },
): string[] {
  const { run: runs = 0, event: events = 0 } = tables;
  const extent = `${formatCount(runs, "run")}, ${formatCount(events, "event")}, ${formatCount(rows, "row")}`;
  const grown =
    grownBy > 0 ? [`${from} had grown by ${formatCount(grownBy, "event")} since the copy began.`] : [];
  return [
    `${from} is copied to ${to} (${extent}, ${seconds.toFixed(1)} s).`,
    ...grown,
    `All rows are equal, and so are the heads of all runs (sha256 ${headsSha256}).`,
    `Prove the copy with \`${program} verify --ledger ${quoteShellWord(to)}\`.`,
  ];
}

/** Without a terminal, a line of its own after so long. */
const LINE_EVERY_MS = 5_000;

/** Shows the progress of a copy, and clears it away. */
interface CopyProgressLine {
  readonly show: (progress: CopyProgress) => void;
  readonly clearAfter: ProgressLine["clearAfter"];
}

/** Creates the display of progress: one line on a terminal, else a line of its own every five seconds. */
function createCopyProgress(host: CliHost, startedAtMs: number): CopyProgressLine {
  const line = createProgressLine(host);
  let shownAtMs = startedAtMs;
  return {
    show: (progress) => {
      line.show(() => describeCopyProgress(progress));
      const now = host.now();
      if (host.stderr.terminal.isTTY || now - shownAtMs < LINE_EVERY_MS) return;
      shownAtMs = now;
      void host.stderr.write(`${describeCopyProgress(progress)}\n`);
    },
    clearAfter: line.clearAfter,
  };
}

function describeCopyProgress({ step, table, rows }: CopyProgress): string {
  return `${step} ${formatCount(rows, "row")} of ${table}`;
}
