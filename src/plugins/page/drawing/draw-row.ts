/** Owns: how a row of a timeline looks. Every kind of span and moment has a form of its own besides its colour. */
import { formatDuration } from "../../../agents/coordination/std/quantities.ts";
import {
  isOpenTimelineRow,
  separateWords,
  type RowMoment,
  type RowMarks,
  type RowSpan,
  type SpanKind,
} from "./row-marks.ts";
import { roundToTenth, type Shape } from "./shapes.ts";
import type { TimeScale } from "./time-scale.ts";
import { formatVisibleLine } from "./visible-text.ts";

export const ROW_HEIGHT = 24;
export const NAME_WIDTH = 230;
export const AXIS_HEIGHT = 22;

const INDENT = 12;
const DEPTH_MAX = 6;
const CHAR_WIDTH = 6.7;
const BAR = { top: 5, height: 14 } as const;

/** Heights from the top of the row; what waits is thin, what works is full. */
const FORMS: Readonly<Record<SpanKind, { readonly top: number; readonly height: number }>> = {
  waits: { top: 11, height: 2 },
  queue: { top: 9, height: 6 },
  begins: { top: 8, height: 8 },
  work: BAR,
  tried: BAR,
  backoff: { top: 11, height: 2 },
  held: BAR,
  asked: { top: 20, height: 3 },
};

/** A shorter span is still seen. */
const WIDTH_MIN = 2;

interface RowPlace {
  readonly y: number;
  readonly scale: TimeScale;
}

/** Returns the shapes of a row's spans, outcome and moments at its height on the time axis, without the name. */
export function drawTimelineRow(marks: RowMarks, { y, scale }: RowPlace): Shape[] {
  return [
    ...marks.spans.flatMap((span) => drawSpan(span, marks, { y, scale })),
    ...drawOutcome(marks, { y, scale }),
    ...marks.moments.flatMap((moment) => drawMoment(moment, { y, scale })),
  ];
}

function drawSpan(span: RowSpan, { row }: RowMarks, { y, scale }: RowPlace): Shape[] {
  const { fromMs, toMs } = scale;
  if (span.toMs < fromMs || span.fromMs > toMs) return [];
  const x = scale.xOf(span.fromMs);
  const { top, height } = FORMS[span.kind];
  const className = span.kind === "work" ? `span work ${row.status}` : `span ${span.kind}`;
  const width = Math.max(WIDTH_MIN, scale.xOf(span.toMs) - x);
  return [{ kind: "box", className, x: NAME_WIDTH + x, y: y + top, width, height, label: span.label }];
}

/** Draws the outcome's sign and the duration beside the bar: at its right, or at its left where there is no room. */
function drawOutcome({ row }: RowMarks, { y, scale }: RowPlace): Shape[] {
  const endMs = row.startMs + row.durationMs;
  if (endMs < scale.fromMs || row.startMs > scale.toMs) return [];
  const sign = STATUS_SIGNS[row.status] ?? "";
  const text = row.status === "skipped" ? sign : `${sign} ${formatDuration(row.durationMs)}`;
  const chars = text.length * CHAR_WIDTH + 12;
  const isInside = scale.xOf(endMs) + chars > scale.width;
  const x = isInside ? scale.xOf(row.startMs) - chars : scale.xOf(endMs) + 6;
  if (x < 0) return [];
  return [{ kind: "words", className: `end ${row.status}`, x: NAME_WIDTH + x, y: y + 16, text }];
}

/** Told by its form, for those who do not see colours. */
export const STATUS_SIGNS: Readonly<Record<string, string>> = {
  waiting: "…",
  dispatched: "◌",
  running: "▶",
  backoff: "↻",
  blocked: "?",
  held: "‖",
  completed: "✓",
  success: "✓",
  partial: "◐",
  failed: "✕",
  timed_out: "⏱",
  cancelled: "⊘",
  skipped: "–",
  escalated: "?",
};

function drawMoment({ kind, atMs, label }: RowMoment, { y, scale }: RowPlace): Shape[] {
  if (atMs < scale.fromMs || atMs > scale.toMs) return [];
  const x = roundToTenth(NAME_WIDTH + scale.xOf(atMs));
  const middle = y + ROW_HEIGHT / 2;
  return [{ kind: "outline", className: `moment ${kind}`, path: MOMENT_PATHS[kind](x, middle), label }];
}

const MOMENT_PATHS: Readonly<Record<RowMoment["kind"], (x: number, y: number) => string>> = {
  conflict: (x, y) => `M${x} ${y - 7}l7 7l-7 7l-7 -7z`,
  question: (x, y) => `M${x - 5} ${y - 11}h10v8h-4l-3 4v-4h-3z`,
  refused: (x, y) => `M${x - 5} ${y - 5}l10 10m0 -10l-10 10`,
  passed: (x, y) => `M${x - 4} ${y}l3 4l6 -8`,
  failed: (x, y) => `M${x} ${y - 6}l6 11h-12z`,
};

/**
 * Returns the shapes of a row's status sign and name in the left column, indented by the row's depth; a long name is
 * cut.
 */
export function drawRowName({ row, name }: RowMarks, y: number): Shape[] {
  const indent = Math.min(row.depth, DEPTH_MAX) * INDENT;
  const chars = Math.floor((NAME_WIDTH - indent - 30) / CHAR_WIDTH);
  return [
    {
      kind: "words",
      className: `sign ${row.status}`,
      x: 6 + indent,
      y: y + 16,
      text: STATUS_SIGNS[row.status] ?? "",
    },
    { kind: "words", className: "name", x: 22 + indent, y: y + 16, text: formatVisibleLine(name, chars) },
  ];
}

/** Returns a row of the timeline as one line for a screen reader: name, state, attempt, waits and moments. */
export function describeRow({ row, name, spans, moments }: RowMarks): string {
  const state = `${separateWords(row.status)}${isOpenTimelineRow(row) ? " since" : " after"} ${formatDuration(row.durationMs)}`;
  const attempts = row.attempt > 1 ? [`attempt ${row.attempt}`] : [];
  const waits = spans.filter(({ kind }) => kind === "queue" || kind === "held").map(({ label }) => label);
  return [name, state, ...attempts, ...waits, ...moments.map(({ label }) => label)].join("; ");
}
