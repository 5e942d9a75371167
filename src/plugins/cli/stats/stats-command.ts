/** Owns: `stats`: how well coordination went over a span of time, against the operator's targets. */
import { parsePluginConfig } from "../../../agents/coordination/contracts/config/config.ts";
import type { StatsConfig } from "../../../agents/coordination/contracts/config/stats-config.ts";
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { listFoundRuns } from "../../../agents/coordination/runtime/log/read-found.ts";
import { readLog } from "../../../agents/coordination/runtime/log/read-pages.ts";
import {
  addCounts,
  createCoordinationCounter,
  createCounts,
  type Counts,
} from "../../../agents/coordination/stats/count-coordination.ts";
import {
  measureCounts,
  type Measure,
  type MeasureName,
} from "../../../agents/coordination/stats/measures.ts";
import { formatCount, formatDuration } from "../../../agents/coordination/std/quantities.ts";
import type { LedgerReader } from "../../compose.ts";
import { readSwitches } from "../../openclaw/host/operator-config.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import { parseMoment } from "../terminal/moment.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { paintFor } from "../terminal/paint.ts";
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

export function addStats(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("stats"))
    .description(
      "Measure how coordination went against the targets of the configuration; exit code 1 where one is missed",
    )
    .option(
      "--since <time>",
      "of coordinations that were opened since: 7d for seven days ago, or 2026-01-31",
      "7d",
    )
    .action((options: StatsOptions) => runCommand(host, options, () => tellStats(host, options)));
  withExamples(command, host, ["stats", "stats --since 24h", "stats --since 2026-01-01 --json"]);
}

async function tellStats(host: CliHost, options: StatsOptions): Promise<void> {
  const since = parseMoment(options.since, { option: "--since", now: host.now() });
  const targets = await readTargets(host);
  const counts = await withLedger(host, options, (reader) => countAll(host, reader, since));
  const measures = measureCounts(counts, targets);
  if (measures.some(({ verdict }) => verdict === "missed")) host.failWith(1);
  if (options.json) await writeJson(host, describeStats(counts, measures, since));
  else await writeLines(host, renderStats(host, counts, measures, options.since));
}

/** The defaults, where the host's configuration cannot be read from here. */
async function readTargets(host: CliHost): Promise<StatsConfig> {
  const read = await host.config.read();
  const phase1 = read ? readSwitches(read.config).phase1 : parsePluginConfig({});
  if (isCoordinationError(phase1)) throw phase1;
  return phase1.stats;
}

async function countAll(
  host: CliHost,
  reader: LedgerReader,
  since: NonNullable<Parameters<typeof listFoundRuns>[1]["filter"]["since"]>,
): Promise<Counts> {
  const progress = createProgressLine(host);
  const sum = createCounts();
  try {
    for await (const { runId } of listFoundRuns(reader, { filter: { since } })) {
      const counter = createCoordinationCounter();
      for await (const page of readLog(reader, runId)) for (const event of page) counter.take(event);
      addCounts(sum, counter.counts);
      progress.show(() => `counted ${formatCount(sum.coordinations, "coordination")}`);
    }
  } finally {
    await progress.clear();
  }
  return sum;
}

function describeStats(counts: Counts, measures: readonly Measure[], since: number): object {
  const { coordinations, ended, refusedOutcomes, questions, expired } = counts;
  return {
    since: new Date(since).toISOString(),
    coordinations,
    ended,
    questions,
    expiredQuestions: expired,
    refusedOutcomes,
    measures,
  };
}

/** How a measure is called, and what it is counted of. */
const WORDS: Readonly<Record<MeasureName, readonly [name: string, of: string]>> = {
  success: ["coordinations that succeeded", "that ended"],
  delivery: ["results that reached whom they are for", "told"],
  firstResult: ["time to the first result, p95", "with a result"],
  duplicates: ["results that counted twice", "steps that completed"],
  lostUpdates: ["changes lost to another step's", "conflicts"],
  held: ["results that were held", "results"],
  answers: ["time people take to answer, p95", "questions answered"],
};

const TONES = { met: "good", missed: "bad", few: "faint" } as const;

function renderStats(host: CliHost, counts: Counts, measures: readonly Measure[], since: string): string[] {
  const paint = paintFor(host.stdout.terminal);
  const lines = measures.map((measure) => {
    const { name, value, target, count, verdict } = measure;
    const [words, of] = WORDS[name];
    const shown = value === undefined ? "-" : formatValue(measure, value);
    const wanted = `${target.is} ${formatValue(measure, target.value)}`;
    const judgement = verdict === "few" ? "too few to tell" : verdict;
    return `  ${words.padEnd(40)} ${shown.padStart(9)}  ${wanted.padEnd(18)} ${paint.tone(TONES[verdict], judgement.padEnd(15))}  ${paint.tone("faint", `${count} ${of}`)}`;
  });
  const { coordinations, refusedOutcomes, questions, expired } = counts;
  return [
    `${formatCount(coordinations, "coordination")} since ${since}:`,
    ...lines,
    `${formatCount(refusedOutcomes, "outcome")} came again or too late and did not count; of ${formatCount(questions, "question")} ${expired} expired.`,
  ];
}

function formatValue({ unit }: Measure, value: number): string {
  if (unit === "share") return `${(value * 100).toFixed(1)} %`;
  return unit === "ms" ? formatDuration(value) : String(value);
}
