/** Owns: `list`. */
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { forkText } from "./kept.ts";
import {
  describeQuery,
  hasQuery,
  readFilter,
  withQueryOptions,
  type LedgerFilter,
  type QueryOptions,
} from "./query-options.ts";
import type { SessionKey } from "../../../agents/coordination/contracts/ids.ts";
import { withLedger } from "./open-ledger.ts";
import { textOf, type RunEntry } from "../../reports/find-coordination.ts";
import { listFoundRuns } from "../../../agents/coordination/runtime/log/read-found.ts";
import { listRuns } from "../../../agents/coordination/runtime/log/read-pages.ts";
import { paintFor } from "../terminal/paint.ts";
import { cellsOf, fit, formatPrintable, shorten } from "../terminal/printable.ts";
import {
  formatCount,
  formatDuration,
  formatTokens,
  formatUsd,
} from "../../../agents/coordination/std/quantities.ts";
import {
  oneOf,
  runCommand,
  parseWholeNumber,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "../terminal/run-command.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { addDrivers, describeGateway } from "../../reports/gateway-report.ts";
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

type Listed = CoordinationReport;

export function addList(parent: CommandGroup, host: CliHost): void {
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
  }).action((options: ListOptions) => runCommand(host, options, () => list(host, options)));
  withExamples(command, host, [
    "list",
    "list --status running",
    "list --agent research --since 2h",
    "list --trace 4bf92f3577b34da6a3ce929d0e0e4736",
    "list --session agent:main:main --since 2026-01-31 --until 2026-02-01",
    "list --limit 500 --json",
  ]);
}

async function list(host: CliHost, options: ListOptions): Promise<void> {
  const limit = parseWholeNumber(options.limit, { option: "--limit", min: 1, max: LIMIT_MAX });
  const choice = chooseStatus(options);
  await withLedger(host, options, async (reader) => {
    const filter = await readFilter(reader, options, host.now());
    const entries = await entriesOf(findEntries(reader, { options, filter, choice }), choice, limit);
    const listed = await readReports(reader, entries);
    if (options.json) await writeJson(host, listed);
    else if (listed.length === 0) await host.stdout.write(describeNothing(options, host.stdout.terminal));
    else await host.stdout.write(renderList(listed, host.stdout.terminal, host.now()));
  });
}

async function readReports(reader: LedgerReader, entries: readonly RunEntry[]): Promise<readonly Listed[]> {
  const listed: Listed[] = [];
  for (const entry of entries)
    listed.push(createCoordinationReport(entry, await textOf(reader, entry.summary.objective)));
  return addDrivers(reader, listed);
}

function describeNothing(options: ListOptions, terminal: Terminal): string {
  return hasQuery(options)
    ? `no coordinations match ${describeQuery(options, terminal)}\n`
    : "no coordinations\n";
}

interface Choice {
  readonly status?: "running" | "ended";
  matches(entry: RunEntry): boolean;
}

function chooseStatus({ status: text, owner }: ListOptions): Choice {
  const status = text === undefined ? undefined : oneOf(text, "--status", STATUSES);
  const stored = status === undefined || status === "running" ? status : ("ended" as const);
  return {
    ...(stored && { status: stored }),
    matches: ({ summary }) =>
      (owner === undefined || summary.ownerSession === owner) &&
      (status === undefined || status === "ended" || summary.status === status),
  };
}

interface Wanted {
  readonly options: ListOptions;
  readonly filter: LedgerFilter;
  readonly choice: Choice;
}

function findEntries(reader: LedgerReader, { options, filter, choice }: Wanted): AsyncIterable<RunEntry> {
  const { owner } = options;
  const status = choice.status && { status: choice.status };
  if (owner === undefined && !hasQuery(options)) return listRuns(reader, status);
  // Coordinations that a session owns are among those found by it.
  const session = filter.session ?? (owner as SessionKey | undefined);
  return listFoundRuns(reader, { filter: { ...filter, ...(session && { session }) }, ...status });
}

async function entriesOf(
  entries: AsyncIterable<RunEntry>,
  choice: Choice,
  limit: number,
): Promise<RunEntry[]> {
  const matching: RunEntry[] = [];
  for await (const entry of entries) {
    if (choice.matches(entry)) matching.push(entry);
    if (matching.length === limit) break;
  }
  return matching;
}

function renderList(listed: readonly Listed[], terminal: Terminal, now: number): string {
  const paint = paintFor(terminal);
  const { unicode } = terminal;
  const print = (value: string): string => formatPrintable(value, unicode);
  const idChars = measureUniqueChars(listed.map(({ coordinationId }) => coordinationId));
  const owners = listed.map(({ ownerSession }) => print(ownerSession));
  const owner = Math.min(26, Math.max(5, ...owners.map(cellsOf)));
  const isBilled = terminal.columns >= BILLED_COLUMNS && listed.some(({ usage }) => usage !== undefined);
  const bill = isBilled ? `${"TOKENS".padStart(7)}  ${"COST".padStart(8)}  ` : "";
  const gateways = createGatewayColumn(listed, unicode);
  const heading = `${fit("ID", idChars, unicode)}  ${"STATUS".padEnd(11)}  ${"AGE".padEnd(7)}  ${"STEPS".padEnd(20)}  ${bill}${fit("OWNER", owner, unicode)}  ${gateways.heading}OBJECTIVE`;
  const rest = Math.max(
    12,
    terminal.columns - idChars - owner - bill.length - gateways.heading.length - 11 - 7 - 20 - 10,
  );
  const lines = listed.map((entry, index) => {
    const { coordinationId, status, objective, createdAtMs, steps } = entry;
    const word = paint.coordinationStatus(status) + " ".repeat(Math.max(0, 9 - status.length));
    const about = [...forkText(entry.forkedFrom), objective ?? "-"].join(": ");
    const age = formatDuration(Math.max(0, now - createdAtMs)).padEnd(7);
    return [
      print(coordinationId).slice(0, idChars).padEnd(idChars),
      word,
      age,
      stepsOf(steps).padEnd(20),
      ...(isBilled ? billOf(entry) : []),
      fit(owners[index] ?? "", owner, unicode),
      ...gateways.cellsAt(index),
      shorten(print(about), rest, unicode),
    ].join("  ");
  });
  return `${[paint.tone("faint", heading), ...lines].join("\n")}\n`;
}

const GATEWAY_CELLS_MAX = 28;

interface GatewayColumn {
  /** With the space after it; empty where there is no such column. */
  readonly heading: string;
  readonly cellsAt: (index: number) => readonly string[];
}

/** Says which gateway opened a coordination and which one drives it; not there where one gateway has the ledger for itself. */
function createGatewayColumn(listed: readonly Listed[], unicode: boolean): GatewayColumn {
  const texts = listed.map((entry) => formatPrintable(describeGateway(entry), unicode));
  if (texts.every((text) => text === "")) return { heading: "", cellsAt: () => [] };
  const cells = Math.min(GATEWAY_CELLS_MAX, Math.max(7, ...texts.map(cellsOf)));
  return {
    heading: `${fit("GATEWAY", cells, unicode)}  `,
    cellsAt: (index) => [fit(texts[index] ?? "", cells, unicode)],
  };
}

function billOf({ usage }: Listed): string[] {
  const [tokens, cost] = usage ? [formatTokens(usage.tokens), formatUsd(usage.costMicroUsd)] : ["-", "-"];
  return [tokens.padStart(7), cost.padStart(8)];
}

function stepsOf({ total, open, failed }: Listed["steps"]): string {
  const parts = [...(open > 0 ? [`${open} open`] : []), ...(failed > 0 ? [`${failed} failed`] : [])];
  return parts.length > 0 ? `${total} (${parts.join(", ")})` : formatCount(total, "step");
}

/** Counts the characters that tell the listed ids apart; one id may be listed several times. */
export function measureUniqueChars(listed: readonly string[]): number {
  const ids = [...new Set(listed)];
  const longest = ids.reduce((chars, id) => Math.max(chars, id.length), 0);
  let chars = Math.min(ID_CHARS_MIN, longest);
  while (chars < longest && new Set(ids.map((id) => id.slice(0, chars))).size < ids.length) chars += 1;
  return chars;
}
