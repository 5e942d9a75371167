/** Owns: what happened to a step, as spans and moments on the time axis. Not: how they look. */
import type {
  Timeline,
  TimelineConflict,
  TimelineQuestion,
  TimelineRow,
  TimelineVerdict,
} from "../../reports/timeline.ts";
import { describeShownResource } from "../../reports/shown-resource.ts";
import { formatDuration } from "../../../agents/coordination/std/quantities.ts";
import { formatVisibleLine } from "./visible-text.ts";

export type SpanKind = "waits" | "queue" | "begins" | "work" | "tried" | "backoff" | "held" | "asked";
export type MomentKind = "conflict" | "question" | "refused" | "passed" | "failed";

/** A stretch of time of one step. */
export interface RowSpan {
  readonly kind: SpanKind;
  readonly fromMs: number;
  readonly toMs: number;
  readonly label: string;
}

/** An event of one step that is marked in its row. */
export interface RowMoment {
  readonly kind: MomentKind;
  readonly atMs: number;
  readonly label: string;
}

export interface RowMarks {
  readonly row: TimelineRow;
  readonly name: string;
  readonly spans: readonly RowSpan[];
  readonly moments: readonly RowMoment[];
}

/** When each step was admitted, which the rows of a timeline do not say. */
export interface AdmittedStep {
  readonly stepId: string;
  readonly admittedAtMs: number;
}

/**
 * Returns the rows of a timeline in their order, each with the spans of waiting, work and questions and the moments
 * that are drawn on it.
 */
export function markTimelineRows(timeline: Timeline, steps: readonly AdmittedStep[]): RowMarks[] {
  const rows = new Map<string, TimelineRow>(timeline.rows.map((row) => [row.stepId, row]));
  const admitted = new Map(steps.map((step) => [step.stepId, step.admittedAtMs - timeline.startedAtMs]));
  const moments = groupMomentsByStep(timeline);
  const questions = Map.groupBy(timeline.questions ?? [], ({ stepId }) => stepId as string | undefined);
  return timeline.rows.map((row) => ({
    row,
    name: formatVisibleLine(row.name ?? row.stepId, 120),
    spans: [
      ...listWaitsBeforeStart(row, { admittedMs: admitted.get(row.stepId), rows }),
      ...listAttemptSpans(row, timeline.durationMs),
      ...(questions.get(row.stepId) ?? []).map(({ askedMs, closedMs = timeline.durationMs }) =>
        createSpan("asked", askedMs, closedMs, "people are asked"),
      ),
    ],
    moments: moments.get(row.stepId) ?? [],
  }));
}

function createSpan(kind: SpanKind, fromMs: number, toMs: number, words: string): RowSpan {
  const end = Math.max(fromMs, toMs);
  return { kind, fromMs, toMs: end, label: `${words}, ${formatDuration(end - fromMs)}` };
}

/** The other rows of a row's timeline, and when its step was admitted. */
interface RowSurroundings {
  readonly admittedMs: number | undefined;
  readonly rows: ReadonlyMap<string, TimelineRow>;
}

/** Lists the waits before the first attempt: for the steps that it depends on, then for a place in its lane. */
function listWaitsBeforeStart(row: TimelineRow, { admittedMs, rows }: RowSurroundings): RowSpan[] {
  const firstMs = row.earlier?.[0]?.startMs ?? row.startMs;
  if (admittedMs === undefined || row.carriedFrom !== undefined) return [];
  const isWaiting = row.status === "waiting";
  const untilMs = isWaiting ? row.startMs + row.durationMs : firstMs;
  const readyMs = Math.min(
    untilMs,
    Math.max(admittedMs, ...(row.dependsOn ?? []).map((id) => findRowEndMs(rows.get(id)))),
  );
  return [
    createSpan("waits", admittedMs, readyMs, "waits for other steps"),
    createSpan("queue", readyMs, untilMs, "waits for a place in its lane"),
  ].filter(({ fromMs, toMs }) => toMs > fromMs);
}

/** Returns when a row ended, in ms from the start of the timeline: infinity while it is open, 0 without a row. */
function findRowEndMs(row: TimelineRow | undefined): number {
  if (!row) return 0;
  const isOpen = OPEN.has(row.status);
  return isOpen ? Number.POSITIVE_INFINITY : row.startMs + row.durationMs;
}

const OPEN: ReadonlySet<TimelineRow["status"]> = new Set([
  "waiting",
  "dispatched",
  "running",
  "backoff",
  "held",
  "blocked",
] as const);

/** True of a timeline's row whose step has not ended. */
export function isOpenTimelineRow({ status }: TimelineRow): boolean {
  return OPEN.has(status);
}

/**
 * Lists the spans of all attempts and of the pauses between them; none for steps that are carried, skipped or waiting.
 */
function listAttemptSpans(row: TimelineRow, totalMs: number): RowSpan[] {
  const { status, startMs, durationMs, earlier = [], attempt } = row;
  if (row.carriedFrom !== undefined || status === "skipped" || status === "waiting") return [];
  const tries = earlier.map((each) =>
    createSpan(
      "tried",
      each.startMs,
      each.startMs + each.durationMs,
      `attempt ${each.attempt}: ${separateWords(each.status)}`,
    ),
  );
  const starts = [...earlier.slice(1).map((each) => each.startMs), startMs];
  const pauses = tries.map((each, index) =>
    createSpan("backoff", each.toMs, starts[index] ?? startMs, "waits before the next attempt"),
  );
  const endMs = startMs + durationMs;
  if (status === "backoff" || status === "blocked")
    return [
      ...tries,
      ...pauses,
      createSpan("tried", startMs, endMs, `attempt ${attempt}`),
      createSpan(
        "backoff",
        endMs,
        totalMs,
        status === "blocked" ? "waits for people" : "waits before the next attempt",
      ),
    ];
  return [...tries, ...pauses, ...listNewestAttemptSpans(row, totalMs)].filter(
    ({ fromMs, toMs, kind }) => kind !== "backoff" || toMs > fromMs,
  );
}

/** Lists the spans of the newest attempt: its start by the host, its work, and the time its result is held. */
function listNewestAttemptSpans(row: TimelineRow, totalMs: number): RowSpan[] {
  const { status, startMs, durationMs, acknowledgedMs, heldMs, attempt } = row;
  const endMs = startMs + durationMs;
  const beganMs = acknowledgedMs ?? (status === "dispatched" ? endMs : startMs);
  const workedMs = heldMs ?? endMs;
  return [
    ...(beganMs > startMs ? [createSpan("begins", startMs, beganMs, "is started by the host")] : []),
    ...(status === "dispatched" ? [] : [createSpan("work", beganMs, workedMs, `attempt ${attempt} at work`)]),
    ...(heldMs === undefined
      ? []
      : [createSpan("held", heldMs, status === "held" ? Math.max(endMs, totalMs) : endMs, "result is held")]),
  ];
}

function groupMomentsByStep(timeline: Timeline): Map<string, RowMoment[]> {
  const { conflicts = [], questions = [], verdicts = [], refusedCalls = [] } = timeline;
  const moments = [
    ...conflicts.map(createConflictMoment),
    ...questions.map(createQuestionMoment),
    ...verdicts.map(createVerdictMoment),
    ...refusedCalls.map(({ stepId, refusedMs }): PlacedMoment => ({
      stepId,
      kind: "refused",
      atMs: refusedMs,
      label: "a call that its privileges do not allow",
    })),
  ];
  return Map.groupBy(
    moments.filter(({ stepId }) => stepId !== undefined),
    ({ stepId = "" }) => stepId,
  );
}

interface PlacedMoment extends RowMoment {
  /** Absent where it is of no step. */
  readonly stepId: string | undefined;
}

function createConflictMoment({ stepId, detectedMs, resource, outcome }: TimelineConflict): PlacedMoment {
  const label = `conflict over ${formatVisibleLine(describeShownResource(resource), 120)}: ${separateWords(outcome)}`;
  return { stepId, kind: "conflict", atMs: detectedMs, label };
}

function createQuestionMoment({ stepId, askedMs, cause, resolution }: TimelineQuestion): PlacedMoment {
  const state = resolution === undefined ? ", open" : `: ${separateWords(resolution)}`;
  return { stepId, kind: "question", atMs: askedMs, label: `question (${separateWords(cause)})${state}` };
}

function createVerdictMoment({ stepId, ruledMs, check, verdict }: TimelineVerdict): PlacedMoment {
  const kind = verdict === "pass" ? "passed" : "failed";
  return { stepId, kind, atMs: ruledMs, label: `check ${formatVisibleLine(check, 60)}: ${verdict}` };
}

/** Returns an identifier as people read it, with spaces for underscores and hyphens: `timed_out` as `timed out`. */
export function separateWords(word: string): string {
  return word.replaceAll(/[_-]/gu, " ");
}
