/** Owns: `verify`, also against an anchor. Does not own: making anchors (`anchor-command.ts`). */
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { ANCHOR_BYTES_MAX, type LedgerAnchor } from "../../../agents/coordination/contracts/ledger-anchor.ts";
import { verifyLedger, type Verification } from "../../../agents/coordination/runtime/verify-ledger.ts";
import { verifyWorkflowRuns } from "../../../agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import type { AnchorProblem } from "../../anchor-checks.ts";
import { readTextFile } from "../files/read-text-file.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { resolvePathBeside, withLedger } from "./open-ledger.ts";
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

const KEY_BYTES_MAX = 10_000;

export function addVerify(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("verify"))
    .description("Prove the ledger: every stored byte, every hash, every event's meaning")
    .option("--anchor <file>", "prove also that the ledger still holds what this anchor names")
    .option("--public-key <file>", "refuse an anchor that is not signed with this key (PEM)")
    .action((options: VerifyOptions) => runCommand(host, options, () => verify(host, options)));
  withExamples(command, host, [
    "verify",
    "verify --ledger backup/ledger.sqlite",
    "verify --anchor anchor.json",
    "verify --anchor anchor.json --public-key anchor-key.pub --json",
  ]);
}

interface VerifyOptions extends ReaderOptions {
  readonly anchor?: string;
  readonly publicKey?: string;
}

async function verify(host: CliHost, options: VerifyOptions): Promise<void> {
  const anchor = await readAnchorOption(options);
  const verification = await proveLedger(host, options, anchor);
  if (options.ledger === undefined) await record(host, verification);
  if (!verification.ok) host.failWith(1);
  const { ok, problems, coordinations, workflowRuns, events } = verification;
  const checkedAnchor = anchor && describeAnchor(anchor, options);
  if (options.json)
    await writeJson(host, {
      ok,
      problems,
      coordinations,
      workflowRuns,
      events,
      ...(checkedAnchor && { anchor: checkedAnchor }),
    });
  else await host.stdout.write(render(verification, host.stdout.terminal, checkedAnchor));
}

/** For the health view of the operator's page. A copy elsewhere gets no file beside it. */
async function record(host: CliHost, { ok, problems, events }: Verified): Promise<void> {
  const { recordVerification } = await import("../../verification-record.ts");
  try {
    const path = await resolvePathBeside(host, {});
    recordVerification(path, { atMs: host.now(), ok, problems: problems.length, events });
  } catch {
    // A folder that cannot be written keeps nobody from proving what is in it.
  }
}

async function readAnchorOption({ anchor, publicKey }: VerifyOptions): Promise<LedgerAnchor | undefined> {
  if (anchor === undefined) {
    if (publicKey === undefined) return undefined;
    throw new CoordinationError(
      "INPUT_INVALID",
      "--public-key: it is the key of an anchor; add --anchor FILE",
    );
  }
  const { readAnchor } = await import("../../anchor-checks.ts");
  const text = await readBounded(anchor, ANCHOR_BYTES_MAX);
  const key = publicKey === undefined ? undefined : await readBounded(publicKey, KEY_BYTES_MAX);
  return readAnchor({
    name: anchor,
    text,
    ...(publicKey !== undefined && key !== undefined && { publicKey: { name: publicKey, text: key } }),
  });
}

function readBounded(file: string, bytesMax: number): Promise<string> {
  const createTooLargeError = (): CoordinationError =>
    new CoordinationError("INPUT_INVALID", `${file}: the file has more than ${bytesMax} bytes`);
  return readTextFile(file, { bytesMax, tooLarge: createTooLargeError });
}

interface CheckedAnchor {
  readonly file: string;
  readonly madeAt: string;
  readonly runs: number;
  readonly events: number;
  /** `unchecked`: signed, but with a key that nobody named. */
  readonly signature: "none" | "unchecked" | "valid";
}

function describeAnchor(
  anchor: LedgerAnchor,
  { anchor: file = "", publicKey }: VerifyOptions,
): CheckedAnchor {
  const { madeAt, runs, events } = anchor;
  const unnamed = anchor.signature === undefined ? "none" : "unchecked";
  return { file, madeAt, runs, events, signature: publicKey === undefined ? unnamed : "valid" };
}

type Problem = Verification["problems"][number] | AnchorProblem;

export interface Verified extends Omit<Verification, "problems"> {
  readonly workflowRuns: number;
  readonly problems: readonly Problem[];
}

/** Proves the file, and that it holds what the anchor names. A damaged file is a result, not an error. */
export async function proveLedger(
  host: CliHost,
  options: ReaderOptions,
  anchor?: LedgerAnchor,
): Promise<Verified> {
  const progress = createProgressLine(host);
  try {
    return await withLedger(host, options, async (reader) => {
      const verified = await verifyAll(reader, progress);
      return anchor ? await addAnchorProblems(verified, { reader, anchor, progress }) : verified;
    });
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "LEDGER_CORRUPT") throw error;
    const { message } = error;
    const problems = [{ kind: "file_damaged", message }] as const;
    return { ok: false, coordinations: 0, workflowRuns: 0, events: 0, problems };
  } finally {
    await progress.clear();
  }
}

interface Anchored {
  readonly reader: LedgerReader;
  readonly anchor: LedgerAnchor;
  readonly progress: ProgressLine;
}

async function addAnchorProblems(
  verified: Verified,
  { reader, anchor, progress }: Anchored,
): Promise<Verified> {
  const { findAnchorProblems } = await import("../../anchor-checks.ts");
  const showRuns = (runs: number): void => {
    progress.show(() => `compared ${formatCount(runs, "run")} with the anchor`);
  };
  const problems = [...verified.problems, ...(await findAnchorProblems(reader, anchor, showRuns))];
  return { ...verified, problems, ok: problems.length === 0 };
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

function render(verified: Verified, terminal: Terminal, anchor?: CheckedAnchor): string {
  const { ok, problems } = verified;
  const paint = paintFor(terminal);
  const extent = extentOf(verified);
  if (ok) {
    const verdict = `${paint.tone("good", "ok")}  ${extent}: every hash, sequence, cause and projection holds\n`;
    return anchor ? `${verdict}${formatHeldAnchor(anchor, terminal)}\n` : verdict;
  }
  const lines = problems.map(({ kind, runId, sequence, message }) => {
    const place = runId === undefined ? "" : `${runId}${sequence === undefined ? "" : `:${sequence}`}: `;
    return `${paint.tone("bad", kind)}  ${formatPrintable(place + message, terminal.unicode)}`;
  });
  const verdict = `${paint.tone("alarm", " DAMAGED ")}  ${formatCount(problems.length, "problem")} in ${extent}`;
  const advice = "Keep the file as it is, and move it aside or restore a backup.";
  return `${[verdict, ...lines, advice].join("\n")}\n`;
}

const SIGNATURES: Readonly<Record<CheckedAnchor["signature"], string>> = {
  none: "not signed",
  unchecked: "signed, but with a key that you did not name (--public-key)",
  valid: "signed with the key that you named",
};

function formatHeldAnchor(anchor: CheckedAnchor, { unicode }: Terminal): string {
  const { file, madeAt, runs, events, signature } = anchor;
  const extent = `${formatCount(runs, "run")}, ${formatCount(events, "event")}`;
  const text = `All that ${file} names is there (${extent}, ${madeAt}); it is ${SIGNATURES[signature]}.`;
  return formatPrintable(text, unicode);
}
