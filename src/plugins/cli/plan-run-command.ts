/** Owns: `plan run`: checking the file here, handing the plan to the gateway and, on request, waiting for its end. */
import {
  CoordinationError,
  invariant,
  isCoordinationError,
} from "../../agents/coordination/contracts/errors.ts";
import type { PlanProblem } from "../../agents/coordination/plan/plan-problem.ts";
import { coordinationStatusSchema, type CoordinationStatusReport } from "../openclaw/coordination-status.ts";
import { answerOf, askGateway, throwAnswer } from "./ask-gateway.ts";
import { checkedPlan } from "./checked-plan.ts";
import type { CliHost, CommandGroup } from "./cli-host.ts";
import { loadPlanFile } from "./plan-file.ts";
import { endingLines, progressLine } from "./plan-progress.ts";
import { tellProblems } from "./plan-problems.ts";
import { printable } from "./printable.ts";
import { count } from "./quantities.ts";
import {
  runCommand,
  wholeNumber,
  withExamples,
  withJson,
  writeJson,
  type JsonOption,
} from "./run-command.ts";
import { waitingInProcess, type Waiting } from "./waiting.ts";

const POLL_MS = 1_000;
/** A gateway that restarts goes on with the plan; for this long it may be away. */
const AWAY_MS_MAX = 120_000;
const SECONDS_MAX = 31 * 24 * 3_600;
const EXIT_PARTIAL = 3;

interface RunOptions extends JsonOption {
  readonly wait?: boolean;
  readonly timeout?: string;
}

export function addPlanRun(plan: CommandGroup, host: CliHost): void {
  const run = withJson(plan.command("run"))
    .description("Run a plan in the gateway; a plan that runs already is not run twice")
    .argument("<file>", "a plan in JSON or YAML; - reads it from stdin")
    .option("--wait", "show the progress until the plan ends; exit code 0 success, 3 partial, 1 otherwise")
    .option("--timeout <seconds>", "with --wait: stop waiting after this long; the plan goes on")
    .action((file: string, options: RunOptions) =>
      runCommand(host, options, () => runPlan(host, file, options)),
    );
  withExamples(run, host, [
    "plan run release.yaml",
    "plan run release.yaml --wait --timeout 3600",
    "plan run release.json --json",
    "plan run - < release.yaml",
  ]);
}

async function runPlan(host: CliHost, file: string, options: RunOptions): Promise<void> {
  const timeoutMs =
    options.timeout === undefined
      ? undefined
      : wholeNumber(options.timeout, { option: "--timeout", min: 1, max: SECONDS_MAX }) * 1_000;
  if (timeoutMs !== undefined && !options.wait)
    throw new CoordinationError(
      "INPUT_INVALID",
      "--timeout needs --wait; a plan's own limit is its deadlineMs",
    );
  const loaded = await loadPlanFile(file);
  const problems = loaded.ok ? checkedPlan(loaded.value).problems : loaded.problems;
  if (!loaded.ok || problems.length > 0) {
    await tellProblems(host, problems, { options, output: host.stderr });
    return;
  }
  const accepted = await submit(host, loaded.value, options);
  if (!accepted) return;
  if (options.wait) await waitFor(host, accepted, { options, timeoutMs });
  else if (options.json) await writeJson(host, { ok: true, ...accepted });
  else await host.stdout.write(acceptedLines(host, accepted));
}

interface Accepted {
  readonly coordinationId: string;
  readonly steps: number;
  readonly replay: boolean;
}

async function submit(host: CliHost, plan: unknown, options: RunOptions): Promise<Accepted | undefined> {
  const answer = await answerOf(host, "coordination.plan.run", { plan });
  if (!answer.ok) {
    const problems = problemsIn(answer.details);
    if (answer.code !== "PLAN_REFUSED" || problems.length === 0) return throwAnswer(answer);
    await tellProblems(host, problems, { options, output: host.stderr });
    return undefined;
  }
  const { coordinationId, steps, replay } = answer.payload;
  return { coordinationId: String(coordinationId), steps: Number(steps), replay: replay === true };
}

/** The gateway may know more than this program: what it has against a plan is told as it is. */
function problemsIn(details: unknown): readonly PlanProblem[] {
  const { problems } = (details ?? {}) as { problems?: unknown };
  const isProblem = (value: unknown): value is PlanProblem =>
    typeof value === "object" &&
    value !== null &&
    ["path", "code", "message"].every((key) => typeof (value as Record<string, unknown>)[key] === "string");
  return Array.isArray(problems) ? problems.filter(isProblem) : [];
}

function acceptedLines({ program, stdout }: CliHost, { coordinationId, steps, replay }: Accepted): string {
  const id = printable(coordinationId, stdout.terminal.unicode);
  const what = replay ? "submitted before, not run twice:" : "running";
  return `${what} ${id}, ${count(steps, "step")}\nSee ${program} timeline ${id}, or ${program} plan run with --wait\n`;
}

type End =
  | { readonly kind: "ended"; readonly report: CoordinationStatusReport }
  | { readonly kind: "timeout" | "interrupted"; readonly report: CoordinationStatusReport | undefined };

interface WaitOptions {
  readonly options: RunOptions;
  readonly timeoutMs: number | undefined;
}

async function waitFor(
  host: CliHost,
  accepted: Accepted,
  { options, timeoutMs }: WaitOptions,
): Promise<void> {
  using waiting = (host.waiting ?? waitingInProcess)();
  const tell = options.json ? quiet : progressTo(host);
  if (!options.json) await host.stdout.write(acceptedLines(host, accepted).replace(/\n.*\n$/u, "\n"));
  const end = await follow(host, accepted.coordinationId, { waiting, tell, timeoutMs });
  await tell(undefined);
  host.failWith(exitCodeOf(end));
  if (options.json)
    await writeJson(host, { ok: end.kind === "ended", ...accepted, waited: end.kind, ...asJson(end) });
  else await host.stdout.write(`${lastLines(host, accepted, end).join("\n")}\n`);
}

function asJson({ report }: End): object {
  return report ? { coordination: report } : {};
}

function exitCodeOf(end: End): number {
  if (end.kind !== "ended") return 1;
  if (end.report.status === "success") return 0;
  return end.report.status === "partial" ? EXIT_PARTIAL : 1;
}

function lastLines({ program, stdout }: CliHost, { coordinationId }: Accepted, end: End): string[] {
  const { terminal } = stdout;
  if (end.kind === "ended") return endingLines(end.report, { terminal, program });
  const id = printable(coordinationId, terminal.unicode);
  const why = end.kind === "timeout" ? "The time to wait is over" : "Interrupted";
  return [
    `${why}; the plan goes on. See ${program} timeline ${id}, or end it with ${program} plan cancel ${id}`,
  ];
}

type Tell = (line: string | undefined) => Promise<unknown>;
const quiet: Tell = () => Promise.resolve();

/** On a terminal one line that is written over, else a line whenever something changed. `undefined` ends it. */
function progressTo({ stdout }: CliHost): Tell {
  let shown = "";
  return async (line) => {
    const { isTTY } = stdout.terminal;
    if (line === undefined) {
      if (isTTY && shown !== "") await stdout.write("\n");
      return;
    }
    if (line === shown) return;
    shown = line;
    await stdout.write(isTTY ? `\r${line}\u001b[K` : `${line}\n`);
  };
}

interface Following {
  readonly waiting: Waiting;
  readonly tell: Tell;
  readonly timeoutMs: number | undefined;
}

/** @throws CoordinationError where the gateway stays away */
async function follow(host: CliHost, id: string, { waiting, tell, timeoutMs }: Following): Promise<End> {
  const began = host.now();
  let answeredAt = began;
  let report: CoordinationStatusReport | undefined;
  for (;;) {
    if (waiting.isInterrupted()) return { kind: "interrupted", report };
    try {
      report = await statusFrom(host, id);
      answeredAt = host.now();
      if (report.status !== "running") return { kind: "ended", report };
      await tell(progressLine(report, host.stdout.terminal));
    } catch (error) {
      if (!isAway(error) || host.now() - answeredAt > AWAY_MS_MAX) throw error;
      await tell("the gateway does not answer; waiting for it to come back");
    }
    if (timeoutMs !== undefined && host.now() - began >= timeoutMs) return { kind: "timeout", report };
    await waiting.pause(POLL_MS);
  }
}

/** While the gateway restarts or reloads the plugin. */
function isAway(error: unknown): boolean {
  if (!isCoordinationError(error)) return false;
  return ["GATEWAY_UNREACHABLE", "COORDINATION_OFF", "LEDGER_CLOSED", "LEDGER_BUSY"].includes(error.code);
}

async function statusFrom(host: CliHost, coordinationId: string): Promise<CoordinationStatusReport> {
  const { coordination } = await askGateway(host, "coordination.status", { coordinationId });
  const parsed = coordinationStatusSchema.safeParse(coordination);
  invariant(parsed.success, "the gateway tells the status in a form that this release does not know");
  return parsed.data;
}
