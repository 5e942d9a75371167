/** Owns: `events`. It reads and prints page by page, so that a ledger of any size fits in memory. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { FACT_PAYLOADS } from "../../../agents/coordination/contracts/facts.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { EVENT_PAYLOADS, type RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { readFoundEvents } from "../../../agents/coordination/runtime/log/read-found.ts";
import { listRuns, readLog } from "../../../agents/coordination/runtime/log/read-pages.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { followEvents } from "./follow-events.ts";
import { withLedger } from "./open-ledger.ts";
import { resolveCoordinationId } from "../../reports/find-coordination.ts";
import {
  describeQuery,
  hasQueryOption,
  resolveFilter,
  withQueryOptions,
  type QueryOptions,
} from "./query-options.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatJson, formatPrintable } from "../terminal/printable.ts";
import {
  asCoordinationError,
  formatError,
  parseChoice,
  runCommand,
  parseWholeNumber,
  withExamples,
  withReaderOptions,
  type ReaderOptions,
} from "../terminal/run-command.ts";

const TYPES = Object.keys(EVENT_PAYLOADS);

interface EventsOptions extends ReaderOptions, QueryOptions {
  readonly type?: string;
  readonly from?: string;
  readonly limit?: string;
  readonly follow?: boolean;
}

/**
 * Adds the command `events`, which prints the events of one or of all coordinations, and with `--follow` new ones as
 * they are appended.
 */
export function addEventsCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("events"))
    .description("Print the events of a coordination, or of all of them, oldest first")
    .argument("[id]", "the id of a coordination or a unique prefix; all coordinations when left out")
    .option("--type <type>", "only events of this type, such as step.failed")
    .option("--from <sequence>", "from this sequence number on in each coordination")
    .option("--limit <n>", "at most this many");
  withQueryOptions(command, {
    cause:
      "only events that this event (ID:SEQUENCE) caused, or of coordinations that followed from this one (ID)",
    session: "only of coordinations of this session, and of steps that it asked for",
    agent: "only of coordinations of this agent, and of steps that it runs",
    childSession: "only of steps that run in this session",
    recorded: "events that were recorded",
  })
    .option(
      "--follow",
      "print events as they are appended, until Ctrl-C; with --since first those from then on",
    )
    .action((id: string | undefined, options: EventsOptions) =>
      runCommand(host, options, () => showEvents(host, id, options)),
    );
  withExamples(command, host, [
    "events co-1f0c",
    "events --type step.failed --since 2h",
    "events --trace 4bf92f3577b34da6a3ce929d0e0e4736 --json",
    "events --cause co-1f0c:12",
    "events --child-session agent:main:subagent:7c1e",
    "events --follow --agent research --json",
  ]);
}

/** The events that are shown, by type, place and number. */
interface EventsChoice {
  readonly type: string | undefined;
  readonly from: number;
  readonly limit: number;
}

async function showEvents(host: CliHost, id: string | undefined, options: EventsOptions): Promise<void> {
  const query = parseQuery(options);
  await withLedger(host, options, async (reader) => {
    const found = await selectEventPages(host, reader, { id, options, query });
    const pages = limitEvents(filterEvents(found, query), query.limit);
    if (options.follow) await (options.json ? writeJsonLines(host, pages) : writeTable(host, pages));
    else if (options.json) await writeJsonArray(host, pages);
    else if (!(await writeTable(host, pages)))
      await host.stdout.write(describeNoEvents(options, host.stdout.terminal));
  });
}

/** Events, some at a time. */
type EventPages = AsyncIterable<readonly RunEvent[]>;

interface EventsRequest {
  readonly id: string | undefined;
  readonly options: EventsOptions;
  readonly query: EventsChoice;
}

/** Returns the pages to print: what is appended from now on, what the options find, or whole logs. */
async function selectEventPages(
  host: CliHost,
  reader: LedgerReader,
  { id, options, query }: EventsRequest,
): Promise<EventPages> {
  const runId = id === undefined ? undefined : await resolveCoordinationId(reader, id);
  const filter = await resolveFilter(reader, options, host.now());
  if (options.follow && options.until !== undefined)
    throw new CoordinationError("INPUT_INVALID", "--until: --follow waits for new events and has no end");
  if (options.follow) return followEvents(host, reader, { filter, runId });
  if (hasQueryOption(options))
    return readFoundEvents(reader, { filter, ...(runId !== undefined && { runId }) });
  const runs = runId === undefined ? listRuns(reader, { order: "oldest" }) : [{ runId }];
  return readLogs(reader, runs, query);
}

function describeNoEvents(options: EventsOptions, terminal: Terminal): string {
  return hasQueryOption(options) ? `no events match ${describeQuery(options, terminal)}\n` : "no events\n";
}

function parseQuery({ type, from, limit }: EventsOptions): EventsChoice {
  const max = Number.MAX_SAFE_INTEGER;
  return {
    type: type === undefined ? undefined : parseChoice(type, "--type", TYPES),
    from: from === undefined ? 0 : parseWholeNumber(from, { option: "--from", min: 0, max }),
    limit: limit === undefined ? max : parseWholeNumber(limit, { option: "--limit", min: 1, max }),
  };
}

/** A run as far as its events are found by it. */
interface NamedRun {
  readonly runId: CoordinationId;
}

/** Yields the events of each run from a sequence number on. */
async function* readLogs(
  reader: LedgerReader,
  runs: AsyncIterable<NamedRun> | Iterable<NamedRun>,
  { from }: EventsChoice,
): AsyncGenerator<readonly RunEvent[]> {
  for await (const { runId } of runs) yield* readLog(reader, runId, { from });
}

async function* filterEvents(pages: EventPages, { type, from }: EventsChoice): AsyncGenerator<RunEvent[]> {
  for await (const page of pages) {
    const matching = page.filter(
      (event) => (type === undefined || event.type === type) && event.sequence >= from,
    );
    if (matching.length > 0) yield matching;
  }
}

/** Yields pages until there were `limit` events. */
async function* limitEvents(pages: EventPages, limit: number): AsyncGenerator<readonly RunEvent[]> {
  let left = limit;
  for await (const page of pages) {
    yield page.slice(0, left);
    left -= page.length;
    if (left <= 0) return;
  }
}

/** Writes a JSON array that stays valid even when the ledger turns out to be unreadable half-way. */
async function writeJsonArray(host: CliHost, pages: EventPages): Promise<void> {
  let opening = "[";
  try {
    for await (const page of pages) {
      const text = page.map((event) => `\n  ${formatJson(event)}`).join(",");
      if (!(await host.stdout.write(opening + text))) return;
      opening = ",";
    }
  } catch (error) {
    if (opening === "[") throw error;
    host.failWith(1);
    await host.stderr.write(formatError(asCoordinationError(error), host));
  }
  await host.stdout.write(opening === "[" ? "[]\n" : "\n]\n");
}

async function writeJsonLines(host: CliHost, pages: EventPages): Promise<void> {
  for await (const page of pages) {
    const text = page.map((event) => `${formatJson(event)}\n`).join("");
    if (!(await host.stdout.write(text))) return;
  }
}

/** Writes a heading for each run and a line for each event; returns whether there was anything to write. */
async function writeTable(host: CliHost, pages: EventPages): Promise<boolean> {
  const { terminal } = host.stdout;
  let runId: string | undefined;
  for await (const page of pages) {
    let text = "";
    for (const event of page) {
      if (event.runId !== runId)
        text += `${renderRunHeading(event.runId, { isFirst: runId === undefined, terminal })}\n`;
      runId = event.runId;
      text += `${renderEventRow(event, terminal)}\n`;
    }
    if (!(await host.stdout.write(text))) return true;
  }
  return runId !== undefined;
}

function renderRunHeading(
  runId: string,
  { isFirst, terminal }: { isFirst: boolean; terminal: Terminal },
): string {
  const title = createPaint(terminal).tone("strong", formatPrintable(runId, terminal.unicode));
  return isFirst ? title : `\n${title}`;
}

function renderEventRow(event: RunEvent, terminal: Terminal): string {
  const { sequence, timestamp, type, nodeId, causationId } = event;
  const paint = createPaint(terminal);
  const print = (text: string): string => formatPrintable(text, terminal.unicode);
  const step = print(nodeId ?? "").padEnd(12);
  const cause =
    causationId === undefined ? "" : `from ${print(causationId.slice(causationId.lastIndexOf(":") + 1))}`;
  const isTrouble = type === "step.failed" || type === "step.timed_out";
  const name = paint.tone(isTrouble ? "bad" : type in FACT_PAYLOADS ? "plain" : "faint", type.padEnd(38));
  const line = `${String(sequence).padStart(6)}  ${paint.tone("faint", timestamp)}  ${name}  ${step}  ${cause}`;
  return line.trimEnd();
}
