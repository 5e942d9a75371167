/** Owns: `events`. It reads and prints page by page, so that a ledger of any size fits in memory. */
import { FACT_PAYLOADS } from "../../../agents/coordination/contracts/facts.ts";
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { EVENT_PAYLOADS, type RunEvent } from "../../../agents/coordination/contracts/run-event.ts";
import type { LedgerReader } from "../../compose.ts";
import { listRuns, readLog } from "../../../agents/coordination/runtime/log/read-pages.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { resolveId, withLedger } from "./open-ledger.ts";
import { paintFor } from "../terminal/paint.ts";
import { formatJson, formatPrintable } from "../terminal/printable.ts";
import {
  asCoordinationError,
  formatError,
  oneOf,
  runCommand,
  parseWholeNumber,
  withExamples,
  withReaderOptions,
  type ReaderOptions,
} from "../terminal/run-command.ts";

const TYPES = Object.keys(EVENT_PAYLOADS);

interface EventsOptions extends ReaderOptions {
  readonly type?: string;
  readonly from?: string;
  readonly limit?: string;
}

export function addEvents(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("events"))
    .description("Print the events of a coordination, or of all of them, oldest first")
    .argument("[id]", "the id of a coordination or a unique prefix; all coordinations when left out")
    .option("--type <type>", "only events of this type, such as step.failed")
    .option("--from <sequence>", "from this sequence number on in each coordination")
    .option("--limit <n>", "at most this many")
    .action((id: string | undefined, options: EventsOptions) =>
      runCommand(host, options, () => showEvents(host, id, options)),
    );
  withExamples(command, host, ["events co-1f0c", "events --type step.failed", "events --json"]);
}

interface Query {
  readonly type: string | undefined;
  readonly from: number;
  readonly limit: number;
}

async function showEvents(host: CliHost, id: string | undefined, options: EventsOptions): Promise<void> {
  const query = queryOf(options);
  await withLedger(host, options, async (reader) => {
    const runs =
      id === undefined ? listRuns(reader, { order: "oldest" }) : [{ runId: await resolveId(reader, id) }];
    const pages = limitEvents(pagesOf(reader, runs, query), query.limit);
    if (options.json) await writeArray(host, pages);
    else await writeTable(host, pages);
  });
}

function queryOf({ type, from, limit }: EventsOptions): Query {
  const max = Number.MAX_SAFE_INTEGER;
  return {
    type: type === undefined ? undefined : oneOf(type, "--type", TYPES),
    from: from === undefined ? 0 : parseWholeNumber(from, { option: "--from", min: 0, max }),
    limit: limit === undefined ? max : parseWholeNumber(limit, { option: "--limit", min: 1, max }),
  };
}

interface Named {
  readonly runId: CoordinationId;
}

async function* pagesOf(
  reader: LedgerReader,
  runs: AsyncIterable<Named> | Iterable<Named>,
  { type, from }: Query,
): AsyncGenerator<RunEvent[]> {
  for await (const { runId } of runs) {
    for await (const page of readLog(reader, runId, { from })) {
      const matching = type === undefined ? page : page.filter((event) => event.type === type);
      if (matching.length > 0) yield matching;
    }
  }
}

async function* limitEvents(pages: AsyncIterable<RunEvent[]>, limit: number): AsyncGenerator<RunEvent[]> {
  let left = limit;
  for await (const page of pages) {
    yield page.slice(0, left);
    left -= page.length;
    if (left <= 0) return;
  }
}

/** Writes a JSON array that stays valid even when the ledger turns out to be unreadable half-way. */
async function writeArray(host: CliHost, pages: AsyncIterable<RunEvent[]>): Promise<void> {
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

async function writeTable(host: CliHost, pages: AsyncIterable<RunEvent[]>): Promise<void> {
  const { terminal } = host.stdout;
  let runId: string | undefined;
  for await (const page of pages) {
    let text = "";
    for (const event of page) {
      if (event.runId !== runId)
        text += `${renderHeading(event.runId, { isFirst: runId === undefined, terminal })}\n`;
      runId = event.runId;
      text += `${renderRow(event, terminal)}\n`;
    }
    if (!(await host.stdout.write(text))) return;
  }
  if (runId === undefined) await host.stdout.write("no events\n");
}

function renderHeading(
  runId: string,
  { isFirst, terminal }: { isFirst: boolean; terminal: Terminal },
): string {
  const title = paintFor(terminal).tone("strong", formatPrintable(runId, terminal.unicode));
  return isFirst ? title : `\n${title}`;
}

function renderRow(event: RunEvent, terminal: Terminal): string {
  const { sequence, timestamp, type, nodeId, causationId } = event;
  const paint = paintFor(terminal);
  const step = formatPrintable(nodeId ?? "", terminal.unicode).padEnd(12);
  const cause =
    causationId === undefined ? "" : `from ${causationId.slice(causationId.lastIndexOf(":") + 1)}`;
  const isTrouble = type === "step.failed" || type === "step.timed_out";
  const name = paint.tone(isTrouble ? "bad" : type in FACT_PAYLOADS ? "plain" : "faint", type.padEnd(38));
  const line = `${String(sequence).padStart(6)}  ${paint.tone("faint", timestamp)}  ${name}  ${step}  ${cause}`;
  return line.trimEnd();
}
