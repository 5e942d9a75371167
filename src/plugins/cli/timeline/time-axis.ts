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

/** Returns the ticks of a time axis at round times, each with its cell and label, as many as have room for a label. */
export function placeTicks({ totalMs, cells }: Axis): Tick[] {
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

/** Formats a time since the beginning like `1h30m`, without units that are zero. */
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

/**
 * Returns the cell where the bar of a span of time begins on an axis, and its text of at least one cell, so that the
 * shortest step is seen.
 */
export function drawBar(span: { fromMs: number; toMs: number }, axis: Axis, unicode: boolean): Bar {
  const eighthsMax = axis.cells * 8;
  const perMs = eighthsMax / Math.max(1, axis.totalMs);
  const from = Math.min(Math.floor(span.fromMs * perMs), eighthsMax - 1);
  const to = Math.min(Math.max(Math.round(span.toMs * perMs), from + 1), eighthsMax);
  const cell = Math.floor(from / 8);
  let text = "";
  for (let at = cell; at * 8 < to; at += 1) text += unicode ? chooseBlock(at, from, to) : "=";
  return { cell, text };
}

/**
 * Returns the sign for the part of a cell between two eighths of the row. A block that begins within a cell exists
 * only as its right half.
 */
function chooseBlock(cell: number, from: number, to: number): string {
  const leftEighths = Math.max(0, from - cell * 8);
  const rightEighths = Math.min(8, to - cell * 8);
  if (leftEighths >= 4) return "▐";
  return EIGHTHS[rightEighths] ?? "█";
}
