/** Owns: `runs`: the workflow runs of a ledger, and the events of one. */
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { WorkflowEvent } from "../../../agents/coordination/contracts/workflows/workflow-events.ts";
import { foldWorkflow } from "../../../agents/coordination/workflow/state/evolve-workflow.ts";
import { assessConvergence, type Convergence } from "../../../agents/coordination/workflow/state/review.ts";
import { listRuns, readLog } from "../../../agents/coordination/runtime/log/read-pages.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { findWorkflowEntry } from "../../reports/find-coordination.ts";
import { createWorkflowReport, type WorkflowEntry } from "../../reports/run-report.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatMessage, formatPrintable } from "../terminal/printable.ts";
import { isRecord } from "../../../agents/coordination/std/is-record.ts";
import { formatCount, formatInstant } from "../../../agents/coordination/std/quantities.ts";
import {
  runCommand,
  parseWholeNumber,
  withExamples,
  withReaderOptions,
  writeJson,
  writeLines,
  type ReaderOptions,
} from "../terminal/run-command.ts";

const LIMIT_MAX = 100_000;
const LIMIT_DEFAULT = "50";
const TYPE_CELLS = 42;

interface RunsOptions extends ReaderOptions {
  readonly limit?: string;
}

/** Adds the command `runs`, which lists workflow runs, or shows the events of one. */
export function addRunsCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("runs [id]"))
    .description("List workflow runs, newest first, or the events of one (OpenWOP)")
    .option("--limit <n>", `of the list: at most this many (default: ${LIMIT_DEFAULT})`)
    .action((id: string | undefined, options: RunsOptions) =>
      runCommand(host, options, () =>
        id === undefined ? showNewestRuns(host, options) : showRun(host, id, options),
      ),
    );
  withExamples(command, host, [
    "runs",
    "runs run-6f1c2f6e-... --json",
    "runs --limit 500 --ledger ./runs.sqlite",
  ]);
}

async function showNewestRuns(host: CliHost, options: RunsOptions): Promise<void> {
  const limit = parseWholeNumber(options.limit ?? LIMIT_DEFAULT, {
    option: "--limit",
    min: 1,
    max: LIMIT_MAX,
  });
  await withLedger(host, options, async ({ workflows }) => {
    const newest = await readNewestRuns(workflows, limit);
    if (options.json) await writeJson(host, newest.map(createWorkflowReport));
    else
      await writeLines(
        host,
        newest.length > 0 ? newest.map((entry) => renderRunLine(entry, host.stdout.terminal)) : NONE,
      );
  });
}

const NONE = ["no workflow has run in this ledger; `serve` runs them (docs/openwop.md)"];

async function readNewestRuns(workflows: LedgerReader["workflows"], limit: number): Promise<WorkflowEntry[]> {
  const newest: WorkflowEntry[] = [];
  for await (const entry of listRuns(workflows)) {
    newest.push(entry);
    if (newest.length === limit) break;
  }
  return newest;
}

function renderRunLine({ runId, summary, origin }: WorkflowEntry, terminal: Terminal): string {
  const { status, workflowId, createdAtMs } = summary;
  const paint = createPaint(terminal);
  const print = (value: string): string => formatMessage(value, terminal.unicode);
  const fork = origin ? `  ${paint.tone("faint", print(describeRunFork(origin)))}` : "";
  return `${formatInstant(createdAtMs)}  ${paint.tone(chooseStatusTone(status), status.padEnd(16))}  ${print(runId)}  ${print(workflowId)}${fork}`;
}

function describeRunFork({ mode, sourceRunId, fromSeq }: NonNullable<WorkflowEntry["origin"]>): string {
  return `${mode} of ${sourceRunId} from ${fromSeq}`;
}

function chooseStatusTone(status: string): "good" | "bad" | "faint" {
  if (status === "completed") return "good";
  return status === "failed" || status === "cancelled" ? "bad" : "faint";
}

async function showRun(host: CliHost, id: string, options: RunsOptions): Promise<void> {
  if (options.limit !== undefined)
    throw new CoordinationError("INPUT_INVALID", "--limit: it is for the list of runs, and this is one run");
  await withLedger(host, options, async (reader) => {
    const { workflows } = reader;
    const entry = await findWorkflowEntry(reader, id);
    const events = (await Array.fromAsync(readLog(workflows, entry.runId))).flat();
    const run = foldWorkflow(events, entry.origin);
    const convergence = run && assessConvergence(run);
    if (options.json)
      await writeJson(host, {
        ...createWorkflowReport(entry),
        ...(convergence && { convergence }),
        log: events,
      });
    else await writeLines(host, renderRunStory({ entry, events, convergence }, host.stdout.terminal));
  });
}

/** A run with its events, and whether it reached its goal. */
interface RunStory {
  readonly entry: WorkflowEntry;
  readonly events: readonly WorkflowEvent[];
  /** Whether the run reached its goal, where it says or shows that. */
  readonly convergence: Convergence | undefined;
}

/** Renders the names, phases and codes of a run; its values are for `--json`. */
function renderRunStory({ entry, events, convergence }: RunStory, terminal: Terminal): string[] {
  const { runId, summary, origin } = entry;
  const print = (value: string): string => formatMessage(value, terminal.unicode);
  const head = `${print(runId)}  ${print(summary.workflowId)}  ${summary.status}, ${formatCount(events.length, "event")}`;
  const fork = origin ? [`${" ".repeat(7)}${print(describeRunFork(origin))}`] : [];
  const gaveUp = convergence && !convergence.goalSatisfied ? [renderGaveUp(convergence, terminal)] : [];
  return [head, ...fork, ...gaveUp, ...events.map((event) => renderEventLine(event, print))];
}

/** Renders that a run completed without reaching its goal (RFC 0090), and what it lacks. */
function renderGaveUp({ unmet, notAccepted }: Convergence, terminal: Terminal): string {
  const words = [
    ...(unmet.length > 0 ? [`${unmet.join(", ")} not met`] : []),
    ...(notAccepted.length > 0 ? [`${notAccepted.join(", ")} not accepted`] : []),
  ].join("; ");
  const paint = createPaint(terminal);
  return `${" ".repeat(7)}${paint.tone("warning", "gave up")}: ${formatPrintable(words, terminal.unicode)}`;
}

function renderEventLine(
  { sequence, timestamp, type, nodeId, payload }: WorkflowEvent,
  text: (value: string) => string,
): string {
  const fields: Readonly<Record<string, unknown>> = payload;
  const words = SHOWN_FIELDS.flatMap((key) => {
    const value = fields[key];
    return typeof value === "string" || typeof value === "number" ? [`${key} ${value}`] : [];
  });
  const codes = ERROR_FIELDS.flatMap((key) => {
    const code = readErrorCode(fields[key]);
    return code === undefined ? [] : [`${key} ${code}`];
  });
  const about = text([...(nodeId === undefined ? [] : [nodeId]), ...words, ...codes].join(", "));
  return `${String(sequence).padStart(5)}  ${timestamp.slice(11, 23)}  ${type.padEnd(TYPE_CELLS)}  ${about}`;
}

const SHOWN_FIELDS = ["phase", "workerId", "kind", "iteration", "name"];

/** Fields with an error, of which only the code is shown. */
const ERROR_FIELDS = ["error", "lastError"];

function readErrorCode(error: unknown): string | undefined {
  return isRecord(error) && typeof error["code"] === "string" ? error["code"] : undefined;
}
