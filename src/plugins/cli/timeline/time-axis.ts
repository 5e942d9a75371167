/** Owns: drawing spans of time on a row of terminal cells. */

export interface Axis {
  readonly totalMs: number;
  readonly cells: number;
}

interface Tick {
  readonly cell: number;
  readonly label: string;
}

/** A label and room before the next one. */
const TICK_CELLS_MIN = 8;

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const STEPS_MS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND_MS),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS),
  ...[1, 2, 5, 10, 20, 50, 100].map((days) => days * DAY_MS),
];

/** Round times, as many as have room for a label. */
export function ticksOf({ totalMs, cells }: Axis): Tick[] {
  const ticksMax = Math.max(2, Math.floor(cells / TICK_CELLS_MIN));
  const stepMs = STEPS_MS.find((step) => totalMs / step <= ticksMax) ?? totalMs;
  const ticks: Tick[] = [];
  for (let atMs = 0; atMs <= totalMs; atMs += Math.max(1, stepMs)) {
    const label = formatTick(atMs);
    const cell = Math.min(cells - 1, Math.floor((atMs / Math.max(1, totalMs)) * cells));
    if (cell + label.length <= cells) ticks.push({ cell, label });
  }
  return ticks;
}

function formatTick(atMs: number): string {
  if (atMs === 0) return "0";
  const parts: [number, string][] = [
    [Math.floor(atMs / DAY_MS), "d"],
    [Math.floor((atMs % DAY_MS) / HOUR_MS), "h"],
    [Math.floor((atMs % HOUR_MS) / MINUTE_MS), "m"],
    [Math.floor((atMs % MINUTE_MS) / SECOND_MS), "s"],
    [atMs % SECOND_MS, "ms"],
  ];
  return parts
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join("");
}

interface Bar {
  /** The first cell. */
  readonly cell: number;
  readonly text: string;
}

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"] as const;

/** Returns a bar of at least one cell, so that the shortest step is seen. */
export function barOf(span: { fromMs: number; toMs: number }, axis: Axis, unicode: boolean): Bar {
  const eighthsMax = axis.cells * 8;
  const perMs = eighthsMax / Math.max(1, axis.totalMs);
  const from = Math.min(Math.floor(span.fromMs * perMs), eighthsMax - 1);
  const to = Math.min(Math.max(Math.round(span.toMs * perMs), from + 1), eighthsMax);
  const cell = Math.floor(from / 8);
  let text = "";
  for (let at = cell; at * 8 < to; at += 1) text += unicode ? blockAt(at, from, to) : "=";
  return { cell, text };
}

/** Blocks that begin within a cell exist only as its right half. */
function blockAt(cell: number, from: number, to: number): string {
  const left = Math.max(0, from - cell * 8);
  const right = Math.min(8, to - cell * 8);
  if (left >= 4) return "▐";
  return EIGHTHS[right] ?? "█";
}
