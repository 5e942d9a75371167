/** Owns: how a running plan is told on the command line: one line while it runs, a few when it has ended. */
import { formatUnmetCriteria } from "../../../agents/coordination/runtime/held-results/gave-up.ts";
import type { CoordinationStatusReport, StepReport } from "../../openclaw/plans/coordination-status.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import { createPaint } from "../terminal/paint.ts";
import { formatPrintable, shorten } from "../terminal/printable.ts";
import { formatCount } from "../../../agents/coordination/std/quantities.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";

/** So many steps in one situation are named. */
const NAMED_MAX = 4;
const ENDINGS_MAX = 20;

/** A group of steps by their statuses, with its words. */
interface StepSituation {
  readonly label: string;
  readonly statuses: readonly string[];
  readonly describe: (step: StepReport) => string;
}

const SITUATIONS: readonly StepSituation[] = [
  { label: "running", statuses: ["running", "dispatched"], describe: describeRunningStep },
  { label: "next try", statuses: ["backoff"], describe: describeNextTry },
  { label: "waits for people", statuses: ["blocked"], describe: ({ stepId }) => stepId },
  { label: "result held", statuses: ["held"], describe: ({ stepId }) => stepId },
];

/**
 * Returns a plan's progress as one line without colour that fits the terminal, like `3 of 5 steps ended; running:
 * draft, check; next try: fetch (2 of 3 at 10:00:05Z)`.
 */
export function renderPlanProgress(report: CoordinationStatusReport, { columns, unicode }: Terminal): string {
  const { counts, delivery, openQuestions = 0 } = report;
  const parts = [
    `${counts.ended} of ${formatCount(counts.total, "step")} ended`,
    ...(openQuestions > 0 ? [formatCount(openQuestions, "open question")] : []),
    ...SITUATIONS.flatMap((situation) => describeSituation(report, situation)),
    ...(delivery === undefined ? [] : ["telling the owner"]),
  ];
  return shorten(formatPrintable(parts.join("; "), unicode), columns - 1, unicode);
}

/**
 * Names the first steps in a situation and counts the others; empty where none is. A report leaves steps out where
 * there are many.
 */
function describeSituation(
  { steps, counts }: CoordinationStatusReport,
  { label, statuses, describe }: StepSituation,
): string[] {
  const total = statuses.reduce((sum, status) => sum + (counts.byStatus[status] ?? 0), 0);
  const shown = steps.filter(({ status }) => statuses.includes(status)).slice(0, NAMED_MAX);
  const left = total - shown.length;
  if (shown.length === 0) return left > 0 ? [`${label}: ${formatCount(left, "step")}`] : [];
  return [`${label}: ${shown.map(describe).join(", ")}${left > 0 ? ` and ${left} more` : ""}`];
}

/** Describes a step at work like `draft (attempt 2, 40%, checking the links)`. */
function describeRunningStep({ stepId, attempt, progress }: StepReport): string {
  const details = [
    ...(attempt > 1 ? [`attempt ${attempt}`] : []),
    ...(progress?.percent === undefined ? [] : [`${progress.percent}%`]),
    ...(progress?.line === undefined ? [] : [progress.line]),
  ];
  return details.length > 0 ? `${stepId} (${details.join(", ")})` : stepId;
}

/** Describes a step's next attempt like `fetch (2 of 3 at 10:00:05Z)`. */
function describeNextTry({ stepId, attempt, attemptsMax, nextTryAt }: StepReport): string {
  const of = attemptsMax === undefined ? "" : ` of ${attemptsMax}`;
  const at = nextTryAt === undefined ? "" : ` at ${nextTryAt.slice(11, 19)}Z`;
  return `${stepId} (${attempt + 1}${of}${at})`;
}

/** Returns the lines that show a plan's outcome, and how each of the first steps that did not complete ended. */
export function renderPlanEnding(
  report: CoordinationStatusReport,
  { terminal, program }: { readonly terminal: Terminal; readonly program: string },
): string[] {
  const paint = createPaint(terminal);
  const { coordinationId, status, counts, steps, delivery, successCriteria } = report;
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  const completed = counts.byStatus["completed"] ?? 0;
  const kept = counts.carried === undefined ? "" : `, ${counts.carried} of them kept`;
  const deliveryText =
    delivery === undefined || delivery === "completed" ? "" : "; the owner could not be told";
  const gaveUp = formatUnmetCriteria(successCriteria);
  const unmet = gaveUp === "" ? "" : `; ${print(gaveUp)}`;
  const tone = status === "success" ? "good" : status === "partial" ? "warning" : "bad";
  const unfinished = steps.filter((step) => step.status !== "completed").slice(0, ENDINGS_MAX);
  const left =
    Object.values(counts.byStatus).reduce((sum, count) => sum + count, 0) - completed - unfinished.length;
  return [
    `${paint.tone(tone, print(status))}  ${completed} of ${formatCount(counts.total, "step")} completed${kept}${unmet}${deliveryText}`,
    ...unfinished.map((step) => `    ${print(describeStepEnding(step))}`),
    ...(left > 0 ? [`    and ${left} more`] : []),
    `See ${program} show ${print(formatShellArguments(coordinationId))}`,
  ];
}

function describeStepEnding({ stepId, status, attempt, error, skippedBecause }: StepReport): string {
  const tries = attempt > 1 ? ` after ${attempt} attempts` : "";
  const why = error ? `: ${error.message}` : skippedBecause ? ` (${skippedBecause})` : "";
  return `${stepId}: ${status.replace("_", " ")}${tries}${why}`;
}
