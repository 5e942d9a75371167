/** Owns: `verify`. */
import { isCoordinationError } from "../../agents/coordination/contracts/errors.ts";
import { verifyLedger, type Verification } from "../../agents/coordination/runtime/verify-ledger.ts";
import type { CliHost, CommandGroup, Terminal } from "./cli-host.ts";
import { withLedger } from "./open-ledger.ts";
import { paintFor } from "./paint.ts";
import { printable } from "./printable.ts";
import { count } from "./quantities.ts";
import { runCommand, withExamples, withReaderOptions, writeJson, type ReaderOptions } from "./run-command.ts";

const PROGRESS_EVERY_MS = 200;

export function addVerify(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("verify"))
    .description("Prove the ledger: every stored byte, every hash, every event's meaning")
    .action((options: ReaderOptions) => runCommand(host, options, () => verify(host, options)));
  withExamples(command, host, ["verify", "verify --ledger backup/ledger.sqlite", "verify --json"]);
}

async function verify(host: CliHost, options: ReaderOptions): Promise<void> {
  const verification = await verifyFile(host, options);
  if (!verification.ok) host.failWith(1);
  const { ok, problems, coordinations, events } = verification;
  if (options.json) await writeJson(host, { ok, problems, coordinations, events });
  else await host.stdout.write(render(verification, host.stdout.terminal));
}

/** A damaged file is a result, not an error. */
async function verifyFile(host: CliHost, options: ReaderOptions): Promise<Verification> {
  const progress = progressOn(host);
  try {
    return await withLedger(host, options, (reader) => verifyLedger(reader, progress.show));
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "LEDGER_CORRUPT") throw error;
    const { message } = error;
    return { ok: false, coordinations: 0, events: 0, problems: [{ kind: "file_damaged", message }] };
  } finally {
    await progress.clear();
  }
}

interface Progress {
  readonly show: (done: { readonly coordinations: number; readonly events: number }) => void;
  readonly clear: () => Promise<void>;
}

function progressOn(host: CliHost): Progress {
  const { stderr } = host;
  let shownAtMs: number = host.now();
  let isShown = false;
  return {
    show: ({ coordinations, events }) => {
      const now = host.now();
      if (!stderr.terminal.isTTY || now - shownAtMs < PROGRESS_EVERY_MS) return;
      shownAtMs = now;
      isShown = true;
      void stderr.write(`\rchecked ${count(coordinations, "coordination")}, ${count(events, "event")} `);
    },
    clear: async () => {
      if (isShown) await stderr.write("\r\u001b[K");
    },
  };
}

function render({ ok, problems, coordinations, events }: Verification, terminal: Terminal): string {
  const paint = paintFor(terminal);
  const extent = `${count(coordinations, "coordination")}, ${count(events, "event")}`;
  if (ok) return `${paint.tone("good", "ok")}  ${extent}: every hash, sequence, cause and projection holds\n`;
  const lines = problems.map(({ kind, runId, sequence, message }) => {
    const place = runId === undefined ? "" : `${runId}${sequence === undefined ? "" : `:${sequence}`}: `;
    return `${paint.tone("bad", kind)}  ${printable(place + message, terminal.unicode)}`;
  });
  const verdict = `${paint.tone("alarm", " DAMAGED ")}  ${count(problems.length, "problem")} in ${extent}`;
  const advice = "Keep the file as it is, and move it aside or restore a backup.";
  return `${[verdict, ...lines, advice].join("\n")}\n`;
}
