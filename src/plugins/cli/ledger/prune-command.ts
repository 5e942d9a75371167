/** Owns: `ledger prune`. Does not own: which runs go (`runtime/prune-ledger.ts`). */
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { addMs, type EpochMs } from "../../../agents/coordination/contracts/ids.ts";
import { formatBytes, formatCount } from "../../../agents/coordination/std/quantities.ts";
import type {
  KeptReason,
  PruneProgress,
  PruneReport,
  PruneRequest,
} from "../../../agents/coordination/runtime/prune-ledger.ts";
import { readCoordinationSwitches } from "../../openclaw/host/operator-config.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { parseMoment } from "../terminal/moment.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { createProgressLine } from "../terminal/progress-line.ts";
import {
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  writeLines,
  type ReaderOptions,
} from "../terminal/run-command.ts";
import { formatLedgerLocation, importLedgerReader, resolveLedgerPath } from "./open-ledger.ts";

export const PRUNE_EXAMPLES = ["ledger prune --before 90d --dry-run", "ledger prune --before 90d"];

const DAY_MS = 86_400_000;
/** A gateway may still hold what ended within so long, and clients may still ask for it. */
const AGE_MIN_MS = DAY_MS;
/** A command line can wait. */
const BUSY_TIMEOUT_MS = 5_000;

interface PruneOptions extends ReaderOptions {
  readonly before: string;
  readonly dryRun?: boolean;
}

/** Adds the command `ledger prune`, which removes runs that ended long ago. */
export function addPruneCommand(group: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(group.command("prune"))
    .description("Remove runs that ended long ago; what is left still verifies")
    .requiredOption(
      "--before <time>",
      "remove what ended before: a time such as 2026-01-31, or how long ago, such as 90d; at least one day",
    )
    .option("--dry-run", "only say what would be removed")
    .action((options: PruneOptions) => runCommand(host, options, () => pruneAndReport(host, options)));
  withExamples(command, host, [
    ...PRUNE_EXAMPLES,
    "ledger prune --before 2026-01-31 --json",
    "ledger prune --before 1w --ledger serve.sqlite",
  ]);
}

/** Prunes the ledger with a display of progress, and prints the outcome. */
async function pruneAndReport(host: CliHost, options: PruneOptions): Promise<void> {
  const beforeMs = parsePruneTime(options.before, host.now());
  const place = await resolveLedgerPath(host, options);
  const ledger = await formatLedgerLocation(place);
  const progress = createProgressLine(host);
  const show = ({ step, runs }: PruneProgress): void => {
    progress.show(() => `${step} ${formatCount(runs, "run")}`);
  };
  const request = { beforeMs, isDryRun: options.dryRun === true, onProgress: show };
  const textsBeforeMs = request.isDryRun ? undefined : await computeTextExpiry(host, options);
  const { report, bytes, texts } = await progress.clearAfter(pruneLedgerAt(place, request, textsBeforeMs));
  if (options.json) {
    const { runs, events, kept } = report;
    const before = new Date(beforeMs).toISOString();
    const expiredTexts = textsBeforeMs === undefined ? undefined : texts;
    await writeJson(host, {
      ledger,
      before,
      dryRun: request.isDryRun,
      runs,
      events,
      kept,
      expiredTexts,
      bytes,
    });
    return;
  }
  const { program } = host;
  const lines = describePruned(report, { ledger, bytes, texts, isDryRun: request.isDryRun, program });
  await writeLines(
    host,
    lines.map((line) => formatPrintable(line, host.stdout.terminal.unicode)),
  );
}

/**
 * Returns the time before which texts of the gateway's own ledger have expired; `undefined` for another ledger, and where the
 * gateway's configuration cannot be read: nobody knows for how long its texts are kept.
 */
async function computeTextExpiry(host: CliHost, { ledger }: ReaderOptions): Promise<EpochMs | undefined> {
  if (ledger !== undefined) return undefined;
  const read = await host.config.read();
  const phase1 = read && readCoordinationSwitches(read.config).phase1;
  if (!phase1 || isCoordinationError(phase1)) return undefined;
  return addMs(host.now(), -phase1.contentRetentionDays * DAY_MS);
}

interface PrunedPlace {
  readonly report: PruneReport;
  readonly bytes: number;
  /** How many texts had expired and were deleted. */
  readonly texts: number;
}

/** Prunes the ledger at a place and deletes expired texts; never creates a ledger. A dry run only reads. */
async function pruneLedgerAt(
  place: string,
  request: PruneRequest,
  textsBeforeMs: EpochMs | undefined,
): Promise<PrunedPlace> {
  const { openLedgerForReading } = await importLedgerReader();
  // Opening for writing would create a ledger where there is none.
  await (await openLedgerForReading(place)).close();
  const { openLedgerStore, systemClock } = await import("../../open-ledger-store.ts");
  const { pruneLedger } = await import("../../../agents/coordination/runtime/prune-ledger.ts");
  const { findSilentExporter } = await import("../../../agents/coordination/runtime/silent-exporter.ts");
  const mode = request.isDryRun ? "read" : "write";
  const store = await openLedgerStore({ place, mode, busyTimeoutMs: BUSY_TIMEOUT_MS });
  try {
    const silentExporter = await findSilentExporter(store.exports, systemClock);
    const report = await pruneLedger(store, { ...request, silentExporter });
    const texts = textsBeforeMs === undefined ? 0 : await store.deleteBefore(textsBeforeMs);
    return { report, texts, bytes: await store.measureBytes() };
  } finally {
    await store.close();
  }
}

/** Parses a time; refuses one that is less than a day ago. */
function parsePruneTime(text: string, now: EpochMs): EpochMs {
  const beforeMs = parseMoment(text, { option: "--before", now });
  if (beforeMs <= now - AGE_MIN_MS) return beforeMs;
  throw new CoordinationError(
    "INPUT_INVALID",
    `--before: ${JSON.stringify(text)} is less than one day ago, and only what ended before that can be removed`,
  );
}

const KEPT_REASONS: Readonly<Record<KeptReason, string>> = {
  open: "still open",
  recent: "ended later, or the newest run of the ledger file",
  used: "memory, files or claims still name its events, or its spans are not exported yet",
  related: "part of, or forked from, a run that is kept",
  damaged: "damaged; run `verify`",
};

/** The result of pruning a ledger, as it is told at the end. */
interface PruneSummary extends Omit<PrunedPlace, "report"> {
  readonly ledger: string;
  readonly isDryRun: boolean;
  readonly program: string;
}

function describePruned(
  { runs, events, kept }: PruneReport,
  { ledger, bytes, texts, isDryRun, program }: PruneSummary,
): string[] {
  const extent = `${formatCount(runs, "run")} with ${formatCount(events, "event")}`;
  const verb = isDryRun ? "would be removed" : runs === 1 ? "was removed" : "were removed";
  const reasons = (Object.keys(KEPT_REASONS) as KeptReason[])
    .filter((reason) => kept[reason] > 0)
    .map((reason) => `  ${formatCount(kept[reason], "run")} kept: ${KEPT_REASONS[reason]}`);
  const expired =
    texts === 0 ? [] : [`${formatCount(texts, "expired text")} ${texts === 1 ? "was" : "were"} deleted.`];
  const space =
    runs === 0 || isDryRun
      ? []
      : [
          `The ledger takes ${formatBytes(bytes)}; the space that came free is used again by what comes next.`,
          `To have a smaller file, stop what writes to it and run \`${program} ledger copy\` to a new one.`,
        ];
  return [`${extent} ${verb} from ${ledger}.`, ...reasons, ...expired, ...space];
}
