/** Owns: questions to people on a terminal: some lines in a list, or all about one. Words of agents are marked as theirs. */
import type { Terminal } from "../terminal/cli-host.ts";
import { renderFields } from "../terminal/fields.ts";
import { createPaint, type Paint } from "../terminal/paint.ts";
import { formatPrintable, shorten } from "../terminal/printable.ts";
import type { HeldResult, QuestionReport } from "../../reports/question-report.ts";
import {
  describeSubject,
  listCauses,
  describeAnswers,
  describeCause,
  formatCheck,
  describeClosing,
  describeExpiry,
  describeNotice,
} from "../../reports/question-lines.ts";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatInstant,
} from "../../../agents/coordination/std/quantities.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";

interface QuestionPage {
  readonly terminal: Terminal;
  readonly now: number;
}

/** How the story of a question is drawn on a terminal. */
interface StoryStyle {
  readonly paint: Paint;
  readonly text: (value: string) => string;
  readonly columns: number;
  readonly unicode: boolean;
  readonly now: number;
}

function createDrawing({ terminal, now }: QuestionPage): StoryStyle {
  const { unicode, columns } = terminal;
  return {
    paint: createPaint(terminal),
    text: (value) => formatPrintable(value, unicode),
    columns,
    unicode,
    now,
  };
}

const TEXT_CELLS_MAX = 240;
const REASON_TITLE = "why it could not do it, as an agent wrote";
const COLUMNS_MIN = 60;

/** Renders some lines of a list about a question. The id comes first and is never cut: it is what people answer by. */
function renderQuestionEntry(question: QuestionReport, page: QuestionPage): string[] {
  const drawing = createDrawing(page);
  const { paint, text, unicode, now } = drawing;
  const columns = Math.max(COLUMNS_MIN, drawing.columns);
  const renderLine = (value: string): string => `  ${shorten(text(value), columns - 2, unicode)}`;
  const age = formatDuration(Math.max(0, now - question.askedAtMs));
  const [cause = "", ...moreCauses] = listCauses(question);
  return [
    `${paint.tone("strong", text(question.questionId))}  ${renderQuestionState(question, drawing)}`,
    renderLine(`${describeSubject(question)}: ${cause}`),
    ...moreCauses.map(renderLine),
    ...(question.checks ?? []).map((check) => renderLine(`check ${formatCheck(check)}`)),
    ...renderAskedLines(question, drawing).map((askedLine) => `  ${askedLine}`),
    ...(question.closed
      ? [renderLine(`asked ${age} ago, ${describeClosing(question)}`)]
      : [
          renderLine(`asked ${age} ago; answers: ${describeAnswers(question.answers)}`),
          renderLine(`if nobody answers: ${describeExpiry(question)}`),
        ]),
    ...renderNoticesLine(question, drawing),
  ];
}

/** Renders how a question was closed, or how much time is left to answer it. */
function renderQuestionState(
  { closed, deadlineAtMs, askedAtMs }: QuestionReport,
  { paint, now }: StoryStyle,
): string {
  if (closed) return paint.tone("faint", closed.resolution);
  const left = deadlineAtMs - now;
  if (left <= 0) return paint.tone("bad", "past its time");
  const isUrgent = left < (deadlineAtMs - askedAtMs) / 2;
  return paint.tone(isUrgent ? "warning" : "plain", `${formatDuration(left)} left`);
}

/** Renders the agent's words in quotes, on lines of their own, so that nobody takes them for ours. */
function renderAskedLines({ asked: askedText, reason }: QuestionReport, drawing: StoryStyle): string[] {
  const { paint, text, unicode } = drawing;
  const quote = (value: string): string => JSON.stringify(shorten(text(value), TEXT_CELLS_MAX, unicode));
  if (reason !== undefined) return [paint.tone("plain", `${REASON_TITLE}: ${quote(reason)}`)];
  if (askedText === undefined) return [];
  if (askedText === null) return ["an agent asked something that is no longer kept"];
  const { question, options = [], otherwise } = askedText;
  return [
    `an agent wrote: ${quote(question)}`,
    ...(options.length > 0 ? [`it offers: ${options.map(quote).join(", ")}`] : []),
    ...(otherwise === undefined ? [] : [`it takes, if nobody answers: ${quote(otherwise)}`]),
  ].map((line) => paint.tone("plain", line));
}

function renderNoticesLine({ notices = [] }: QuestionReport, { paint, text }: StoryStyle): string[] {
  if (notices.length === 0) return [];
  const shown = notices.map((notice) =>
    paint.tone(notice.outcome === "failed" ? "bad" : "plain", text(describeNotice(notice))),
  );
  return [`  told: ${shown.join(", ")}`];
}

/** Returns the text that lists questions, each with a few lines about it. */
export function renderQuestionList(questions: readonly QuestionReport[], page: QuestionPage): string {
  return `${questions.map((question) => renderQuestionEntry(question, page).join("\n")).join("\n\n")}\n`;
}

/** The text of a result that people are to rule on: `undefined` where the question is about none, `null` once it is not kept. */
export type HeldText = string | null | undefined;

const HELD_CHARS_MAX = 20_000;

/**
 * Returns the text that shows all about one question, with the held text, cut after 20,000 characters, and while it is
 * open with the commands that answer it.
 */
export function renderQuestionStory(
  question: QuestionReport,
  heldText: HeldText,
  { page, program }: { readonly page: QuestionPage; readonly program: string },
): string {
  const drawing = createDrawing(page);
  const { paint, text } = drawing;
  const lines = [
    `${paint.tone("strong", text(question.questionId))}  ${renderQuestionState(question, drawing)}`,
    ...renderFields(
      paint,
      listQuestionFields(question, drawing.now).map(([name, value]) => [name, text(value)]),
      13,
    ),
    ...renderSection(
      "checks",
      (question.checks ?? []).map((check) => text(formatCheck(check))),
    ),
    ...renderSection(
      "told",
      (question.notices ?? []).map((notice) => text(describeNotice(notice))),
    ),
    ...renderAskedStory(question, drawing),
    ...renderHeldText(heldText, drawing),
    ...(question.closed ? [] : ["", ...listAnswerCommands(question, program).map(text)]),
  ];
  return `${lines.join("\n")}\n`;
}

/** Names and texts of fields, a line each. */
type FieldLines = readonly (readonly [string, string])[];

function listQuestionFields(question: QuestionReport, now: number): FieldLines {
  const { askedAtMs, askedBy, result, closed } = question;
  return [
    ["about", `${describeSubject(question)}: ${describeCause(question)}`],
    ["coordination", `${question.coordinationId}, of ${question.ownerSession}`],
    ["asked by", askedBy ?? ""],
    ["asked", `${formatInstant(askedAtMs)} (${formatDuration(Math.max(0, now - askedAtMs))} ago)`],
    ...(closed ? listClosedFields(question) : listOpenFields(question)),
    ["result", result ? formatHeldResult(result) : ""],
  ];
}

function formatHeldResult({ bytes, sha256 }: HeldResult): string {
  return sha256 === undefined ? formatBytes(bytes) : `${formatBytes(bytes)}, sha256 ${sha256}`;
}

function listOpenFields(question: QuestionReport): FieldLines {
  return [
    ["until", formatInstant(question.deadlineAtMs)],
    ["answers", describeAnswers(question.answers)],
    ["not by", question.requireDifferentApprover ? "the session that it is about, or whose plan it is" : ""],
    ["otherwise", describeExpiry(question)],
  ];
}

function listClosedFields(question: QuestionReport): FieldLines {
  const { refusedAnswers } = question;
  return [
    ["closed", describeClosing(question)],
    ["did not count", refusedAnswers === undefined ? "" : formatCount(refusedAnswers, "answer")],
  ];
}

function renderSection(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ["", title, ...lines.map((line) => `  ${line}`)];
}

function renderAskedStory({ asked: askedText, reason }: QuestionReport, drawing: StoryStyle): string[] {
  if (reason !== undefined) return renderAgentText(REASON_TITLE, reason, drawing);
  if (askedText === undefined) return [];
  if (askedText === null) return ["", "An agent asked something that is no longer kept."];
  const { question, options = [], otherwise } = askedText;
  return [
    ...renderAgentText("asked by an agent, in its own words", question, drawing),
    ...renderSection("it offers", options.map(drawing.text)),
    ...(otherwise === undefined
      ? []
      : renderSection("it takes, if nobody answers", [drawing.text(otherwise)])),
  ];
}

function renderHeldText(heldText: HeldText, drawing: StoryStyle): string[] {
  if (heldText === undefined) return [];
  if (heldText === null) return ["", "The held result is no longer kept."];
  const shown = heldText.slice(0, HELD_CHARS_MAX).toWellFormed();
  const cut = heldText.length > shown.length ? [`(cut after ${formatCount(shown.length, "character")})`] : [];
  return [...renderAgentText("the held result, as an agent wrote it", shown, drawing), ...cut];
}

/** Renders an agent's text line by line behind a bar, so that no line of it can pass for one of ours. */
function renderAgentText(title: string, value: string, { paint, text, unicode }: StoryStyle): string[] {
  const bar = paint.tone("faint", unicode ? "│" : "|");
  return ["", title, ...value.split(/\r?\n/u).map((line) => `  ${bar} ${text(line)}`.trimEnd())];
}

function listAnswerCommands({ questionId, answers }: QuestionReport, program: string): string[] {
  const id = formatShellArguments(questionId);
  return answers.map((answer) => `${program} ${answer} ${id}${answer === "answer" ? " TEXT" : ""}`);
}
