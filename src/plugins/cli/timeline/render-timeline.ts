/** Owns: the picture of a timeline on a terminal. */
import { stripVTControlCharacters } from "node:util";
import type { CoordinationView } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { formatUnmetCriteria } from "../../../agents/coordination/runtime/held-results/gave-up.ts";
import type { Lane } from "../../../agents/coordination/contracts/envelope.ts";
import type { Terminal } from "../terminal/cli-host.ts";
import type { ChangeLog } from "../conflicts/conflict-log.ts";
import { OUTCOME_TONES, type Outcome } from "../conflicts/conflict-text.ts";
import type { GateLog } from "../questions/gate-log.ts";
import { forkText, keptText } from "../ledger/kept.ts";
import { paintFor, type Paint } from "../terminal/paint.ts";
import { cellsOf, fit, printable, shorten } from "../terminal/printable.ts";
import { formatCount, formatDuration, formatInstant } from "../../../agents/coordination/std/quantities.ts";
import { isDelivery, stepName } from "../ledger/step-name.ts";
import { barOf, ticksOf, type Axis } from "./time-axis.ts";
import { conflictCells, conflictNotes, conflictSign } from "./timeline-conflicts.ts";
import { gateNotes, questionCells, QUESTION_SIGN } from "./timeline-questions.ts";
import type { Timeline, TimelineConflict, TimelineRow } from "./timeline.ts";

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

interface Drawing {
  readonly terminal: Terminal;
  readonly paint: Paint;
  readonly columns: number;
}

export function renderTimeline(picture: TimelinePicture, terminal: Terminal): string {
  const columns = Math.min(Math.max(terminal.columns, COLUMNS.min), COLUMNS.max);
  const drawing: Drawing = { terminal, paint: paintFor(terminal), columns };
  const body =
    picture.timeline.rows.length > 0 ? chart(picture.timeline, drawing) : ["no step was admitted yet"];
  const { timeline, log, program } = picture;
  const conflicts = log ? conflictNotes(log, timeline, { ...drawing, program }) : [];
  const notes = [...waitsOf(picture, drawing), ...conflicts, ...gateNotes(picture, drawing)];
  return `${[...header(picture, drawing), "", ...body, "", ...notes, legend(timeline, drawing)].join("\n")}\n`;
}

function header(
  { timeline, view, objective }: TimelinePicture,
  { terminal, paint, columns }: Drawing,
): string[] {
  const text = (value: string): string => printable(value, terminal.unicode);
  const title = objective === null ? "(the objective is no longer kept)" : text(objective);
  const failed = timeline.rows.filter(({ status }) => status === "failed" || status === "timed_out").length;
  const facts = [
    `${paint.coordinationStatus(timeline.status)} ${paint.tone("strong", formatDuration(timeline.durationMs))}`,
    [
      formatCount(timeline.rows.filter((row) => !isDelivery(row)).length, "step"),
      ...keptText(timeline.rows),
      ...(failed > 0 ? [paint.tone("bad", `${failed} failed`)] : []),
    ].join(", "),
    ...conflictsFact(view, paint),
    ...questionsFact(view, paint),
    ...(view.gaveUp ? [paint.tone("warning", text(formatUnmetCriteria(view.successCriteria)))] : []),
    `started ${formatInstant(timeline.startedAtMs)}`,
  ];
  const { traceId, causalRef } = view.trace;
  const ids = [
    text(timeline.coordinationId),
    ...forkText(view).map(text),
    `owner ${text(view.ownerSession)}`,
    ...(traceId ? [`trace ${text(traceId)}`] : []),
    ...(causalRef ? [`after ${text(causalRef)}`] : []),
  ];
  const dot = terminal.unicode ? " · " : " | ";
  return [
    paint.tone("strong", shorten(title, columns, terminal.unicode)),
    ...wrap(facts, dot, columns),
    ...wrap(ids, dot, columns).map((line) => paint.tone("faint", line)),
  ];
}

function conflictsFact({ conflicts }: CoordinationView, paint: Paint): string[] {
  const open = conflicts.filter(({ resolution }) => !resolution).length;
  if (conflicts.length === 0) return [];
  return [
    formatCount(conflicts.length, "conflict") +
      (open > 0 ? `, ${paint.tone("warning", `${open} open`)}` : ""),
  ];
}

function questionsFact({ escalations }: CoordinationView, paint: Paint): string[] {
  const open = escalations.filter(({ closed }) => !closed).length;
  if (escalations.length === 0) return [];
  return [
    formatCount(escalations.length, "question") +
      (open > 0 ? `, ${paint.tone("warning", `${open} open`)}` : ""),
  ];
}

/** Ids are never cut: what does not fit goes to the next line. */
function wrap(parts: readonly string[], separator: string, columns: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const line = lines.at(-1);
    const joined = line === undefined ? part : line + separator + part;
    if (line !== undefined && cellsOf(stripVTControlCharacters(joined)) <= columns)
      lines[lines.length - 1] = joined;
    else lines.push(part);
  }
  return lines;
}

interface Layout {
  readonly name: number;
  readonly agent: number;
  readonly lane: number;
  readonly axis: Axis;
}

function chart(timeline: Timeline, drawing: Drawing): string[] {
  const { terminal, paint } = drawing;
  const labels = labelsOf(timeline.rows, terminal.unicode);
  const layout = layOut(timeline, labels, drawing);
  const ticks = ticksOf(layout.axis);
  const grid = new Set(ticks.map(({ cell }) => cell));
  const marks = conflictCells(timeline.conflicts ?? [], layout.axis);
  const asked = questionCells(timeline.questions ?? [], layout.axis);
  let scale = "";
  for (const { cell, label } of ticks) scale = scale.padEnd(cell) + label;
  const cells = { name: "STEP", agent: "AGENT", lane: "LANE" };
  const head = `${columnsOf(cells, layout, terminal).join("  ")}    ${scale.padEnd(layout.axis.cells)}  ${"TIME".padStart(DURATION_CELLS)}`;
  const rows = timeline.rows.map((row, index) => {
    const agent = printable(row.agentId, terminal.unicode);
    const shown = { name: labels[index] ?? "", agent, lane: row.lane };
    const [name = "", agentCell = "", lane = ""] = columnsOf(shown, layout, terminal);
    const text = `${name}  ${agentCell}  ${paint.lane(row.lane, lane)}  ${paint.stepSign(row.status)} `;
    const took = paint.stepStatus(row.status, tookText(row).padStart(DURATION_CELLS));
    const of = { marks: marks.get(row.stepId), asked: asked.get(row.stepId) };
    const bar = barRow(row, { axis: layout.axis, grid, drawing, ...of });
    return `${text}${bar}  ${took}`;
  });
  return [paint.tone("faint", head.trimEnd()), ...rows];
}

/** What never began took no time. */
function tookText({ status, durationMs, carriedFrom }: TimelineRow): string {
  if (carriedFrom !== undefined) return "kept";
  return status === "waiting" || status === "skipped" ? "-" : formatDuration(durationMs);
}

function columnsOf(
  cells: { readonly name: string; readonly agent: string; readonly lane: string },
  layout: Layout,
  { unicode }: Terminal,
): string[] {
  return [
    fit(cells.name, layout.name, unicode),
    fit(cells.agent, layout.agent, unicode),
    fit(cells.lane, layout.lane, unicode),
  ];
}

function layOut({ rows, durationMs }: Timeline, labels: readonly string[], { columns }: Drawing): Layout {
  const isNarrow = columns < COLUMNS.narrow;
  const widest = (texts: readonly string[]): number =>
    texts.reduce((cells, text) => Math.max(cells, cellsOf(text)), 0);
  const within = (cells: number, min: number, max: number): number => Math.min(Math.max(cells, min), max);
  const name = within(widest(labels), 4, Math.floor(columns * (isNarrow ? 0.26 : 0.3)));
  const agent = within(widest(rows.map(({ agentId }) => agentId)), 5, Math.floor(columns * 0.13));
  const lane = within(widest(rows.map((row) => row.lane)), 4, isNarrow ? 4 : 10);
  const gaps = 2 + 2 + 2 + 2 + 2;
  const cells = columns - name - agent - lane - DURATION_CELLS - gaps;
  return { name, agent, lane, axis: { totalMs: Math.max(1, durationMs), cells } };
}

/** Names with the branches of the tree before them. */
function labelsOf(rows: readonly TimelineRow[], unicode: boolean): string[] {
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
    labels.push(shortTree(tree, unicode) + printable(stepName(row), unicode));
  }
  return labels.reverse();
}

/** Deep nesting must leave room for the name. */
function shortTree(tree: string, unicode: boolean): string {
  const TREE_CELLS_MAX = 10;
  return tree.length <= TREE_CELLS_MAX ? tree : (unicode ? "…" : "~") + tree.slice(1 - TREE_CELLS_MAX);
}

type Ink = "void" | "wait" | "tried" | "work" | "asked" | Outcome;

interface BarParts {
  readonly axis: Axis;
  /** The cells with a tick. */
  readonly grid: ReadonlySet<number>;
  readonly drawing: Drawing;
  /** The cells with a conflict. */
  readonly marks: ReadonlyMap<number, TimelineConflict> | undefined;
  /** The cells where people were asked. */
  readonly asked: ReadonlySet<number> | undefined;
}

function barRow(row: TimelineRow, parts: BarParts): string {
  const { paint } = parts.drawing;
  const cells = cellsFor(row, parts);
  let line = "";
  for (let from = 0; from < cells.length;) {
    const ink = cells[from]?.ink ?? "void";
    let to = from;
    while (to < cells.length && cells[to]?.ink === ink) to += 1;
    const text = cells.slice(from, to).reduce((joined, cell) => joined + cell.text, "");
    line += inked(ink, text, { row, paint });
    from = to;
  }
  return line;
}

interface Cell {
  readonly ink: Ink;
  readonly text: string;
}

/** Questions and conflicts stand on top of everything. */
function cellsFor(row: TimelineRow, { axis, grid, drawing, marks, asked }: BarParts): readonly Cell[] {
  const { unicode } = drawing.terminal;
  const cells = Array.from({ length: axis.cells }, (_, cell): Cell => {
    return { ink: "void", text: grid.has(cell) ? (unicode ? "┊" : ":") : " " };
  });
  for (const { ink, cell, text } of inksOf(row, axis, unicode))
    for (let offset = 0; offset < text.length; offset += 1)
      cells[cell + offset] = { ink, text: text.charAt(offset) };
  for (const cell of asked ?? []) cells[cell] = { ink: "asked", text: QUESTION_SIGN };
  for (const [cell, { outcome }] of marks ?? []) cells[cell] = { ink: outcome, text: conflictSign(unicode) };
  return cells;
}

function inked(
  ink: Ink,
  text: string,
  { row, paint }: { readonly row: TimelineRow; readonly paint: Paint },
): string {
  if (ink === "work") return paint.lane(row.lane, text);
  if (ink === "void" || ink === "wait") return paint.tone("faint", text);
  return paint.tone(ink === "tried" || ink === "asked" ? "warning" : OUTCOME_TONES[ink], text);
}

interface Stroke {
  readonly ink: Ink;
  readonly cell: number;
  readonly text: string;
}

/** Attempts that came to nothing, then the newest one. */
function inksOf(row: TimelineRow, axis: Axis, unicode: boolean): Stroke[] {
  const { startMs, durationMs, status } = row;
  const earlier = (row.earlier ?? []).map((span) => triedStroke(span, axis, unicode));
  const toMs = startMs + durationMs;
  if (row.carriedFrom !== undefined) return [];
  switch (status) {
    case "skipped":
      return [];
    case "waiting":
    case "dispatched":
      return [...earlier, thin({ fromMs: startMs, toMs }, axis, unicode)];
    case "backoff":
    case "blocked":
      return [
        ...earlier,
        thin({ fromMs: toMs, toMs: axis.totalMs }, axis, unicode),
        triedStroke(row, axis, unicode),
      ];
    case "held":
      return [
        ...earlier,
        thin({ fromMs: toMs, toMs: axis.totalMs }, axis, unicode),
        ...workStrokes(row, axis, unicode),
      ];
    default:
      return [...earlier, ...workStrokes(row, axis, unicode)];
  }
}

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

function thin(span: Span, axis: Axis, unicode: boolean): Stroke {
  const { cell, text } = barOf(span, axis, unicode);
  return { ink: "wait", cell, text: (unicode ? "┄" : ".").repeat(text.length) };
}

function triedStroke(
  { startMs, durationMs }: Pick<TimelineRow, "startMs" | "durationMs">,
  axis: Axis,
  unicode: boolean,
): Stroke {
  const { cell, text } = barOf({ fromMs: startMs, toMs: startMs + durationMs }, axis, unicode);
  return { ink: "tried", cell, text: triedSign(unicode).repeat(text.length) };
}

function triedSign(unicode: boolean): string {
  return unicode ? "▒" : "#";
}

/** Thin while the host has not confirmed the child, and while its result was held; fading where the end is not known yet. */
function workStrokes(row: TimelineRow, axis: Axis, unicode: boolean): Stroke[] {
  const { startMs, durationMs, acknowledgedMs = startMs, status } = row;
  const toMs = startMs + durationMs;
  const solid = barOf({ fromMs: acknowledgedMs, toMs: row.heldMs ?? toMs }, axis, unicode);
  const text = status === "running" ? fading(solid.text, unicode) : solid.text;
  return [thin({ fromMs: startMs, toMs }, axis, unicode), { ink: "work", cell: solid.cell, text }];
}

function fading(bar: string, unicode: boolean): string {
  const tail = unicode ? "▓▒░" : ">";
  return bar.length > tail.length ? bar.slice(0, -tail.length) + tail : tail.slice(-bar.length);
}

const WAITS_MAX = 10;

/** Which steps wait for a time or for people, and what people can do. Commands are never cut. */
function waitsOf({ timeline, program }: TimelinePicture, { terminal, paint, columns }: Drawing): string[] {
  const { unicode } = terminal;
  const waiting = timeline.rows.filter(
    ({ retryAtMs, answerByMs }) => retryAtMs !== undefined || answerByMs !== undefined,
  );
  if (waiting.length === 0) return [];
  const lines = waiting.slice(0, WAITS_MAX).flatMap((row) => {
    const line = `${printable(stepName(row), unicode)}: ${waitText(row)}`;
    const said = `${paint.stepSign(row.status)} ${shorten(line, columns - 2, unicode)}`;
    if (row.answerByMs === undefined) return [said];
    const words = [timeline.coordinationId, row.stepId].map((word) => printable(shellWord(word), unicode));
    return [said, ...wrap([`  ${program} retry`, ...words], " ", columns)];
  });
  const more = waiting.length > WAITS_MAX ? [`  and ${waiting.length - WAITS_MAX} more`] : [];
  return [...lines, ...more, ""];
}

function waitText({ attempt, retryAtMs, answerByMs }: TimelineRow): string {
  if (retryAtMs !== undefined) return `attempt ${attempt + 1} at ${formatInstant(retryAtMs)}`;
  return answerByMs === undefined
    ? ""
    : `waits for people until ${formatInstant(answerByMs)}; try it again with`;
}

/** As it is typed into a shell. */
function shellWord(word: string): string {
  return /^[\w.:@/-]+$/u.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function triedText(rows: readonly TimelineRow[]): string {
  const isRevised = rows.some(({ earlier = [] }) => earlier.some(({ status }) => status === "revised"));
  return isRevised ? "failed or revised attempt" : "failed attempt";
}

function legend(
  { rows, conflicts = [], questions = [] }: Timeline,
  { terminal, paint, columns }: Drawing,
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
  const asked = isAsked ? [`${QUESTION_SIGN} people asked`] : [];
  const isTried = rows.some((row) => row.earlier || row.status === "backoff" || row.status === "blocked");
  const tried = isTried ? [`${paint.tone("warning", triedSign(terminal.unicode))} ${triedText(rows)}`] : [];
  const clash = conflicts.length > 0 ? [`${conflictSign(terminal.unicode)} conflict`] : [];
  const parts = [`lanes  ${lanes.join("  ")}`, [...statuses, ...tried, ...asked, ...clash].join("  ")];
  const shown = parts.filter((part) => part !== "");
  const oneLine = shown.join("     ");
  return cellsOf(stripVTControlCharacters(oneLine)) <= columns && columns >= COLUMNS.narrow
    ? oneLine
    : shown.flatMap((part) => wrap(part.split("  "), "  ", columns)).join("\n");
}
