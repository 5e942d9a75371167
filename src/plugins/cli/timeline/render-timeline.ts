/** Owns: the picture of a timeline on a terminal. */
import { stripVTControlCharacters } from "node:util";
import type { CoordinationView } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { formatUnmetCriteria } from "../../../agents/coordination/runtime/held-results/gave-up.ts";
import { isBudgetStop } from "../../../agents/coordination/contracts/escalation.ts";
import type { Lane } from "../../../agents/coordination/contracts/envelope.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { ChangeLog } from "../../reports/conflict-log.ts";
import { OUTCOME_TONES } from "../conflicts/conflict-text.ts";
import { describeGateway } from "../../reports/gateway-report.ts";
import type { GateLog } from "../../reports/gate-log.ts";
import { describeForkSource, describeKeptResults } from "../ledger/kept.ts";
import { createPaint, type Paint } from "../terminal/paint.ts";
import { formatMessage, countCells, fitToCells, formatPrintable, shorten } from "../terminal/printable.ts";
import { measureCells } from "../terminal/table.ts";
import { formatCount, formatDuration, formatInstant } from "../../../agents/coordination/std/quantities.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import { describeProgress } from "../ledger/progress-text.ts";
import { renderRefusalNotes } from "../privileges/show-privileges.ts";
import { isDeliveryStep, nameStep } from "../../reports/step-name.ts";
import { placeTicks, type Axis } from "./time-axis.ts";
import { renderTruthNotes } from "./child-truth.ts";
import { describeUsage } from "./budget-text.ts";
import { placeConflicts, renderConflictNotes, chooseConflictSign } from "./timeline-conflicts.ts";
import { renderGateNotes, placeQuestions, QUESTION_SIGN } from "./timeline-questions.ts";
import type { Timeline, TimelineConflict, TimelineRow } from "../../reports/timeline.ts";
import { type Ink, listStrokes, chooseTriedSign } from "./bar-strokes.ts";

const COLUMNS = { min: 60, max: 200, narrow: 80 } as const;
const DURATION_CELLS = 7;
const LANES: readonly Lane[] = ["control", "data", "escalation"];

interface TimelinePicture {
  readonly timeline: Timeline;
  readonly view: CoordinationView;
  /** Absent once the text was deleted. */
  readonly objective: string | null;
  /** Present where there were conflicts. */
  readonly log?: ChangeLog;
  readonly gates: GateLog;
  /** How the user calls the commands. */
  readonly program: string;
}

/** The terminal that is drawn on, with its colours and the columns to use. */
interface ChartCanvas {
  readonly terminal: Terminal;
  readonly paint: Paint;
  readonly columns: number;
}

/**
 * Returns the text that draws a coordination's steps on a time axis, with notes on progress, waits, conflicts,
 * children, refusals and gates, and a legend; as wide as the terminal, within 60 to 200 columns.
 */
export function renderTimeline(picture: TimelinePicture, terminal: Terminal): string {
  const columns = Math.min(Math.max(terminal.columns, COLUMNS.min), COLUMNS.max);
  const drawing: ChartCanvas = { terminal, paint: createPaint(terminal), columns };
  const body =
    picture.timeline.rows.length > 0 ? renderChart(picture.timeline, drawing) : ["no step was admitted yet"];
  const { timeline, view, log, program } = picture;
  const conflicts = log ? renderConflictNotes(log, timeline, { ...drawing, program }) : [];
  const notes = [
    ...renderProgressNotes(timeline, drawing),
    ...renderWaitNotes(picture, drawing),
    ...conflicts,
    ...renderTruthNotes(view, drawing),
    ...renderRefusalNotes(view, drawing),
    ...renderGateNotes(picture, drawing),
  ];
  return `${[...renderHeader(picture, drawing), "", ...body, "", ...notes, renderLegend(timeline, drawing)].join("\n")}\n`;
}

function renderHeader(
  { timeline, view, objective }: TimelinePicture,
  { terminal, paint, columns }: ChartCanvas,
): string[] {
  const print = (value: string): string => formatPrintable(value, terminal.unicode);
  const title =
    objective === null ? "(the objective is no longer kept)" : formatMessage(objective, terminal.unicode);
  const warn = (text: string): string => paint.tone("warning", text);
  const facts = [
    `${paint.coordinationStatus(timeline.status)} ${paint.tone("strong", formatDuration(timeline.durationMs))}`,
    listStepsFacts(timeline, paint).join(", "),
    describeOpenCount(listConflictsOpen(view), (all) => formatCount(all, "conflict"), warn),
    describeOpenCount(listQuestionsOpen(view), (all) => formatCount(all, "question"), warn),
    ...(view.gaveUp ? [warn(print(formatUnmetCriteria(view.successCriteria)))] : []),
    ...(view.usage ? [describeUsage(view.usage)] : []),
    `started ${formatInstant(timeline.startedAtMs)}`,
  ].filter((fact) => fact !== "");
  const { traceId, causalRef } = view.trace;
  const ids = [
    print(timeline.coordinationId),
    ...describeForkSource(view.forkedFrom).map(print),
    `owner ${print(view.ownerSession)}`,
    ...(timeline.gateway ? [`gateway ${print(describeGateway(timeline))}`] : []),
    ...(traceId ? [`trace ${print(traceId)}`] : []),
    ...(causalRef ? [`after ${print(causalRef)}`] : []),
  ];
  const dot = terminal.unicode ? " · " : " | ";
  return [
    paint.tone("strong", shorten(title, columns, terminal.unicode)),
    ...wrapParts(facts, dot, columns),
    ...wrapParts(ids, dot, columns).map((line) => paint.tone("faint", line)),
  ];
}

/** Lists how many steps there are and how many failed. Telling the owner is no step of the plan. */
function listStepsFacts({ rows }: Timeline, paint: Paint): string[] {
  const hasFailed = ({ status }: TimelineRow): boolean => status === "failed" || status === "timed_out";
  const steps = rows.filter((row) => !isDeliveryStep(row));
  const failed = steps.filter(hasFailed).length;
  const delivery = rows.find((row) => isDeliveryStep(row) && hasFailed(row));
  return [
    formatCount(steps.length, "step"),
    ...describeKeptResults(rows),
    ...(failed > 0 ? [paint.tone("bad", `${failed} failed`)] : []),
    ...(delivery ? [paint.tone("bad", `delivery ${delivery.status.replace("_", " ")}`)] : []),
  ];
}

/** Lists for each conflict whether it is open. */
export function listConflictsOpen({ conflicts }: Pick<CoordinationView | ChangeLog, "conflicts">): boolean[] {
  return conflicts.map(({ resolution }) => !resolution);
}

/** Lists for each question to people whether it is open. */
export function listQuestionsOpen({ escalations }: CoordinationView): boolean[] {
  return escalations.filter((question) => !isBudgetStop(question)).map(({ closed }) => !closed);
}

/** Describes how many there are and how many of them are open, like `3, 1 open`; empty where there are none. */
export function describeOpenCount(
  areOpen: readonly boolean[],
  count: (all: number) => string = String,
  mark: (text: string) => string = String,
): string {
  const open = areOpen.filter(Boolean).length;
  if (areOpen.length === 0) return "";
  return count(areOpen.length) + (open > 0 ? `, ${mark(`${open} open`)}` : "");
}

/** Joins parts into lines that fit the columns. Ids are never cut: what does not fit goes to the next line. */
function wrapParts(parts: readonly string[], separator: string, columns: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const line = lines.at(-1);
    const joined = line === undefined ? part : line + separator + part;
    if (line !== undefined && countCells(stripVTControlCharacters(joined)) <= columns)
      lines[lines.length - 1] = joined;
    else lines.push(part);
  }
  return lines;
}

/** The widths of a chart's columns, and its axis. */
interface ChartLayout {
  readonly name: number;
  readonly agent: number;
  readonly lane: number;
  readonly axis: Axis;
}

function renderChart(timeline: Timeline, drawing: ChartCanvas): string[] {
  const { terminal, paint } = drawing;
  const labels = renderTreeLabels(timeline.rows, terminal.unicode);
  const layout = computeLayout(timeline, labels, drawing);
  const ticks = placeTicks(layout.axis);
  const grid = new Set(ticks.map(({ cell }) => cell));
  const marks = placeConflicts(timeline.conflicts ?? [], layout.axis);
  const askedCells = placeQuestions(timeline.questions ?? [], layout.axis);
  let scale = "";
  for (const { cell, label } of ticks) scale = scale.padEnd(cell) + label;
  const cells = { name: "STEP", agent: "AGENT", lane: "LANE" };
  const head = `${fitColumns(cells, layout, terminal).join("  ")}    ${scale.padEnd(layout.axis.cells)}  ${"TIME".padStart(DURATION_CELLS)}`;
  const rows = timeline.rows.map((row, index) => {
    const agent = formatPrintable(row.agentId, terminal.unicode);
    const shown = { name: labels[index] ?? "", agent, lane: row.lane };
    const [name = "", agentCell = "", lane = ""] = fitColumns(shown, layout, terminal);
    const text = `${name}  ${agentCell}  ${paint.lane(row.lane, lane)}  ${paint.stepSign(row.status)} `;
    const took = paint.stepStatus(row.status, describeStepDuration(row).padStart(DURATION_CELLS));
    const of = { marks: marks.get(row.stepId), asked: askedCells.get(row.stepId) };
    const bar = renderBarRow(row, { axis: layout.axis, grid, drawing, ...of });
    return `${text}${bar}  ${took}`;
  });
  return [paint.tone("faint", head.trimEnd()), ...rows];
}

/** Describes how long a step took: `kept` for a result of a fork's source, `-` for a step that never began. */
function describeStepDuration({ status, durationMs, carriedFrom }: TimelineRow): string {
  if (carriedFrom !== undefined) return "kept";
  return status === "waiting" || status === "skipped" ? "-" : formatDuration(durationMs);
}

function fitColumns(
  cells: { readonly name: string; readonly agent: string; readonly lane: string },
  layout: ChartLayout,
  { unicode }: Terminal,
): string[] {
  return [
    fitToCells(cells.name, layout.name, unicode),
    fitToCells(cells.agent, layout.agent, unicode),
    fitToCells(cells.lane, layout.lane, unicode),
  ];
}

function computeLayout(
  { rows, durationMs }: Timeline,
  labels: readonly string[],
  { columns }: ChartCanvas,
): ChartLayout {
  const isNarrow = columns < COLUMNS.narrow;
  const name = measureCells(["STEP", ...labels], Math.floor(columns * (isNarrow ? 0.26 : 0.3)));
  const agent = measureCells(["AGENT", ...rows.map(({ agentId }) => agentId)], Math.floor(columns * 0.13));
  const lane = measureCells(["LANE", ...rows.map((row) => row.lane)], isNarrow ? 4 : 10);
  const gaps = 2 + 2 + 2 + 2 + 2;
  const cells = columns - name - agent - lane - DURATION_CELLS - gaps;
  return { name, agent, lane, axis: { totalMs: Math.max(1, durationMs), cells } };
}

/** Renders the name of each row behind the branches of the tree. */
function renderTreeLabels(rows: readonly TimelineRow[], unicode: boolean): string[] {
  const branch = unicode
    ? { more: "├╴", last: "└╴", through: "│ " }
    : { more: "|-", last: "`-", through: "| " };
  const labels: string[] = [];
  const follows: boolean[] = [];
  for (const row of rows.toReversed()) {
    const { depth } = row;
    let tree = depth > 0 ? (follows[depth] ? branch.more : branch.last) : "";
    for (let level = depth - 1; level > 0; level -= 1) tree = (follows[level] ? branch.through : "  ") + tree;
    follows.length = Math.min(follows.length, depth + 1);
    follows[depth] = true;
    labels.push(shortenBranches(tree, unicode) + formatPrintable(nameStep(row), unicode));
  }
  return labels.reverse();
}

/** Cuts the branches before a name to ten cells, so that deep nesting leaves room for it. */
function shortenBranches(tree: string, unicode: boolean): string {
  const TREE_CELLS_MAX = 10;
  return tree.length <= TREE_CELLS_MAX ? tree : (unicode ? "…" : "~") + tree.slice(1 - TREE_CELLS_MAX);
}

interface BarParts {
  readonly axis: Axis;
  /** The cells with a tick. */
  readonly grid: ReadonlySet<number>;
  readonly drawing: ChartCanvas;
  /** The cells with a conflict. */
  readonly marks: ReadonlyMap<number, TimelineConflict> | undefined;
  /** The cells where people were asked. */
  readonly asked: ReadonlySet<number> | undefined;
}

/** Renders the bar of a row, painting neighbouring cells of the same ink together. */
function renderBarRow(row: TimelineRow, parts: BarParts): string {
  const { paint } = parts.drawing;
  const cells = drawCells(row, parts);
  let line = "";
  for (let from = 0; from < cells.length;) {
    const ink = cells[from]?.ink ?? "void";
    let to = from;
    while (to < cells.length && cells[to]?.ink === ink) to += 1;
    const text = cells.slice(from, to).reduce((joined, cell) => joined + cell.text, "");
    line += paintInk(ink, text, { row, paint });
    from = to;
  }
  return line;
}

/** One cell of a bar in the chart. */
interface ChartCell {
  readonly ink: Ink;
  readonly text: string;
}

/** Draws the cells of a row: the grid, its strokes over it, and questions and conflicts on top of everything. */
function drawCells(
  row: TimelineRow,
  { axis, grid, drawing, marks, asked: askedCells }: BarParts,
): readonly ChartCell[] {
  const { unicode } = drawing.terminal;
  const cells = Array.from({ length: axis.cells }, (_, cell): ChartCell => {
    return { ink: "void", text: grid.has(cell) ? (unicode ? "┊" : ":") : " " };
  });
  for (const { ink, cell, text } of listStrokes(row, axis, unicode))
    for (let offset = 0; offset < text.length; offset += 1)
      cells[cell + offset] = { ink, text: text.charAt(offset) };
  for (const cell of askedCells ?? []) cells[cell] = { ink: "asked", text: QUESTION_SIGN };
  for (const [cell, { outcome }] of marks ?? [])
    cells[cell] = { ink: outcome, text: chooseConflictSign(unicode) };
  return cells;
}

function paintInk(
  ink: Ink,
  text: string,
  { row, paint }: { readonly row: TimelineRow; readonly paint: Paint },
): string {
  if (ink === "work") return paint.lane(row.lane, text);
  if (ink === "void" || ink === "wait") return paint.tone("faint", text);
  return paint.tone(ink === "tried" || ink === "asked" ? "warning" : OUTCOME_TONES[ink], text);
}

const PROGRESS_MAX = 10;

/** Renders what agents at work say of how far they are, the newest first. */
function renderProgressNotes(
  { rows, startedAtMs, durationMs }: Timeline,
  { terminal, paint, columns }: ChartCanvas,
): string[] {
  const { unicode } = terminal;
  const lines = rows
    .flatMap((row) => (row.progress ? [{ row, progress: row.progress }] : []))
    .toSorted((a, b) => b.progress.atMs - a.progress.atMs)
    .slice(0, PROGRESS_MAX)
    .map(({ row, progress }) => {
      const line = `${nameStep(row)}: ${describeProgress(progress, startedAtMs + durationMs)}`;
      return `${paint.stepSign(row.status)} ${shorten(formatPrintable(line, unicode), columns - 2, unicode)}`;
    });
  return lines.length === 0 ? [] : [...lines, ""];
}

const WAITS_MAX = 10;

/** Renders which steps wait for a time or for people, and what people can do. Commands are never cut. */
function renderWaitNotes(
  { timeline, program }: TimelinePicture,
  { terminal, paint, columns }: ChartCanvas,
): string[] {
  const { unicode } = terminal;
  const waiting = timeline.rows.filter(
    ({ retryAtMs, answerByMs }) => retryAtMs !== undefined || answerByMs !== undefined,
  );
  if (waiting.length === 0) return [];
  const lines = waiting.slice(0, WAITS_MAX).flatMap((row) => {
    const line = `${formatPrintable(nameStep(row), unicode)}: ${describeWait(row)}`;
    const sentence = `${paint.stepSign(row.status)} ${shorten(line, columns - 2, unicode)}`;
    if (row.answerByMs === undefined) return [sentence];
    const words = formatShellArguments(timeline.coordinationId, row.stepId);
    return [sentence, `  ${program} retry ${formatPrintable(words, unicode)}`];
  });
  const more = waiting.length > WAITS_MAX ? [`  and ${waiting.length - WAITS_MAX} more`] : [];
  return [...lines, ...more, ""];
}

function describeWait({ attempt, retryAtMs, answerByMs }: TimelineRow): string {
  if (retryAtMs !== undefined) return `attempt ${attempt + 1} at ${formatInstant(retryAtMs)}`;
  return answerByMs === undefined
    ? ""
    : `waits for people until ${formatInstant(answerByMs)}; try it again with`;
}

function nameTriedAttempts(rows: readonly TimelineRow[]): string {
  const isRevised = rows.some(({ earlier = [] }) => earlier.some(({ status }) => status === "revised"));
  return isRevised ? "failed or revised attempt" : "failed attempt";
}

function renderLegend(
  { rows, conflicts = [], questions = [] }: Timeline,
  { terminal, paint, columns }: ChartCanvas,
): string {
  const block = terminal.unicode ? "█" : "=";
  const lanes = LANES.map((lane) => {
    const steps = rows.filter((row) => row.lane === lane).length;
    return `${paint.lane(lane, block)} ${lane} ${steps}`;
  });
  const statuses = [...new Set(rows.map(({ status }) => status))].map(
    (status) => `${paint.stepSign(status)} ${status.replace("_", " ")}`,
  );
  const isAsked = questions.some(({ stepId }) => stepId !== undefined);
  const askedEntry = isAsked ? [`${QUESTION_SIGN} people asked`] : [];
  const isTried = rows.some((row) => row.earlier || row.status === "backoff" || row.status === "blocked");
  const tried = isTried
    ? [`${paint.tone("warning", chooseTriedSign(terminal.unicode))} ${nameTriedAttempts(rows)}`]
    : [];
  const clash = conflicts.length > 0 ? [`${chooseConflictSign(terminal.unicode)} conflict`] : [];
  const parts = [`lanes  ${lanes.join("  ")}`, [...statuses, ...tried, ...askedEntry, ...clash].join("  ")];
  const shown = parts.filter((part) => part !== "");
  const oneLine = shown.join("     ");
  return countCells(stripVTControlCharacters(oneLine)) <= columns && columns >= COLUMNS.narrow
    ? oneLine
    : shown.flatMap((part) => wrapParts(part.split("  "), "  ", columns)).join("\n");
}
