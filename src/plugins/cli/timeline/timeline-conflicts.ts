/** Owns: conflicts in the picture of a timeline: a mark on the row of who asked, a line each below the chart. */
import { describeResource } from "../conflicts/resource-text.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { ChangeLog } from "../../reports/conflict-log.ts";
import { describeConflictOutcome, OUTCOME_TONES, nameRequester } from "../conflicts/conflict-text.ts";
import { shortenConflictId, classifyOutcome } from "../../reports/conflict-outcome.ts";
import type { Paint } from "../terminal/paint.ts";
import { countCells, formatPrintable, shorten, shortenStart } from "../terminal/printable.ts";
import { formatDuration } from "../../../agents/coordination/std/quantities.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import type { Axis } from "./time-axis.ts";
import type { Timeline, TimelineConflict } from "../../reports/timeline.ts";

const LINES_MAX = 10;
const RESOURCE_CELLS_MIN = 8;

/** Returns the character that marks a conflict in a timeline. */
export function chooseConflictSign(unicode: boolean): string {
  return unicode ? "‡" : "&";
}

/**
 * Returns for each step the cells of the timeline at which its requests raised conflicts, each with the conflict; the
 * newest conflict of a cell counts.
 */
export function placeConflicts(
  conflicts: readonly TimelineConflict[],
  { totalMs, cells }: Axis,
): ReadonlyMap<string, ReadonlyMap<number, TimelineConflict>> {
  const marks = new Map<string, Map<number, TimelineConflict>>();
  for (const conflict of conflicts) {
    if (conflict.stepId === undefined) continue;
    const cell = Math.min(cells - 1, Math.floor((conflict.detectedMs / Math.max(1, totalMs)) * cells));
    const ofStep = marks.get(conflict.stepId) ?? new Map<number, TimelineConflict>();
    marks.set(conflict.stepId, ofStep.set(cell, conflict));
  }
  return marks;
}

/** The terminal that is drawn on, with its colours and the columns to use. */
interface ChartCanvas {
  readonly terminal: Terminal;
  readonly paint: Paint;
  readonly columns: number;
}

/**
 * Returns the lines under a timeline for the newest conflicts, in the order in which they came. Where a line is too
 * long, the path is cut at its beginning: its end tells more.
 */
export function renderConflictNotes(
  { conflicts, names }: ChangeLog,
  { startedAtMs, coordinationId }: Timeline,
  { terminal, paint, columns, program }: ChartCanvas & { readonly program: string },
): string[] {
  const { unicode } = terminal;
  const lines = conflicts.slice(-LINES_MAX).map((conflict) => {
    const at = formatDuration(Math.max(0, conflict.detectedAtMs - startedAtMs));
    const before = `${formatPrintable(shortenConflictId(conflict), unicode)} at ${at}: `;
    const after = formatPrintable(
      `: ${nameRequester(names, conflict)} asked, ${describeConflictOutcome(names, conflict)}`,
      unicode,
    );
    const resourceCells = Math.max(RESOURCE_CELLS_MIN, columns - 2 - countCells(before) - countCells(after));
    const resource = shortenStart(
      formatPrintable(describeResource(conflict.resource), unicode),
      resourceCells,
      unicode,
    );
    const line = shorten(before + resource + after, columns - 2, unicode);
    return `${paint.tone(OUTCOME_TONES[classifyOutcome(conflict)], chooseConflictSign(unicode))} ${line}`;
  });
  const left = conflicts.length - lines.length;
  const more =
    left > 0
      ? [
          `  and ${left} before: ${program} conflicts ${formatPrintable(formatShellArguments(coordinationId), unicode)}`,
        ]
      : [];
  return lines.length === 0 ? [] : [...more, ...lines, ""];
}
