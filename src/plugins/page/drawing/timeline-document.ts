/** Owns: a timeline as one file that needs nothing else: no script, no font, no picture from elsewhere. */
import type { Timeline } from "../../reports/timeline.ts";
import {
  formatCount,
  formatDuration,
  formatInstant,
  formatTokens,
  formatUsd,
} from "../../../agents/coordination/std/quantities.ts";
import {
  AXIS_HEIGHT,
  describeRow,
  drawRowName,
  drawTimelineRow,
  NAME_WIDTH,
  ROW_HEIGHT,
} from "./draw-row.ts";
import { markTimelineRows, separateWords, type AdmittedStep, type RowMarks } from "./row-marks.ts";
import { escapeMarkup, renderSvgShape, type Shape } from "./shapes.ts";
import { createTimeScale, listTicks } from "./time-scale.ts";
import { PATTERNS, TIMELINE_STYLE } from "./timeline-style.ts";
import { formatVisibleLine, formatVisibleText } from "./visible-text.ts";

export interface TimelinePage {
  readonly timeline: Timeline;
  readonly steps: readonly AdmittedStep[];
  /** `null` once its text is no longer kept. */
  readonly objective: string | null;
  readonly writtenAtMs: number;
}

const WIDTH = 1_200;
const OBJECTIVE_CHARS_MAX = 2_000;

const STYLE = `
body { margin: 24px auto; max-width: ${WIDTH + 40}px; padding: 0 16px; background: var(--paper); color: var(--ink);
  font: 14px/1.5 ui-sans-serif, system-ui, "Segoe UI", sans-serif; }
h1 { font-size: 19px; margin: 0 0 4px; overflow-wrap: anywhere; white-space: pre-wrap; }
p { margin: 4px 0; color: var(--soft); overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 20px 0; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: 4px 10px 4px 0; border-top: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 600; }
`;

/** Without scripts, and with a policy that would let none run. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'";

/** Returns a timeline as the text of one HTML file without scripts, with its drawing and a table that says the same. */
export function renderTimelineHtml({ timeline, steps, objective, writtenAtMs }: TimelinePage): string {
  const marks = markTimelineRows(timeline, steps);
  const title = formatVisibleText(
    (objective ?? "(the objective is no longer kept)").slice(0, OBJECTIVE_CHARS_MAX),
  );
  const parts = [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8">',
    `<meta http-equiv="content-security-policy" content="${POLICY}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escapeMarkup(formatVisibleLine(title, 120))}</title>`,
    `<style>${TIMELINE_STYLE}${STYLE}</style></head><body>`,
    `<h1>${escapeMarkup(title)}</h1>`,
    ...listSummaryLines(timeline, writtenAtMs).map((fact) => `<p>${escapeMarkup(fact)}</p>`),
    `<div class="scroll">${renderTimelineSvg(marks, timeline.durationMs)}</div>`,
    renderRowTable(marks),
    "</body></html>\n",
  ];
  return parts.join("\n");
}

function listSummaryLines(timeline: Timeline, writtenAtMs: number): string[] {
  const { coordinationId, status, durationMs, startedAtMs, rows, usage } = timeline;
  const used = usage ? [`${formatTokens(usage.tokens)} tokens`, formatUsd(usage.costMicroUsd)] : [];
  return [
    [separateWords(status), formatDuration(durationMs), formatCount(rows.length, "step"), ...used].join(
      " · ",
    ),
    `${formatVisibleLine(coordinationId)} · started ${formatInstant(startedAtMs)} · written ${formatInstant(writtenAtMs)}`,
  ];
}

function renderTimelineSvg(marks: readonly RowMarks[], durationMs: number): string {
  const height = AXIS_HEIGHT + marks.length * ROW_HEIGHT + 4;
  const scale = createTimeScale({ fromMs: 0, toMs: Math.max(1, durationMs) }, WIDTH - NAME_WIDTH - 8);
  const ticks = listTicks(scale).flatMap(({ x, label }): Shape[] => [
    { kind: "outline", className: "tick", path: `M${NAME_WIDTH + x} ${AXIS_HEIGHT}V${height}` },
    { kind: "words", className: "tick-label", x: NAME_WIDTH + x + 3, y: 14, text: label },
  ]);
  const rows = marks.map((each, index) => {
    const y = AXIS_HEIGHT + index * ROW_HEIGHT;
    const shapes = [...drawRowName(each, y), ...drawTimelineRow(each, { y, scale })];
    return `<g><title>${escapeMarkup(describeRow(each))}</title>${shapes.map(renderSvgShape).join("")}</g>`;
  });
  const patterns = PATTERNS.map(
    ({ id, turn }) =>
      `<pattern id="${id}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="${turn}"><path class="hatch-${id}" d="M0 0V6"/></pattern>`,
  );
  return [
    `<svg class="drawing" role="img" aria-label="Timeline; the table below says the same" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" xmlns="http://www.w3.org/2000/svg">`,
    `<defs>${patterns.join("")}</defs>`,
    ...ticks.map(renderSvgShape),
    ...rows,
    "</svg>",
  ].join("\n");
}

function renderRowTable(marks: readonly RowMarks[]): string {
  const rows = marks.map(({ row, name, spans, moments }) => {
    const cells = [
      name,
      formatVisibleLine(row.agentId, 80),
      separateWords(row.status),
      String(row.attempt),
      formatDuration(row.startMs),
      formatDuration(row.durationMs),
      [...spans, ...moments].map(({ label }) => label).join("; "),
    ];
    return `<tr>${cells.map((cell) => `<td>${escapeMarkup(cell)}</td>`).join("")}</tr>`;
  });
  const headings = ["step", "agent", "state", "attempt", "began after", "took", "what happened"];
  const head = headings.map((each) => `<th scope="col">${each}</th>`).join("");
  return `<table><thead><tr>${head}</tr></thead><tbody>\n${rows.join("\n")}\n</tbody></table>`;
}
