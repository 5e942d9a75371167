/** Owns: `verify`, also against an anchor. Does not own: making anchors (`anchor-command.ts`). */
import {
  CoordinationError,
  isCoordinationError,
  isLedgerOutage,
} from "../../../agents/coordination/contracts/errors.ts";
import { ANCHOR_BYTES_MAX, type LedgerAnchor } from "../../../agents/coordination/contracts/ledger-anchor.ts";
import { verifyLedger, type Verification } from "../../../agents/coordination/runtime/verify-ledger.ts";
import { verifyWorkflowRuns } from "../../../agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import type { AnchorCoverage, AnchorProblem } from "../../anchor-checks.ts";
import { readTextFile } from "../files/read-text-file.ts";
import type { CliHost, CommandGroup, Terminal } from "../terminal/cli-host.ts";
import { resolveSidecarPath, withLedger } from "./open-ledger.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatMessage, formatPrintable } from "../terminal/printable.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import { createProgressLine, type ProgressLine } from "../terminal/progress-line.ts";
import {
  parseFilePath,
  runCommand,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "../terminal/run-command.ts";

const KEY_BYTES_MAX = 10_000;

/** Adds the command `verify`, which proves the ledger, and with `--anchor` that it holds what the anchor names. */
export function addVerifyCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("verify"))
    .description("Prove the ledger: every stored byte, every hash, every event's meaning")
    .option("--anchor <file>", "prove also that the ledger still holds what this anchor names")
    .option("--public-key <file>", "refuse an anchor that is not signed with this key (PEM)")
    .action((options: VerifyOptions) => runCommand(host, options, () => verifyAndReport(host, options)));
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

/**
 * Proves the ledger, records the outcome where it is the gateway's own, and prints it; exit code 1 where the ledger is
 * damaged or does not hold what the anchor names.
 */
async function verifyAndReport(host: CliHost, options: VerifyOptions): Promise<void> {
  const anchor = await readAnchorOption(options);
  const verification = await proveLedger(host, options, anchor);
  if (options.ledger === undefined) await recordOutcome(host, verification);
  if (!verification.ok) host.failWith(1);
  const { ok, problems, truncated, coordinations, workflowRuns, events, pruned } = verification;
  const checkedAnchor = anchor && createCheckedAnchor(anchor, options, verification);
  if (options.json)
    await writeJson(host, {
      ok,
      problems,
      ...(truncated && { truncated }),
      coordinations,
      workflowRuns,
      events,
      pruned,
      ...(checkedAnchor && { anchor: checkedAnchor }),
    });
  else await host.stdout.write(renderVerification(verification, host.stdout.terminal, checkedAnchor));
}

/** Writes the outcome beside the gateway's ledger, for the health view of the operator's page. Failures are ignored. */
async function recordOutcome(
  host: CliHost,
  { ok, problems, truncated, events }: LedgerVerification,
): Promise<void> {
  const { recordVerification } = await import("../../verification-record.ts");
  try {
    const path = await resolveSidecarPath(host, {});
    recordVerification(path, {
      atMs: host.now(),
      ok,
      problems: problems.length,
      ...(truncated && { isCut: true }),
      events,
    });
  } catch {
    // A folder that cannot be written keeps nobody from proving what is in it.
  }
}

/**
 * Reads the anchor that `--anchor` names, with its signature checked against `--public-key`, if given; `undefined`
 * without `--anchor`. Throws for a key without an anchor.
 */
async function readAnchorOption({ anchor, publicKey }: VerifyOptions): Promise<LedgerAnchor | undefined> {
  if (anchor === undefined) {
    if (publicKey === undefined) return undefined;
    throw new CoordinationError(
      "INPUT_INVALID",
      "--public-key: it is the key of an anchor; add --anchor FILE",
    );
  }
  const { readAnchor } = await import("../../anchor-checks.ts");
  const text = await readBoundedFile(parseFilePath(anchor, "--anchor"), ANCHOR_BYTES_MAX);
  const key =
    publicKey === undefined
      ? undefined
      : await readBoundedFile(parseFilePath(publicKey, "--public-key"), KEY_BYTES_MAX);
  return readAnchor({
    name: anchor,
    text,
    ...(publicKey !== undefined && key !== undefined && { publicKey: { name: publicKey, text: key } }),
  });
}

function readBoundedFile(file: string, bytesMax: number): Promise<string> {
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
  /** How many of its runs were pruned: of these at most their length and newest hash were compared. */
  readonly prunedRuns: number;
  /** False where its digest over all runs could not be compared. */
  readonly digestCompared: boolean;
}

function createCheckedAnchor(
  anchor: LedgerAnchor,
  { anchor: file = "", publicKey }: VerifyOptions,
  { anchor: check }: LedgerVerification,
): CheckedAnchor {
  const { madeAt, runs, events } = anchor;
  const unnamed = anchor.signature === undefined ? "none" : "unchecked";
  return {
    file,
    madeAt,
    runs,
    events,
    signature: publicKey === undefined ? unnamed : "valid",
    prunedRuns: check?.pruned ?? 0,
    digestCompared: check?.isDigestCompared ?? false,
  };
}

/** A problem of a ledger by itself, or of the ledger held against an anchor. */
type ProofProblem = Verification["problems"][number] | AnchorProblem;

/** The result of verifying a ledger, as it is printed. */
export interface LedgerVerification {
  readonly ok: boolean;
  readonly coordinations: number;
  readonly events: number;
  readonly workflowRuns: number;
  /** Runs that were removed by `ledger prune`, and how many events they had. */
  readonly pruned: { readonly runs: number; readonly events: number };
  /** Present where the ledger was held against an anchor. */
  readonly anchor?: AnchorCoverage;
  readonly problems: readonly ProofProblem[];
  /** The proof stopped before its end. */
  readonly isStopped?: true;
  /** There may be more problems than these: the proof stopped, or found more of the anchor. */
  readonly truncated?: true;
}

/**
 * Returns how many problems a verification found, as text; with "at least" where there may be more, because it stopped
 * early or listed only some.
 */
export function formatProblemCount({ problems, truncated }: LedgerVerification): string {
  return `${truncated ? "at least " : ""}${formatCount(problems.length, "problem")}`;
}

/**
 * Reads the whole ledger and returns its counts and problems, with what an anchor names and it does not hold; shows
 * progress on stderr. A damaged file is a result, not an error.
 */
export async function proveLedger(
  host: CliHost,
  options: ReaderOptions,
  anchor?: LedgerAnchor,
): Promise<LedgerVerification> {
  const progress = createProgressLine(host);
  const proof: LedgerProof = {
    coordinations: 0,
    workflowRuns: 0,
    events: 0,
    pruned: { runs: 0, events: 0 },
    problems: [],
  };
  try {
    await withLedger(host, options, async (reader) => {
      await verifyContent(reader, proof, progress);
      if (anchor) await compareWithAnchor({ reader, anchor, progress }, proof);
    });
  } catch (error) {
    const isDamage = isCoordinationError(error) && error.code === "LEDGER_CORRUPT";
    if (isDamage) proof.problems.push({ kind: "file_damaged", message: error.message });
    // A ledger that cannot be used any more takes back nothing of what was found before.
    else if (!isLedgerOutage(error) || proof.problems.length === 0) throw error;
    proof.isStopped = true;
  } finally {
    await progress.clear();
  }
  const isTruncated = proof.isStopped ?? proof.anchor?.isCut;
  return { ...proof, ok: proof.problems.length === 0, ...(isTruncated && { truncated: true }) };
}

/** A proof as far as it came. */
interface LedgerProof {
  coordinations: number;
  workflowRuns: number;
  events: number;
  pruned: LedgerVerification["pruned"];
  readonly problems: ProofProblem[];
  anchor?: AnchorCoverage;
  isStopped?: true;
}

/** A ledger, and the anchor that it is held against. */
interface AnchoredLedger {
  readonly reader: LedgerReader;
  readonly anchor: LedgerAnchor;
  readonly progress: ProgressLine;
}

async function compareWithAnchor(
  { reader, anchor, progress }: AnchoredLedger,
  proof: LedgerProof,
): Promise<void> {
  const { checkAnchor } = await import("../../anchor-checks.ts");
  const showRuns = (runs: number): void => {
    progress.show(() => `compared ${formatCount(runs, "run")} with the anchor`);
  };
  const problems: AnchorProblem[] = [];
  try {
    proof.anchor = await checkAnchor(reader, anchor, { problems, onProgress: showRuns });
  } finally {
    proof.problems.push(...problems);
  }
}

/** Verifies coordinations and workflow runs, and adds what it finds to `proof`. */
async function verifyContent(
  reader: LedgerReader,
  proof: LedgerProof,
  progress: ProgressLine,
): Promise<void> {
  const show = (checked: CheckedExtent): void => {
    progress.show(() => `checked ${describeLedgerExtent(checked)}`);
  };
  const { coordinations, events, problems, isCut } = await verifyLedger(reader, show);
  proof.coordinations = coordinations;
  proof.events = events;
  proof.problems.push(...problems);
  if (isCut) proof.isStopped = true;
  const runs = await verifyWorkflowRuns(reader.workflows, (checked) => {
    show({ coordinations, workflowRuns: checked.workflowRuns, events: events + checked.events });
  });
  proof.workflowRuns = runs.workflowRuns;
  proof.events = events + runs.events;
  proof.problems.push(...runs.problems);
  if (runs.isCut) proof.isStopped = true;
  const pruned = await reader.pruned.counts();
  proof.pruned = { runs: pruned.runs, events: pruned.events };
}

/** How much of a ledger was verified. */
interface CheckedExtent {
  readonly coordinations: number;
  readonly workflowRuns?: number;
  readonly events: number;
  readonly pruned?: LedgerVerification["pruned"];
}

function describeLedgerExtent({ coordinations, workflowRuns = 0, events, pruned }: CheckedExtent): string {
  const runs = workflowRuns > 0 ? `, ${formatCount(workflowRuns, "workflow run")}` : "";
  const traces =
    pruned && pruned.runs > 0 ? ` (and the traces of ${formatCount(pruned.runs, "pruned run")})` : "";
  return `${formatCount(coordinations, "coordination")}${runs}, ${formatCount(events, "event")}${traces}`;
}

function renderVerification(
  verified: LedgerVerification,
  terminal: Terminal,
  anchor?: CheckedAnchor,
): string {
  const { ok, problems, isStopped } = verified;
  const paint = createPaint(terminal);
  const extent = describeLedgerExtent(verified);
  if (ok) {
    const verdict = `${paint.tone("good", "ok")}  ${extent}: every hash, sequence, cause and projection holds\n`;
    return anchor ? `${verdict}${formatHeldAnchor(anchor, terminal)}\n` : verdict;
  }
  const lines = problems.map(({ kind, runId, sequence, message }) => {
    const place = runId === undefined ? "" : `${runId}${sequence === undefined ? "" : `:${sequence}`}: `;
    return `${paint.tone("bad", kind)}  ${formatMessage(place + message, terminal.unicode)}`;
  });
  const findings = `${formatProblemCount(verified)}${isStopped ? "; stopped after" : " in"} ${extent}`;
  const verdict = `${paint.tone("alarm", " DAMAGED ")}  ${findings}`;
  const advice = "Keep the file as it is, and move it aside or restore a backup.";
  return `${[verdict, ...lines, advice].join("\n")}\n`;
}

const SIGNATURES: Readonly<Record<CheckedAnchor["signature"], string>> = {
  none: "not signed",
  unchecked: "signed, but with a key that you did not name (--public-key)",
  valid: "signed with the key that you named",
};

function formatHeldAnchor(anchor: CheckedAnchor, { unicode }: Terminal): string {
  const { file, madeAt, runs, events, signature, prunedRuns, digestCompared } = anchor;
  const extent = `${formatCount(runs, "run")}, ${formatCount(events, "event")}`;
  const pruned =
    prunedRuns > 0
      ? ` Of its runs, ${prunedRuns} were pruned, which has to be what you pruned: at most their lengths and newest hashes are compared.`
      : "";
  const digest = digestCompared
    ? ""
    : " Runs that it does not name grew after it and were pruned, so its digest proves nothing; make a new anchor.";
  const text = `All that ${file} names is there (${extent}, ${madeAt}); it is ${SIGNATURES[signature]}.${pruned}${digest}`;
  return formatPrintable(text, unicode);
}
