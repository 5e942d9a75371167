/** Owns: how many steps were at work at each part of a timeline, as one path of 300 columns. */
import type { Timeline } from "../../../reports/timeline.ts";

const COLUMNS = 300;

/** Returns the path data of the SVG curve that shows how many steps were at work at each part of a timeline. */
export function drawLoadPath({ rows, durationMs }: Timeline, height: number): string {
  const changes = new Array<number>(COLUMNS + 1).fill(0);
  const columnOf = (ms: number): number =>
    Math.min(COLUMNS - 1, Math.max(0, Math.floor((ms / Math.max(1, durationMs)) * COLUMNS)));
  for (const row of rows) {
    if (row.status === "skipped" || row.status === "waiting" || row.carriedFrom !== undefined) continue;
    addToColumn(changes, columnOf(row.startMs), 1);
    addToColumn(changes, columnOf(row.startMs + row.durationMs) + 1, -1);
  }
  const counts: number[] = [];
  let atWork = 0;
  for (const change of changes.slice(0, COLUMNS)) {
    atWork += change;
    counts.push(atWork);
  }
  const most = Math.max(1, ...counts);
  const steps = counts.map(
    (count, column) => `V${(height - 2 - (count / most) * (height - 6)).toFixed(1)}H${column + 1}`,
  );
  return `M0 ${height - 2}${steps.join("")}V${height - 2}z`;
}

function addToColumn(changes: number[], column: number, change: number): void {
  changes[column] = (changes[column] ?? 0) + change;
}
