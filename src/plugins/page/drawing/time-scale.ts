/** Owns: where on a time axis a moment stands, and which moments the axis names. */
import { formatDuration } from "../../../agents/coordination/std/quantities.ts";

/** A part of a timeline, in milliseconds from its start. */
export interface TimeWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface TimeScale extends TimeWindow {
  readonly width: number;
  /** Moments outside the window stand just outside the drawing. */
  xOf(ms: number): number;
}

export interface Tick {
  readonly x: number;
  readonly label: string;
}

/** Beyond the edge, so that the outline of a cut bar is not seen there. */
const EDGE = 4;

/**
 * Creates the scale that maps the time window onto `width` pixels; moments outside of it lie a little beyond the
 * edges.
 */
export function createTimeScale({ fromMs, toMs }: TimeWindow, width: number): TimeScale {
  const perMs = width / Math.max(1, toMs - fromMs);
  return {
    fromMs,
    toMs,
    width,
    xOf: (ms) => Math.min(width + EDGE, Math.max(-EDGE, (ms - fromMs) * perMs)),
  };
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 4, 8, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 28, 91, 182, 364].map((count) => count * DAY),
];
const TICK_PIXELS = 90;

/**
 * Lists the labelled ticks of a time axis with their pixel positions, at round times at least 90 pixels apart; at most
 * 200.
 */
export function listTicks(scale: TimeScale): Tick[] {
  const { fromMs, toMs, width } = scale;
  const stepMsMin = ((toMs - fromMs) * TICK_PIXELS) / Math.max(1, width);
  const step = STEPS_MS.find((each) => each >= stepMsMin) ?? stepMsMin;
  const first = Math.ceil(fromMs / step);
  const count = Math.max(0, Math.floor(toMs / step) - first + 1);
  return Array.from({ length: Math.min(count, 200) }, (_, index) => {
    const ms = (first + index) * step;
    return { x: scale.xOf(ms), label: ms === 0 ? "0" : formatDuration(ms) };
  });
}

const SPAN_MS_MIN = 5;

/**
 * Returns the time window zoomed around a moment, kept within the timeline; a factor below 1 shows less time, down to
 * a least span.
 */
export function zoomWindow(
  { fromMs, toMs }: TimeWindow,
  {
    factor,
    aroundMs,
    totalMs,
  }: { readonly factor: number; readonly aroundMs: number; readonly totalMs: number },
): TimeWindow {
  const span = Math.min(totalMs, Math.max(SPAN_MS_MIN, (toMs - fromMs) * factor));
  const share = (aroundMs - fromMs) / Math.max(1, toMs - fromMs);
  return clampWindow(aroundMs - share * span, span, totalMs);
}

/** Returns the time window moved by a duration, kept within the timeline, with the same span. */
export function panWindow({ fromMs, toMs }: TimeWindow, byMs: number, totalMs: number): TimeWindow {
  return clampWindow(fromMs + byMs, toMs - fromMs, totalMs);
}

/** Returns a window of this length, moved where it would reach beyond the timeline. */
function clampWindow(fromMs: number, span: number, totalMs: number): TimeWindow {
  const start = Math.max(0, Math.min(fromMs, totalMs - span));
  return { fromMs: start, toMs: start + span };
}
