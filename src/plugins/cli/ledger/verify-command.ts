/** Owns: `verify`. */
import { isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { verifyLedger, type Verification } from "../../../agents/coordination/runtime/verify-ledger.ts";
import { verifyWorkflowRuns } from "../../../agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import type { LedgerReader } from "../../compose.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { withLedger } from "./open-ledger.ts";
import { paintFor } from "../terminal/paint.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import { createProgressLine, type ProgressLine } from "../terminal/progress-line.ts";
import {
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "../terminal/run-command.ts";

export function addVerify(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("verify"))
    .description("Prove the ledger: every stored byte, every hash, every event's meaning")
    .action((options: ReaderOptions) => runCommand(host, options, () => verify(host, options)));
  withExamples(command, host, ["verify", "verify --ledger backup/ledger.sqlite", "verify --json"]);
}

async function verify(host: CliHost, options: ReaderOptions): Promise<void> {
  const verification = await verifyFile(host, options);
  if (!verification.ok) host.failWith(1);
  const { ok, problems, coordinations, workflowRuns, events } = verification;
  if (options.json) await writeJson(host, { ok, problems, coordinations, workflowRuns, events });
  else await host.stdout.write(render(verification, host.stdout.terminal));
}

type Verified = Verification & { readonly workflowRuns: number };

/** A damaged file is a result, not an error. */
async function verifyFile(host: CliHost, options: ReaderOptions): Promise<Verified> {
  const progress = createProgressLine(host);
  try {
    return await withLedger(host, options, (reader) => verifyAll(reader, progress));
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "LEDGER_CORRUPT") throw error;
    const { message } = error;
    const problems = [{ kind: "file_damaged", message }] as const;
    return { ok: false, coordinations: 0, workflowRuns: 0, events: 0, problems };
  } finally {
    await progress.clear();
  }
}

async function verifyAll(reader: LedgerReader, progress: ProgressLine): Promise<Verified> {
  const show = (checked: Checked): void => {
    progress.show(() => `checked ${extentOf(checked)}`);
  };
  const coordinations = await verifyLedger(reader, show);
  const runs = await verifyWorkflowRuns(reader.workflows, ({ workflowRuns, events }) => {
    show({ ...coordinations, workflowRuns, events: coordinations.events + events });
  });
  const problems = [...coordinations.problems, ...runs.problems];
  const events = coordinations.events + runs.events;
  return { ...coordinations, workflowRuns: runs.workflowRuns, events, problems, ok: problems.length === 0 };
}

interface Checked {
  readonly coordinations: number;
  readonly workflowRuns?: number;
  readonly events: number;
}

function extentOf({ coordinations, workflowRuns = 0, events }: Checked): string {
  const runs = workflowRuns > 0 ? `, ${formatCount(workflowRuns, "workflow run")}` : "";
  return `${formatCount(coordinations, "coordination")}${runs}, ${formatCount(events, "event")}`;
}

function render(verified: Verified, terminal: Terminal): string {
  const { ok, problems } = verified;
  const paint = paintFor(terminal);
  const extent = extentOf(verified);
  if (ok) return `${paint.tone("good", "ok")}  ${extent}: every hash, sequence, cause and projection holds\n`;
  const lines = problems.map(({ kind, runId, sequence, message }) => {
    const place = runId === undefined ? "" : `${runId}${sequence === undefined ? "" : `:${sequence}`}: `;
    return `${paint.tone("bad", kind)}  ${formatPrintable(place + message, terminal.unicode)}`;
  });
  const verdict = `${paint.tone("alarm", " DAMAGED ")}  ${formatCount(problems.length, "problem")} in ${extent}`;
  const advice = "Keep the file as it is, and move it aside or restore a backup.";
  return `${[verdict, ...lines, advice].join("\n")}\n`;
}
