/** Owns: questions to people and verdicts in the picture of a timeline: a mark on the row of the step, a line each below the chart. */
import type {
  CoordinationView,
  StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { createQuestionId } from "../../../agents/coordination/runtime/questions/question-requests.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { GateLog } from "../../reports/gate-log.ts";
import type { Paint } from "../terminal/paint.ts";
import { formatPrintable, shorten } from "../terminal/printable.ts";
import { formatDuration } from "../../../agents/coordination/std/quantities.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import { describeQuestionOutcome, describeQuestion, describeVerdict } from "../questions/show-questions.ts";
import { mapStepNames, nameStep } from "../../reports/step-name.ts";
import type { Axis } from "./time-axis.ts";
import type { Timeline, TimelineQuestion, TimelineVerdict } from "../../reports/timeline.ts";

const LINES_MAX = 10;

/** One cell wide in every font, and as plain text. */
export const QUESTION_SIGN = "?";

/** Returns for each step the cells of the timeline at which people were asked about it. */
export function placeQuestions(
  questions: readonly TimelineQuestion[],
  { totalMs, cells }: Axis,
): ReadonlyMap<string, ReadonlySet<number>> {
  const marks = new Map<string, Set<number>>();
  for (const { stepId, askedMs } of questions) {
    if (stepId === undefined) continue;
    const cell = Math.min(cells - 1, Math.floor((askedMs / Math.max(1, totalMs)) * cells));
    marks.set(stepId, (marks.get(stepId) ?? new Set()).add(cell));
  }
  return marks;
}

interface GateNotes {
  readonly view: CoordinationView;
  readonly timeline: Timeline;
  readonly gates: GateLog;
  readonly program: string;
}

/** The terminal that is drawn on, with its colours and the columns to use. */
interface ChartCanvas {
  readonly terminal: Terminal;
  readonly paint: Paint;
  readonly columns: number;
}

/**
 * Returns the lines under a timeline for the newest verdicts, then for the newest questions, each in the order in
 * which they came.
 */
export function renderGateNotes(notes: GateNotes, drawn: ChartCanvas): string[] {
  return [...renderVerdictNotes(notes, drawn), ...renderQuestionNotes(notes, drawn)];
}

/** Drawn as what it leads to. */
const VERDICT_SIGNS = {
  pass: "completed",
  revise: "backoff",
  fail: "failed",
  none: "held",
} as const satisfies Record<TimelineVerdict["verdict"], StepView["status"]>;

function renderVerdictNotes(
  { view, timeline, gates }: GateNotes,
  { terminal, paint, columns }: ChartCanvas,
): string[] {
  const { unicode } = terminal;
  const names = mapStepNames(view.steps);
  const lines = gates.verdicts.slice(-LINES_MAX).map((verdict) => {
    const name = names.get(verdict.stepId);
    const subject = nameStep({ stepId: verdict.stepId, ...(name !== undefined && { name }) });
    const at = formatDuration(Math.max(0, verdict.atMs - timeline.startedAtMs));
    const sentence = formatPrintable(`${subject} at ${at}: ${describeVerdict(verdict)}`, unicode);
    const sign = paint.stepSign(VERDICT_SIGNS["verdict" in verdict ? verdict.verdict : "none"]);
    return `${sign} ${shorten(sentence, columns - 2, unicode)}`;
  });
  return withOmittedCount(lines, gates.verdicts.length - lines.length);
}

function renderQuestionNotes(
  { view, timeline, program }: GateNotes,
  { terminal, paint, columns }: ChartCanvas,
): string[] {
  const { unicode } = terminal;
  const names = mapStepNames(view.steps);
  const blocked = new Set(
    view.steps.filter(({ status }) => status === "blocked").map(({ stepId }) => stepId),
  );
  const nowMs = timeline.startedAtMs + timeline.durationMs;
  const lines = view.escalations.slice(-LINES_MAX).map((question) => {
    const { escalationId, askedAtMs, closed, stepId, answers = [] } = question;
    const at = formatDuration(Math.max(0, askedAtMs - timeline.startedAtMs));
    const sentence = `${escalationId} at ${at}, ${describeQuestionOutcome(question, nowMs)}: ${describeQuestion({ view, question }, names, unicode)}`;
    const line = `${paint.tone(closed ? "plain" : "warning", QUESTION_SIGN)} ${shorten(formatPrintable(sentence, unicode), columns - 2, unicode)}`;
    // The question of a step in this state stands above, with the command that tries it again.
    if (closed || (stepId && blocked.has(stepId))) return line;
    const id = formatShellArguments(createQuestionId(view.coordinationId, escalationId));
    const [first = "approve"] = answers;
    return `${line}\n  ${program} ${first} ${formatPrintable(id, unicode)}${first === "answer" ? " TEXT" : ""}`;
  });
  return withOmittedCount(lines, view.escalations.length - lines.length);
}

/** Puts the count of those left out before the lines and an empty line behind them; empty without lines. */
function withOmittedCount(lines: readonly string[], left: number): string[] {
  if (lines.length === 0) return [];
  return [...(left > 0 ? [`  and ${left} before`] : []), ...lines, ""];
}
