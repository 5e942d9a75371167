/** Owns: questions to people on a terminal: some lines in a list, or all about one. What agents wrote is marked as theirs. */
import type { Terminal } from "../terminal/cli-host.ts";
import { fields } from "../terminal/fields.ts";
import { paintFor, type Paint } from "../terminal/paint.ts";
import { printable, shorten } from "../terminal/printable.ts";
import type { QuestionReport } from "./question-report.ts";
import {
  aboutText,
  answersText,
  causeText,
  checkText,
  closedText,
  expiryText,
  noticeText,
} from "./question-lines.ts";
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatInstant,
} from "../../../agents/coordination/std/quantities.ts";

interface QuestionPage {
  readonly terminal: Terminal;
  readonly now: number;
}

interface Drawing {
  readonly paint: Paint;
  readonly text: (value: string) => string;
  readonly columns: number;
  readonly unicode: boolean;
  readonly now: number;
}

function drawingOf({ terminal, now }: QuestionPage): Drawing {
  const { unicode, columns } = terminal;
  return { paint: paintFor(terminal), text: (value) => printable(value, unicode), columns, unicode, now };
}

const TEXT_CELLS_MAX = 240;
const COLUMNS_MIN = 60;

/** The id first and never cut: it is what people answer by. */
function questionLines(question: QuestionReport, page: QuestionPage): string[] {
  const drawing = drawingOf(page);
  const { paint, text, unicode, now } = drawing;
  const columns = Math.max(COLUMNS_MIN, drawing.columns);
  const line = (value: string): string => `  ${shorten(text(value), columns - 2, unicode)}`;
  const age = formatDuration(Math.max(0, now - question.askedAtMs));
  return [
    `${paint.tone("strong", text(question.questionId))}  ${stateText(question, drawing)}`,
    line(`${aboutText(question)}: ${causeText(question)}`),
    ...(question.checks ?? []).map((check) => line(`check ${checkText(check)}`)),
    ...askedLines(question, drawing).map((asked) => `  ${asked}`),
    ...(question.closed
      ? [line(`asked ${age} ago, ${closedText(question)}`)]
      : [
          line(`asked ${age} ago; answers: ${answersText(question.answers)}`),
          line(`if nobody answers: ${expiryText(question)}`),
        ]),
    ...noticeLines(question, drawing),
  ];
}

function stateText({ closed, deadlineAtMs, askedAtMs }: QuestionReport, { paint, now }: Drawing): string {
  if (closed) return paint.tone("faint", closed.resolution);
  const left = deadlineAtMs - now;
  if (left <= 0) return paint.tone("bad", "past its time");
  const isUrgent = left < (deadlineAtMs - askedAtMs) / 2;
  return paint.tone(isUrgent ? "warning" : "plain", `${formatDuration(left)} left`);
}

/** In quotes, on lines of their own: nobody may take it for ours. */
function askedLines({ asked }: QuestionReport, { paint, text, unicode }: Drawing): string[] {
  if (asked === undefined) return [];
  if (asked === null) return ["an agent asked something that is no longer kept"];
  const quoted = (value: string): string => JSON.stringify(shorten(text(value), TEXT_CELLS_MAX, unicode));
  const { question, options = [], otherwise } = asked;
  return [
    `an agent wrote: ${quoted(question)}`,
    ...(options.length > 0 ? [`it offers: ${options.map(quoted).join(", ")}`] : []),
    ...(otherwise === undefined ? [] : [`it takes, if nobody answers: ${quoted(otherwise)}`]),
  ].map((line) => paint.tone("plain", line));
}

function noticeLines({ notices = [] }: QuestionReport, { paint, text }: Drawing): string[] {
  if (notices.length === 0) return [];
  const shown = notices.map((notice) =>
    paint.tone(notice.outcome === "failed" ? "bad" : "plain", text(noticeText(notice))),
  );
  return [`  told: ${shown.join(", ")}`];
}

export function renderQuestions(questions: readonly QuestionReport[], page: QuestionPage): string {
  return `${questions.map((question) => questionLines(question, page).join("\n")).join("\n\n")}\n`;
}

/** What a result says that people are to rule on: `undefined` where the question is about none, `null` once it is not kept. */
export type HeldText = string | null | undefined;

const HELD_CHARS_MAX = 20_000;

export function renderQuestion(
  question: QuestionReport,
  heldText: HeldText,
  { page, program }: { readonly page: QuestionPage; readonly program: string },
): string {
  const drawing = drawingOf(page);
  const { paint, text } = drawing;
  const lines = [
    `${paint.tone("strong", text(question.questionId))}  ${stateText(question, drawing)}`,
    ...fields(
      paint,
      entriesOf(question, drawing.now).map(([name, value]) => [name, text(value)]),
      13,
    ),
    ...titled(
      "checks",
      (question.checks ?? []).map((check) => text(checkText(check))),
    ),
    ...titled(
      "told",
      (question.notices ?? []).map((notice) => text(noticeText(notice))),
    ),
    ...askedStory(question, drawing),
    ...heldLines(heldText, drawing),
    ...(question.closed ? [] : ["", ...answerLines(question, program).map(text)]),
  ];
  return `${lines.join("\n")}\n`;
}

type Entries = readonly (readonly [string, string])[];

function entriesOf(question: QuestionReport, now: number): Entries {
  const { askedAtMs, askedBy, result, closed } = question;
  return [
    ["about", `${aboutText(question)}: ${causeText(question)}`],
    ["coordination", `${question.coordinationId}, of ${question.ownerSession}`],
    ["asked by", askedBy ?? ""],
    ["asked", `${formatInstant(askedAtMs)} (${formatDuration(Math.max(0, now - askedAtMs))} ago)`],
    ...(closed ? closedEntries(question) : openEntries(question)),
    ["result", result ? `${formatBytes(result.bytes)}, sha256 ${result.sha256}` : ""],
  ];
}

function openEntries(question: QuestionReport): Entries {
  return [
    ["until", formatInstant(question.deadlineAtMs)],
    ["answers", answersText(question.answers)],
    ["not by", question.requireDifferentApprover ? "the session that it is about" : ""],
    ["otherwise", expiryText(question)],
  ];
}

function closedEntries(question: QuestionReport): Entries {
  const { refusedAnswers } = question;
  return [
    ["closed", closedText(question)],
    ["did not count", refusedAnswers === undefined ? "" : formatCount(refusedAnswers, "answer")],
  ];
}

function titled(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ["", title, ...lines.map((line) => `  ${line}`)];
}

function askedStory({ asked }: QuestionReport, drawing: Drawing): string[] {
  if (asked === undefined) return [];
  if (asked === null) return ["", "An agent asked something that is no longer kept."];
  const { question, options = [], otherwise } = asked;
  return [
    ...writtenByAgent("asked by an agent, in its own words", question, drawing),
    ...titled("it offers", options.map(drawing.text)),
    ...(otherwise === undefined ? [] : titled("it takes, if nobody answers", [drawing.text(otherwise)])),
  ];
}

function heldLines(heldText: HeldText, drawing: Drawing): string[] {
  if (heldText === undefined) return [];
  if (heldText === null) return ["", "The held result is no longer kept."];
  const shown = heldText.slice(0, HELD_CHARS_MAX).toWellFormed();
  const cut = heldText.length > shown.length ? [`(cut after ${formatCount(shown.length, "character")})`] : [];
  return [...writtenByAgent("the held result, as an agent wrote it", shown, drawing), ...cut];
}

/** Line by line behind a bar, so that no line of it can pass for one of ours. */
function writtenByAgent(title: string, value: string, { paint, text, unicode }: Drawing): string[] {
  const bar = paint.tone("faint", unicode ? "│" : "|");
  return ["", title, ...value.split(/\r?\n/u).map((line) => `  ${bar} ${text(line)}`.trimEnd())];
}

function answerLines({ questionId, answers }: QuestionReport, program: string): string[] {
  const id = /^[\w.:@/-]+$/u.test(questionId) ? questionId : `'${questionId.replaceAll("'", `'\\''`)}'`;
  return answers.map((answer) => `${program} ${answer} ${id}${answer === "answer" ? " TEXT" : ""}`);
}
