/** Owns: `runs`: the workflow runs of a ledger, and the events of one. */
import { CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import type { WorkflowEvent } from "../../agents/coordination/contracts/workflow-events.ts";
import type { LedgerReader } from "../compose.ts";
import type { CliHost, CommandGroup, Terminal } from "./cli-host.ts";
import { withLedger } from "./open-ledger.ts";
import { paintFor } from "./paint.ts";
import { printable } from "./printable.ts";
import { count, instant } from "./quantities.ts";
import {
  runCommand,
  wholeNumber,
  withExamples,
  withReaderOptions,
  writeJson,
  writeLines,
  type ReaderOptions,
} from "./run-command.ts";

const LIMIT_MAX = 100_000;
const PAGE = 1_000;
const TYPE_CELLS = 42;

interface RunsOptions extends ReaderOptions {
  readonly limit: string;
}

type Entry = Awaited<ReturnType<LedgerReader["workflows"]["list"]>>[number];

export function addRuns(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("runs [id]"))
    .description("List workflow runs, newest first, or the events of one (OpenWOP)")
    .option("--limit <n>", "at most this many", "50")
    .action((id: string | undefined, options: RunsOptions) =>
      runCommand(host, options, () => (id === undefined ? list(host, options) : show(host, id, options))),
    );
  withExamples(command, host, [
    "runs",
    "runs run-6f1c2f6e-... --json",
    "runs --limit 500 --ledger ./runs.sqlite",
  ]);
}

async function list(host: CliHost, options: RunsOptions): Promise<void> {
  const limit = wholeNumber(options.limit, { option: "--limit", min: 1, max: LIMIT_MAX });
  await withLedger(host, options, async ({ workflows }) => {
    const newest = await newestRuns(workflows, limit);
    if (options.json) await writeJson(host, newest.map(listedOf));
    else
      await writeLines(
        host,
        newest.length > 0 ? newest.map((entry) => lineOf(entry, host.stdout.terminal)) : NONE,
      );
  });
}

const NONE = ["no workflow has run in this ledger; `serve` runs them (docs/openwop.md)"];

/** The store lists from the oldest on. */
async function newestRuns(workflows: LedgerReader["workflows"], limit: number): Promise<Entry[]> {
  let newest: Entry[] = [];
  for (let after = 0; ;) {
    const page = await workflows.list({ after, limit: PAGE });
    newest = [...newest, ...page].slice(-limit);
    after = page.at(-1)?.ordinal ?? after;
    if (page.length < PAGE) return newest.toReversed();
  }
}

function listedOf({ runId, length, summary }: Entry) {
  const { status, tenant, workflowId, createdAtMs, parent } = summary;
  const startedAt = new Date(createdAtMs).toISOString();
  return { runId, workflowId, status, tenant, startedAt, events: length, parentRunId: parent?.runId ?? null };
}

function lineOf({ runId, summary: { status, workflowId, createdAtMs } }: Entry, terminal: Terminal): string {
  const paint = paintFor(terminal);
  return `${instant(createdAtMs)}  ${paint.tone(toneOf(status), status.padEnd(16))}  ${printable(runId, terminal.unicode)}  ${printable(workflowId, terminal.unicode)}`;
}

function toneOf(status: string): "good" | "bad" | "faint" {
  if (status === "completed") return "good";
  return status === "failed" || status === "cancelled" ? "bad" : "faint";
}

async function show(host: CliHost, id: string, options: RunsOptions): Promise<void> {
  await withLedger(host, options, async ({ workflows }) => {
    const entry = await workflows.entry(id as CoordinationId);
    if (!entry)
      throw new CoordinationError("COORDINATION_NOT_FOUND", `no workflow run ${JSON.stringify(id)}`);
    const events = await eventsOf(workflows, entry);
    if (options.json) await writeJson(host, { ...listedOf(entry), log: events });
    else await writeLines(host, storyOf(entry, events, host.stdout.terminal));
  });
}

async function eventsOf(workflows: LedgerReader["workflows"], { runId }: Entry): Promise<WorkflowEvent[]> {
  const events: WorkflowEvent[] = [];
  for (;;) {
    const page = await workflows.read(runId, { from: events.length, limit: PAGE });
    events.push(...page);
    if (page.length < PAGE) return events;
  }
}

/** Names, phases and codes; the values of a run are for `--json`. */
function storyOf({ runId, summary }: Entry, events: readonly WorkflowEvent[], terminal: Terminal): string[] {
  const text = (value: string): string => printable(value, terminal.unicode);
  const head = `${text(runId)}  ${text(summary.workflowId)}  ${summary.status}, ${count(events.length, "event")}`;
  return [head, ...events.map((event) => eventLine(event, text))];
}

function eventLine(
  { sequence, timestamp, type, nodeId, payload }: WorkflowEvent,
  text: (value: string) => string,
): string {
  const told: Readonly<Record<string, unknown>> = payload;
  const words = TOLD.flatMap((key) => {
    const value = told[key];
    return typeof value === "string" || typeof value === "number" ? [`${key} ${value}`] : [];
  });
  const about = text([...(nodeId === undefined ? [] : [nodeId]), ...words].join(", "));
  return `${String(sequence).padStart(5)}  ${timestamp.slice(11, 23)}  ${type.padEnd(TYPE_CELLS)}  ${about}`;
}

const TOLD = ["phase", "workerId", "kind", "iteration", "name"];
