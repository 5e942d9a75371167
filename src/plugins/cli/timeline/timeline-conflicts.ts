/** Owns: conflicts in the picture of a timeline: a mark on the row of who asked, a line each below the chart. */
import { describeResource } from "../conflicts/resource-text.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { ChangeLog } from "../../reports/conflict-log.ts";
import { describeOutcome, OUTCOME_TONES, nameRequester } from "../conflicts/conflict-text.ts";
import { numberOf, outcomeOf } from "../../reports/conflict-outcome.ts";
import type { Paint } from "../terminal/paint.ts";
import { cellsOf, formatPrintable, shorten, shortenStart } from "../terminal/printable.ts";
import { formatDuration } from "../../../agents/coordination/std/quantities.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import type { Axis } from "./time-axis.ts";
import type { Timeline, TimelineConflict } from "../../reports/timeline.ts";

const LINES_MAX = 10;
const RESOURCE_CELLS_MIN = 8;

export function chooseConflictSign(unicode: boolean): string {
  return unicode ? "‡" : "&";
}

/** Returns, by step, the cells where it asked for what others wanted; the newest conflict of a cell counts. */
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

interface Drawn {
  readonly terminal: Terminal;
  readonly paint: Paint;
  readonly columns: number;
}

/** The newest ones, in the order in which they came. The path gives way first: its end tells more than its beginning. */
export function renderConflictNotes(
  { conflicts, names }: ChangeLog,
  { startedAtMs, coordinationId }: Timeline,
  { terminal, paint, columns, program }: Drawn & { readonly program: string },
): string[] {
  const { unicode } = terminal;
  const lines = conflicts.slice(-LINES_MAX).map((conflict) => {
    const at = formatDuration(Math.max(0, conflict.detectedAtMs - startedAtMs));
    const before = `${formatPrintable(numberOf(conflict), unicode)} at ${at}: `;
    const after = formatPrintable(
      `: ${nameRequester(names, conflict)} asked, ${describeOutcome(names, conflict)}`,
      unicode,
    );
    const rest = Math.max(RESOURCE_CELLS_MIN, columns - 2 - cellsOf(before) - cellsOf(after));
    const resource = shortenStart(
      formatPrintable(describeResource(conflict.resource), unicode),
      rest,
      unicode,
    );
    const line = shorten(before + resource + after, columns - 2, unicode);
    return `${paint.tone(OUTCOME_TONES[outcomeOf(conflict)], chooseConflictSign(unicode))} ${line}`;
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
