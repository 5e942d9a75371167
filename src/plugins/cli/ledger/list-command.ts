/** Owns: `list`. */
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { describeForkSource } from "./kept.ts";
import {
  describeQuery,
  hasQueryOption,
  resolveFilter,
  withQueryOptions,
  type LedgerFilter,
  type QueryOptions,
} from "./query-options.ts";
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { withLedger } from "./open-ledger.ts";
import { readKeptText, type RunEntry } from "../../reports/find-coordination.ts";
import { listFoundRuns } from "../../../agents/coordination/runtime/log/read-found.ts";
import { listRuns } from "../../../agents/coordination/runtime/log/read-pages.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { renderTable, type Column } from "../terminal/table.ts";
import {
  formatCount,
  formatDuration,
  formatTokens,
  formatUsd,
} from "../../../agents/coordination/std/quantities.ts";
import {
  parseChoice,
  runCommand,
  parseWholeNumber,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "../terminal/run-command.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { addDrivingGateways, describeGateway } from "../../reports/gateway-report.ts";
import { createCoordinationReport, type CoordinationReport } from "../../reports/run-report.ts";

const STATUSES = ["running", "ended", "success", "partial", "failed", "escalated", "cancelled"] as const;
const LIMIT_MAX = 100_000;
/** `co-` and eight digits. */
const ID_CHARS_MIN = 11;
/** A narrower terminal has no room for tokens and cost. */
const BILLED_COLUMNS = 120;

interface ListOptions extends ReaderOptions, QueryOptions {
  readonly status?: string;
  readonly owner?: string;
  readonly limit: string;
}

/** The report of a coordination that is listed. */
type ListedReport = CoordinationReport;

/** Adds the command `list`, which lists coordinations, newest first. */
export function addListCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("list"))
    .description("List coordinations, newest first")
    .option("--status <status>", `only these: ${STATUSES.join(", ")}`)
    .option("--owner <session>", "only those that this session owns")
    .option("--limit <n>", "at most this many", "50");
  withQueryOptions(command, {
    cause:
      "only those that followed from this coordination (ID), or that have what this event (ID:SEQUENCE) caused",
    session: "only those of this session, or with a step that it asked for",
    agent: "only those of this agent, or with a step that it runs",
    childSession: "only those with a step that runs in this session",
    recorded: "those that were opened",
  }).action((options: ListOptions) => runCommand(host, options, () => showCoordinations(host, options)));
  withExamples(command, host, [
    "list",
    "list --status running",
    "list --agent research --since 2h",
    "list --trace 4bf92f3577b34da6a3ce929d0e0e4736",
    "list --session agent:main:main --since 2026-01-31 --until 2026-02-01",
    "list --limit 500 --json",
  ]);
}

async function showCoordinations(host: CliHost, options: ListOptions): Promise<void> {
  const limit = parseWholeNumber(options.limit, { option: "--limit", min: 1, max: LIMIT_MAX });
  const choice = parseStatusChoice(options);
  await withLedger(host, options, async (reader) => {
    const filter = await resolveFilter(reader, options, host.now());
    const entries = await takeMatchingEntries(
      findRunEntries(reader, { options, filter, choice }),
      choice,
      limit,
    );
    const listed = await readCoordinationReports(reader, entries);
    if (options.json) await writeJson(host, listed);
    else if (listed.length === 0)
      await host.stdout.write(describeNoCoordinations(options, host.stdout.terminal));
    else await host.stdout.write(renderCoordinationTable(listed, host.stdout.terminal, host.now()));
  });
}

async function readCoordinationReports(
  reader: LedgerReader,
  entries: readonly RunEntry[],
): Promise<readonly ListedReport[]> {
  const listed: ListedReport[] = [];
  for (const entry of entries)
    listed.push(createCoordinationReport(entry, await readKeptText(reader, entry.summary.objective)));
  return addDrivingGateways(reader, listed);
}

function describeNoCoordinations(options: ListOptions, terminal: Terminal): string {
  return hasQueryOption(options)
    ? `no coordinations match ${describeQuery(options, terminal)}\n`
    : "no coordinations\n";
}

/** The statuses that a listing is confined to. */
interface StatusChoice {
  readonly status?: "running" | "ended";
  matches(entry: RunEntry): boolean;
}

/** Returns the status to ask the ledger for, and a test of what else an entry must match. */
function parseStatusChoice({ status: text, owner }: ListOptions): StatusChoice {
  const status = text === undefined ? undefined : parseChoice(text, "--status", STATUSES);
  const stored = status === undefined || status === "running" ? status : ("ended" as const);
  return {
    ...(stored && { status: stored }),
    matches: ({ summary }) =>
      (owner === undefined || summary.ownerSession === owner) &&
      (status === undefined || status === "ended" || summary.status === status),
  };
}

/** The options of a listing, and the filter and status that they say. */
interface ListRequest {
  readonly options: ListOptions;
  readonly filter: LedgerFilter;
  readonly choice: StatusChoice;
}

function findRunEntries(
  reader: LedgerReader,
  { options, filter, choice }: ListRequest,
): AsyncIterable<RunEntry> {
  const { owner } = options;
  const status = choice.status && { status: choice.status };
  if (owner === undefined && !hasQueryOption(options)) return listRuns(reader, status);
  // Coordinations that a session owns are among those found by it.
  const session = filter.session ?? (owner as SessionKey | undefined);
  return listFoundRuns(reader, { filter: { ...filter, ...(session && { session }) }, ...status });
}

async function takeMatchingEntries(
  entries: AsyncIterable<RunEntry>,
  choice: StatusChoice,
  limit: number,
): Promise<RunEntry[]> {
  const matching: RunEntry[] = [];
  for await (const entry of entries) {
    if (choice.matches(entry)) matching.push(entry);
    if (matching.length === limit) break;
  }
  return matching;
}

function renderCoordinationTable(listed: readonly ListedReport[], terminal: Terminal, now: number): string {
  const paint = createPaint(terminal);
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  const idChars = measureUniquePrefix(listed.map(({ coordinationId }) => coordinationId));
  const isBilled = terminal.columns >= BILLED_COLUMNS && listed.some(({ usage }) => usage !== undefined);
  const columns: Column<ListedReport>[] = [
    { heading: "ID", text: ({ coordinationId }) => print(coordinationId).slice(0, idChars) },
    {
      heading: "STATUS",
      text: ({ status }) => `  ${status}`,
      min: 11,
      paint: (cell, { status }) => cell.replace(`  ${status}`, paint.coordinationStatus(status)),
    },
    { heading: "AGE", text: ({ createdAtMs }) => formatDuration(Math.max(0, now - createdAtMs)), min: 7 },
    { heading: "STEPS", text: ({ steps }) => describeStepCounts(steps), min: 20 },
    ...(isBilled ? BILL_COLUMNS : []),
    { heading: "OWNER", text: ({ ownerSession }) => print(ownerSession), max: 26 },
    // Left out where one gateway has the ledger for itself.
    ...(listed.some((entry) => describeGateway(entry) !== "")
      ? [{ heading: "GATEWAY", text: (entry: ListedReport) => print(describeGateway(entry)), max: 28 }]
      : []),
    {
      heading: "OBJECTIVE",
      text: ({ forkedFrom, objective }) =>
        print([...describeForkSource(forkedFrom), objective ?? "-"].join(": ")),
      restMin: 12,
    },
  ];
  const [heading = "", ...lines] = renderTable(listed, columns, terminal);
  return `${[paint.tone("faint", heading), ...lines].join("\n")}\n`;
}

/** A report as far as the columns of a bill need it. */
type BilledReport = Pick<ListedReport, "usage">;

/** The columns of what was used. */
export const BILL_COLUMNS: readonly Column<BilledReport>[] = [
  {
    heading: "TOKENS",
    text: ({ usage }) => (usage ? formatTokens(usage.tokens) : "-"),
    min: 7,
    isNumber: true,
  },
  {
    heading: "COST",
    text: ({ usage }) => (usage ? formatUsd(usage.costMicroUsd) : "-"),
    min: 8,
    isNumber: true,
  },
];

function describeStepCounts({ total, open, failed }: ListedReport["steps"]): string {
  const parts = [...(open > 0 ? [`${open} open`] : []), ...(failed > 0 ? [`${failed} failed`] : [])];
  return parts.length > 0 ? `${total} (${parts.join(", ")})` : formatCount(total, "step");
}

/**
 * Returns how many leading characters are needed to tell the listed ids apart, at least eleven where the longest has
 * as many. An id may be listed several times.
 */
export function measureUniquePrefix(listed: readonly string[]): number {
  const ids = [...new Set(listed)];
  const longest = ids.reduce((chars, id) => Math.max(chars, id.length), 0);
  let chars = Math.min(ID_CHARS_MIN, longest);
  while (chars < longest && new Set(ids.map((id) => id.slice(0, chars))).size < ids.length) chars += 1;
  return chars;
}
