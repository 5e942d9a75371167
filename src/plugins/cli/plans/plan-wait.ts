/** Owns: waiting in a command for the end of a plan that the gateway runs, with its progress. */
import type { Command } from "commander";
import {
  CoordinationError,
  assertInvariant,
  isGatewayAway,
} from "../../../agents/coordination/contracts/errors.ts";
import {
  coordinationStatusSchema,
  type CoordinationStatusReport,
} from "../../openclaw/plans/coordination-status.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import { askGateway } from "../ledger/ask-gateway.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { renderPlanEnding, renderPlanProgress } from "./progress-lines.ts";
import { formatPrintable } from "../terminal/printable.ts";
import { parseWholeNumber, writeJson, type JsonOption } from "../terminal/run-command.ts";
import { createInterruptibleWait, type InterruptibleWait } from "../terminal/waiting-line.ts";

const POLL_MS = 1_000;
/** A gateway that restarts goes on with the plan; for this long it may be away. */
const AWAY_MS_MAX = 120_000;
const SECONDS_MAX = 31 * 24 * 3_600;
const EXIT_PARTIAL = 3;

export interface WaitOptions extends JsonOption {
  readonly wait?: boolean;
  readonly timeout?: string;
}

/** The plan that is waited for. */
interface AwaitedPlan {
  readonly coordinationId: string;
}

/** Adds the options `--wait` and `--timeout` to a command and returns it. */
export function withWaitOptions(command: Command): Command {
  return command
    .option("--wait", "show the progress until the plan ends; exit code 0 success, 3 partial, 1 otherwise")
    .option("--timeout <seconds>", "with --wait: stop waiting after this long; the plan goes on");
}

/**
 * Returns the longest wait for a plan in milliseconds; `undefined` without `--timeout`. @throws CoordinationError
 * `INPUT_INVALID` for a time that cannot be read, and without `--wait`
 */
export function parseWaitLimit({ wait, timeout }: WaitOptions): number | undefined {
  if (timeout === undefined) return undefined;
  if (!wait)
    throw new CoordinationError(
      "INPUT_INVALID",
      "--timeout needs --wait; a plan's own limit is its deadlineMs",
    );
  return parseWholeNumber(timeout, { option: "--timeout", min: 1, max: SECONDS_MAX }) * 1_000;
}

/** How the wait for a plan ended. */
type WaitEnd =
  | { readonly kind: "ended"; readonly report: CoordinationStatusReport }
  | { readonly kind: "timeout" | "interrupted"; readonly report: CoordinationStatusReport | undefined };

interface WaitingFor {
  readonly options: WaitOptions;
  readonly timeoutMs: number | undefined;
  /** The first lines; the last of them, which tells how to follow the plan, is left out. */
  readonly head: string;
}

/**
 * Polls the gateway and shows progress until the plan ends, the time is over or Ctrl-C, then prints how it ended and
 * sets the exit code. `accepted`: what the gateway answered, which is part of what `--json` prints.
 */
export async function waitForPlanEnd(
  host: CliHost,
  accepted: AwaitedPlan,
  { options, timeoutMs, head }: WaitingFor,
): Promise<void> {
  using waiting = (host.waiting ?? createInterruptibleWait)();
  const tell = options.json ? ignoreProgress : createPlanProgress(host);
  if (!options.json) await host.stdout.write(head.replace(/\n.*\n$/u, "\n"));
  const end = await pollUntilEnd(host, accepted.coordinationId, { waiting, tell, timeoutMs });
  await tell(undefined);
  host.failWith(chooseExitCode(end));
  if (options.json)
    await writeJson(host, { ok: end.kind === "ended", ...accepted, waited: end.kind, ...createEndJson(end) });
  else await host.stdout.write(`${renderWaitEnd(host, accepted, end).join("\n")}\n`);
}

function createEndJson({ report }: WaitEnd): object {
  return report ? { coordination: report } : {};
}

/** Returns 0 for success, 3 for a partial one, and 1 for all else, such as an end of waiting. */
function chooseExitCode(end: WaitEnd): number {
  if (end.kind !== "ended") return 1;
  if (end.report.status === "success") return 0;
  return end.report.status === "partial" ? EXIT_PARTIAL : 1;
}

function renderWaitEnd(
  { program, stdout }: CliHost,
  { coordinationId }: AwaitedPlan,
  end: WaitEnd,
): string[] {
  const { terminal } = stdout;
  if (end.kind === "ended") return renderPlanEnding(end.report, { terminal, program });
  const id = formatPrintable(formatShellArguments(coordinationId), terminal.unicode);
  const why = end.kind === "timeout" ? "The time to wait is over" : "Interrupted";
  return [
    `${why}; the plan goes on. See ${program} timeline ${id}, or end it with ${program} plan cancel ${id}`,
  ];
}

/** Shows a line of progress; none clears the last one. */
type ProgressTeller = (line: string | undefined) => Promise<unknown>;
const ignoreProgress: ProgressTeller = () => Promise.resolve();

/**
 * Creates the display of progress: one line that is overwritten on a terminal, else a line for each change.
 * `undefined` ends it.
 */
function createPlanProgress({ stdout }: CliHost): ProgressTeller {
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

/** The wait for the end of a plan, with the function that shows its progress. */
interface PlanFollowing {
  readonly waiting: InterruptibleWait;
  readonly tell: ProgressTeller;
  readonly timeoutMs: number | undefined;
}

/** @throws CoordinationError where the gateway stays away */
async function pollUntilEnd(
  host: CliHost,
  id: string,
  { waiting, tell, timeoutMs }: PlanFollowing,
): Promise<WaitEnd> {
  const began = host.now();
  let answeredAt = began;
  let report: CoordinationStatusReport | undefined;
  for (;;) {
    if (waiting.isInterrupted()) return { kind: "interrupted", report };
    try {
      report = await readPlanStatus(host, id);
      answeredAt = host.now();
      if (report.status !== "running") return { kind: "ended", report };
      await tell(renderPlanProgress(report, host.stdout.terminal));
    } catch (error) {
      if (!isGatewayAway(error) || host.now() - answeredAt > AWAY_MS_MAX) throw error;
      await tell("the gateway does not answer; waiting for it to come back");
    }
    if (timeoutMs !== undefined && host.now() - began >= timeoutMs) return { kind: "timeout", report };
    await waiting.pause(POLL_MS);
  }
}

async function readPlanStatus(host: CliHost, coordinationId: string): Promise<CoordinationStatusReport> {
  const { coordination } = await askGateway(host, "coordination.status", { coordinationId });
  const parsed = coordinationStatusSchema.safeParse(coordination);
  assertInvariant(parsed.success, "the gateway tells the status in a form that this release does not know");
  return parsed.data;
}
