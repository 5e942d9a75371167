/** Owns: the strokes that a bar of the timeline is drawn with. */
import type { ConflictOutcome } from "../../reports/conflict-outcome.ts";
import { drawBar, type Axis } from "./time-axis.ts";
import type { TimelineRow } from "../../reports/timeline.ts";

export type Ink = "void" | "wait" | "tried" | "work" | "asked" | ConflictOutcome;

export interface Stroke {
  readonly ink: Ink;
  readonly cell: number;
  readonly text: string;
}

/**
 * Returns the strokes that draw a step's row of the timeline: its failed attempts, then the newest one; empty for a
 * step that was skipped or whose result a fork kept.
 */
export function listStrokes(row: TimelineRow, axis: Axis, unicode: boolean): Stroke[] {
  const { startMs, durationMs, status } = row;
  const earlier = (row.earlier ?? []).map((span) => drawTriedStroke(span, axis, unicode));
  const toMs = startMs + durationMs;
  if (row.carriedFrom !== undefined) return [];
  switch (status) {
    case "skipped":
      return [];
    case "waiting":
    case "dispatched":
      return [...earlier, drawWaitStroke({ fromMs: startMs, toMs }, axis, unicode)];
    case "backoff":
    case "blocked":
      return [
        ...earlier,
        drawWaitStroke({ fromMs: toMs, toMs: axis.totalMs }, axis, unicode),
        drawTriedStroke(row, axis, unicode),
      ];
    case "held":
      return [
        ...earlier,
        drawWaitStroke({ fromMs: toMs, toMs: axis.totalMs }, axis, unicode),
        ...drawWorkStrokes(row, axis, unicode),
      ];
    default:
      return [...earlier, ...drawWorkStrokes(row, axis, unicode)];
  }
}

/** A stretch of time, counted from the start of the timeline. */
export interface TimeSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Returns the stroke of a span of time in which a step waited, as a thin line. */
export function drawWaitStroke(span: TimeSpan, axis: Axis, unicode: boolean): Stroke {
  const { cell, text } = drawBar(span, axis, unicode);
  return { ink: "wait", cell, text: (unicode ? "┄" : ".").repeat(text.length) };
}

/** Returns the stroke of an attempt of a step that came to nothing. */
export function drawTriedStroke(
  { startMs, durationMs }: Pick<TimelineRow, "startMs" | "durationMs">,
  axis: Axis,
  unicode: boolean,
): Stroke {
  const { cell, text } = drawBar({ fromMs: startMs, toMs: startMs + durationMs }, axis, unicode);
  return { ink: "tried", cell, text: chooseTriedSign(unicode).repeat(text.length) };
}

/** Returns the character that draws an attempt that came to nothing. */
export function chooseTriedSign(unicode: boolean): string {
  return unicode ? "▒" : "#";
}

/**
 * Returns the strokes of a step's work: thin while the host has not confirmed the child and while the result is held,
 * else solid; its end fades while the step runs.
 */
export function drawWorkStrokes(row: TimelineRow, axis: Axis, unicode: boolean): Stroke[] {
  const { startMs, durationMs, acknowledgedMs = startMs, status } = row;
  const toMs = startMs + durationMs;
  const solid = drawBar({ fromMs: acknowledgedMs, toMs: row.heldMs ?? toMs }, axis, unicode);
  const text = status === "running" ? fadeBar(solid.text, unicode) : solid.text;
  return [drawWaitStroke({ fromMs: startMs, toMs }, axis, unicode), { ink: "work", cell: solid.cell, text }];
}

/** Returns a bar with its end replaced by signs that fade, because the work goes on. */
export function fadeBar(bar: string, unicode: boolean): string {
  const tail = unicode ? "▓▒░" : ">";
  return bar.length > tail.length ? bar.slice(0, -tail.length) + tail : tail.slice(-bar.length);
}
