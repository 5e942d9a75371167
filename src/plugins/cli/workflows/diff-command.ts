/** Owns: `diff`: where two workflow runs of a ledger differ (OpenWOP RFC 0054). */
import {
  diffRuns,
  type ComparedRun,
  type EventDiff,
  type RunDiff,
} from "../../../agents/coordination/workflow/run-diff.ts";
import { hasRunEnded } from "../../../agents/coordination/contracts/workflows/workflow-summary.ts";
import { readLog } from "../../../agents/coordination/runtime/log/read-pages.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import { findWorkflowEntry } from "../../reports/find-coordination.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { withLedger } from "../ledger/open-ledger.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import {
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  writeLines,
  type ReaderOptions,
} from "../terminal/run-command.ts";

const SHOWN_MAX = 50;

/** Adds the command `diff`, which tells where two workflow runs differ, and exits with 1 where they do. */
export function addDiffCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("diff"))
    .description("Tell where two workflow runs differ; exit code 1 where they do")
    .argument("<run>", "the id of a workflow run, or a unique prefix of one")
    .argument("<other>", "the id of another one, such as a fork of it")
    .action((one: string, other: string, options: ReaderOptions) =>
      runCommand(host, options, () => showRunDiff(host, [one, other], options)),
    );
  withExamples(command, host, [
    "diff run-6f1c2f6e-... run-0b7a51d3-...",
    "diff run-6f1c2f6e-... run-0b7a51d3-... --ledger ./runs.sqlite --json",
  ]);
}

/** Writes where two runs differ, as text or JSON; exit code 1 where they do. */
async function showRunDiff(
  host: CliHost,
  [one, other]: readonly [string, string],
  options: ReaderOptions,
): Promise<void> {
  await withLedger(host, options, async (reader) => {
    const found = diffRuns(await readComparedRun(reader, one), await readComparedRun(reader, other));
    if (isDifferent(found)) host.failWith(1);
    if (options.json) await writeJson(host, found);
    else await writeLines(host, renderRunDiff(found, host.stdout.terminal));
  });
}

async function readComparedRun(reader: LedgerReader, id: string): Promise<ComparedRun> {
  const { runId, length, summary } = await findWorkflowEntry(reader, id);
  const events = (await Array.fromAsync(readLog(reader.workflows, runId))).flat();
  return { runId, events, isComplete: hasRunEnded(summary.status) && events.length >= length };
}

function isDifferent({ eventDiffs, stateDiff }: RunDiff): boolean {
  return eventDiffs.length > 0 || Object.keys(stateDiff).length > 0;
}

/** Renders the names and places of differences; the values of the runs are for `--json`. */
function renderRunDiff(runDiff: RunDiff, terminal: Terminal): string[] {
  const { a, b, eventDiffs, stateDiff, truncated } = runDiff;
  const paint = createPaint(terminal);
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  if (!isDifferent(runDiff)) {
    const verdict = truncated ? "equal so far" : "equal";
    return [`${paint.tone("good", verdict)}  ${print(a)} and ${print(b)}`];
  }
  const lines = eventDiffs.slice(0, SHOWN_MAX).map((diff) => formatEventDiff(diff, print));
  const left = eventDiffs.length - lines.length;
  return [
    `${paint.tone("warning", "differ")}  ${describeExtent(runDiff)}`,
    ...lines,
    ...(left > 0 ? [`        and ${left} more`] : []),
    `state   ${print(JSON.stringify(stateDiff))}`,
  ];
}

function describeExtent({ eventDiffs, truncated }: RunDiff): string {
  const [first] = eventDiffs;
  if (!first) return "in the state alone";
  const places = formatCount(eventDiffs.length, "place");
  return `from event ${first.seq} on, ${places}${truncated ? " or more" : ""}`;
}

function formatEventDiff({ seq, op, aEvent, bEvent }: EventDiff, print: (value: string) => string): string {
  const names = [aEvent, bEvent].map((event) =>
    event === undefined
      ? "nothing"
      : [event.type, ...(event.nodeId === undefined ? [] : [event.nodeId])].join(" "),
  );
  const [was = "", is = ""] = names;
  return `${String(seq).padStart(6)}  ${op.padEnd(7)}  ${print(was === is ? was : `${was} | ${is}`)}`;
}
