/** Owns: the strokes that a bar of the timeline is drawn with. */
import type { Outcome } from "../../reports/conflict-outcome.ts";
import { barOf, type Axis } from "./time-axis.ts";
import type { TimelineRow } from "../../reports/timeline.ts";

export type Ink = "void" | "wait" | "tried" | "work" | "asked" | Outcome;

export interface Stroke {
  readonly ink: Ink;
  readonly cell: number;
  readonly text: string;
}

/** Attempts that came to nothing, then the newest one. */
export function inksOf(row: TimelineRow, axis: Axis, unicode: boolean): Stroke[] {
  const { startMs, durationMs, status } = row;
  const earlier = (row.earlier ?? []).map((span) => drawTried(span, axis, unicode));
  const toMs = startMs + durationMs;
  if (row.carriedFrom !== undefined) return [];
  switch (status) {
    case "skipped":
      return [];
    case "waiting":
    case "dispatched":
      return [...earlier, drawThin({ fromMs: startMs, toMs }, axis, unicode)];
    case "backoff":
    case "blocked":
      return [
        ...earlier,
        drawThin({ fromMs: toMs, toMs: axis.totalMs }, axis, unicode),
        drawTried(row, axis, unicode),
      ];
    case "held":
      return [
        ...earlier,
        drawThin({ fromMs: toMs, toMs: axis.totalMs }, axis, unicode),
        ...drawWork(row, axis, unicode),
      ];
    default:
      return [...earlier, ...drawWork(row, axis, unicode)];
  }
}

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

export function drawThin(span: Span, axis: Axis, unicode: boolean): Stroke {
  const { cell, text } = barOf(span, axis, unicode);
  return { ink: "wait", cell, text: (unicode ? "┄" : ".").repeat(text.length) };
}

export function drawTried(
  { startMs, durationMs }: Pick<TimelineRow, "startMs" | "durationMs">,
  axis: Axis,
  unicode: boolean,
): Stroke {
  const { cell, text } = barOf({ fromMs: startMs, toMs: startMs + durationMs }, axis, unicode);
  return { ink: "tried", cell, text: chooseTriedSign(unicode).repeat(text.length) };
}

export function chooseTriedSign(unicode: boolean): string {
  return unicode ? "▒" : "#";
}

/** Thin while the host has not confirmed the child, and while its result was held; fading where the end is not known yet. */
export function drawWork(row: TimelineRow, axis: Axis, unicode: boolean): Stroke[] {
  const { startMs, durationMs, acknowledgedMs = startMs, status } = row;
  const toMs = startMs + durationMs;
  const solid = barOf({ fromMs: acknowledgedMs, toMs: row.heldMs ?? toMs }, axis, unicode);
  const text = status === "running" ? fadeBar(solid.text, unicode) : solid.text;
  return [drawThin({ fromMs: startMs, toMs }, axis, unicode), { ink: "work", cell: solid.cell, text }];
}

export function fadeBar(bar: string, unicode: boolean): string {
  const tail = unicode ? "▓▒░" : ">";
  return bar.length > tail.length ? bar.slice(0, -tail.length) + tail : tail.slice(-bar.length);
}
