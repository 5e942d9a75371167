/** Owns: `stats`: how well coordination went over a span of time, against the operator's targets. */
import { parsePluginConfig } from "../../../agents/coordination/contracts/config/config.ts";
import type { StatsConfig } from "../../../agents/coordination/contracts/config/stats-config.ts";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { EpochMs } from "../../../agents/coordination/contracts/ids.ts";
import { measureCounts, type Measure } from "../../../agents/coordination/stats/measures.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { readCoordinationSwitches } from "../../openclaw/host/operator-config.ts";
import { createMeasureCounter, type MeasuredCounts } from "../../reports/count-measures.ts";
import { createMeasureWords } from "../../reports/measure-words.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import { parseMoment } from "../terminal/moment.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { createPaint } from "../terminal/paint.ts";
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

interface StatsOptions extends ReaderOptions {
  readonly since: string;
}

/**
 * Adds the command `stats`, which measures coordination against the configured targets and exits with 1 where one is
 * missed.
 */
export function addStatsCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("stats"))
    .description(
      "Measure how coordination went against the targets of the configuration; exit code 1 where one is missed",
    )
    .option(
      "--since <time>",
      "of coordinations that were opened since: 7d for seven days ago, or 2026-01-31",
      "7d",
    )
    .action((options: StatsOptions) => runCommand(host, options, () => showStats(host, options)));
  withExamples(command, host, ["stats", "stats --since 24h", "stats --since 2026-01-01 --json"]);
}

async function showStats(host: CliHost, options: StatsOptions): Promise<void> {
  const since = parseMoment(options.since, { option: "--since", now: host.now() });
  const targets = await readTargets(host);
  const counted = await withLedger(host, options, (reader) => countMeasuredRuns(host, reader, since));
  const measures = measureCounts(counted.counts, targets);
  if (measures.some(({ verdict }) => verdict === "missed")) host.failWith(1);
  if (options.json) await writeJson(host, createStatsJson(counted, measures, since));
  else await writeLines(host, renderStats(host, counted, measures, options.since));
}

/**
 * Reads the targets of the configuration; the defaults where none is found from here. Throws for a configuration that
 * is not valid.
 */
async function readTargets(host: CliHost): Promise<StatsConfig> {
  const read = await host.config.read();
  const phase1 = read ? readCoordinationSwitches(read.config).phase1 : parsePluginConfig({});
  if (isCoordinationError(phase1)) throw phase1;
  return phase1.stats;
}

async function countMeasuredRuns(
  host: CliHost,
  reader: LedgerReader,
  since: EpochMs,
): Promise<MeasuredCounts> {
  const progress = createProgressLine(host);
  const showProgress = (coordinations: number): void => {
    progress.show(() => `counted ${formatCount(coordinations, "coordination")}`);
  };
  try {
    return await createMeasureCounter().count(reader, { since, onProgress: showProgress });
  } finally {
    await progress.clear();
  }
}

function createStatsJson(
  { counts, unreadable }: MeasuredCounts,
  measures: readonly Measure[],
  since: number,
): object {
  const { coordinations, ended, refusedOutcomes, questions, expired } = counts;
  return {
    since: new Date(since).toISOString(),
    coordinations,
    ended,
    questions,
    expiredQuestions: expired,
    refusedOutcomes,
    unreadable,
    measures,
  };
}

const TONES = { met: "good", missed: "bad", few: "faint" } as const;

function renderStats(
  host: CliHost,
  { counts, unreadable }: MeasuredCounts,
  measures: readonly Measure[],
  since: string,
): string[] {
  const { terminal } = host.stdout;
  const paint = createPaint(terminal);
  const lines = measures.map((measure) => {
    const { name, value, target, verdict, countedOf } = createMeasureWords(measure);
    const judgement = paint.tone(TONES[measure.verdict], verdict.padEnd(15));
    return `  ${name.padEnd(40)} ${value.padStart(9)}  ${target.padEnd(18)} ${judgement}  ${paint.tone("faint", countedOf)}`;
  });
  const { coordinations, refusedOutcomes, questions, expired } = counts;
  const leftOut = formatPrintable(unreadable.join(", "), terminal.unicode);
  return [
    `${formatCount(coordinations, "coordination")} since ${since}:`,
    ...lines,
    ...(unreadable.length > 0 ? [`Left out, because their logs are damaged: ${leftOut}.`] : []),
    `${formatCount(refusedOutcomes, "outcome")} came again or too late and did not count; of ${formatCount(questions, "question")} ${expired} expired.`,
  ];
}
