/** Owns: a coordination as rows on one time axis, children behind their parents. Does not own: how it is drawn. */
import type {
  CoordinationView,
  QuestionView,
  StepOutline,
  StepView,
} from "../../agents/coordination/runtime/log/coordination-view.ts";
import type { CoordinationId, EpochMs, StepId } from "../../agents/coordination/contracts/ids.ts";
import type { PastAttempt, PastAttempts } from "./attempts.ts";
import { createProgressField, type ProgressByStep, type ProgressReport } from "./progress-report.ts";
import type { ChangeLog, ConflictRecord, ConflictResolution } from "./conflict-log.ts";
import { classifyOutcome, type ConflictOutcome } from "./conflict-outcome.ts";
import { listTimelineRefusals, type TimelineRefusal } from "./list-refused-calls.ts";
import type { GatewayReport } from "./gateway-report.ts";
import type { GateLog, RevisionRecord } from "./gate-log.ts";

export interface TimelineRow extends StepOutline {
  /** 0 for a step of the owner, 1 for a step of such a step's child, and so on. */
  readonly depth: number;
  /** The attempts before the newest one. */
  readonly earlier?: readonly EarlierAttempt[];
  /** The start of the newest attempt, from that of the coordination, as are all `...Ms` but durations and `...AtMs`, `...ByMs`. */
  readonly startMs: number;
  /** When the host confirmed the child, where that is known. */
  readonly acknowledgedMs?: number;
  /** The duration; until now for an open step. */
  readonly durationMs: number;
  /** From when on the result of the newest attempt was held, where it was. */
  readonly heldMs?: number;
  /** The question that people were asked about the held result. */
  readonly escalationId?: string;
  /** How far its agent says it is, while it is at work. */
  readonly progress?: ProgressReport;
}

interface EarlierAttempt {
  readonly attempt: number;
  /** `revised`: its result went back to its agent. */
  readonly status: PastAttempt["status"] | "revised";
  readonly startMs: number;
  readonly durationMs: number;
}

export interface TimelineConflict {
  readonly conflictId: string;
  /** Who asked; absent where it was recorded before arbitration. */
  readonly stepId?: StepId;
  readonly resource: string;
  readonly detectedMs: number;
  /** The outcome for who asked. */
  readonly outcome: ConflictOutcome;
  readonly winner?: StepId;
  readonly winnerCoordinationId?: CoordinationId;
  readonly because?: string;
}

export interface TimelineQuestion {
  readonly escalationId: string;
  readonly stepId?: StepId;
  readonly cause: QuestionView["cause"];
  readonly deadlineAtMs: EpochMs;
  readonly askedMs: number;
  /** Absent while it is open. */
  readonly closedMs?: number;
  readonly resolution?: NonNullable<QuestionView["closed"]>["resolution"];
}

/** The verdict of a check on a held result, or why there is none. */
export interface TimelineVerdict {
  readonly stepId: StepId;
  readonly attempt: number;
  readonly check: string;
  readonly ruledMs: number;
  readonly verdict: "pass" | "fail" | "revise" | "none";
}

export interface Timeline {
  readonly coordinationId: CoordinationId;
  readonly status: CoordinationView["status"];
  readonly forkedFrom?: NonNullable<CoordinationView["forkedFrom"]>;
  readonly startedAtMs: EpochMs;
  readonly endedAtMs?: EpochMs;
  readonly durationMs: number;
  readonly rows: readonly TimelineRow[];
  /** In the order of the log; absent where there are none. */
  readonly conflicts?: readonly TimelineConflict[];
  /** As `conflicts`. */
  readonly questions?: readonly TimelineQuestion[];
  readonly verdicts?: readonly TimelineVerdict[];
  /** Calls that privileges refused. */
  readonly refusedCalls?: readonly TimelineRefusal[];
  readonly gaveUp?: true;
  /** Usage of all sessions' model calls together. */
  readonly usage?: NonNullable<CoordinationView["usage"]>;
  /** Where several gateways share the ledger. */
  readonly gateway?: GatewayReport;
}

/** The past of a coordination, which its view does not show. */
interface TimelinePast {
  readonly attempts: PastAttempts;
  readonly log?: ChangeLog;
  readonly gates: GateLog;
  readonly progress: ProgressByStep;
  readonly gateway?: GatewayReport;
}

/**
 * Returns the timeline of a coordination until its end or `now`: a row for each step in the order of the tree, with
 * conflicts, questions, verdicts and refusals from the logs that were read.
 */
export function createTimeline(view: CoordinationView, now: EpochMs, past: TimelinePast): Timeline {
  const { log, gates, gateway } = past;
  const revised = Map.groupBy(gates.revisions, ({ stepId }) => stepId);
  const { coordinationId, status, createdAtMs, endedAtMs } = view;
  const untilMs = endedAtMs ?? computeOpenEnd(view, now);
  const rows = sortInTreeOrder(view.steps).map(({ step, depth }) =>
    createTimelineRow(step, { depth, startedAtMs: createdAtMs, untilMs, past, revised }),
  );
  return {
    coordinationId,
    status,
    ...createOriginFields(view),
    startedAtMs: createdAtMs,
    ...(endedAtMs !== undefined && { endedAtMs }),
    durationMs: Math.max(0, untilMs - createdAtMs),
    rows,
    ...(log && { conflicts: log.conflicts.map((conflict) => createTimelineConflict(conflict, createdAtMs)) }),
    ...createQuestionFields(view, gates),
    ...(gates.verdicts.length > 0 && { verdicts: createTimelineVerdicts(gates, createdAtMs) }),
    ...createRefusalFields(view),
    ...createEndFields(view),
    ...(gateway && { gateway }),
  };
}

function createOriginFields({ forkedFrom }: CoordinationView): Partial<Timeline> {
  return forkedFrom ? { forkedFrom } : {};
}

function createEndFields({ gaveUp, usage }: CoordinationView): Partial<Timeline> {
  return { ...(gaveUp && { gaveUp }), ...(usage && { usage }) };
}

function createRefusalFields(view: CoordinationView): Partial<Timeline> {
  const refusedCalls = listTimelineRefusals(view);
  return refusedCalls.length > 0 ? { refusedCalls } : {};
}

function createQuestionFields(
  { escalations, createdAtMs }: CoordinationView,
  gates: GateLog,
): Partial<Timeline> {
  if (escalations.length === 0) return {};
  const measureSince = (atMs: number): number => Math.max(0, atMs - createdAtMs);
  const questions = escalations.map(({ escalationId, stepId, cause, deadlineAtMs, askedAtMs, closed }) => {
    const closedAtMs = gates.closedAtMs.get(escalationId);
    return {
      escalationId,
      cause,
      deadlineAtMs,
      askedMs: measureSince(askedAtMs),
      ...(stepId && { stepId }),
      ...(closedAtMs !== undefined && { closedMs: measureSince(closedAtMs) }),
      ...(closed && { resolution: closed.resolution }),
    };
  });
  return { questions };
}

function createTimelineVerdicts({ verdicts }: GateLog, startedAtMs: number): TimelineVerdict[] {
  return verdicts.map((each) => ({
    stepId: each.stepId,
    attempt: each.attempt,
    check: each.check,
    ruledMs: Math.max(0, each.atMs - startedAtMs),
    verdict: "verdict" in each ? each.verdict : "none",
  }));
}

function createTimelineConflict(conflict: ConflictRecord, startedAtMs: number): TimelineConflict {
  const { conflictId, contest, resource, detectedAtMs, resolution } = conflict;
  return {
    conflictId,
    ...(contest && { stepId: contest.requester }),
    resource,
    detectedMs: Math.max(0, detectedAtMs - startedAtMs),
    outcome: classifyOutcome(conflict),
    ...(resolution && createRulingFields(resolution)),
  };
}

function createRulingFields({
  winner,
  winnerCoordinationId,
  because,
}: ConflictResolution): Partial<TimelineConflict> {
  return {
    ...(winner && { winner }),
    ...(winnerCoordinationId && { winnerCoordinationId }),
    because,
  };
}

/** Returns until when an open coordination lasts: now, or its newest time, because a reader's clock may be behind. */
function computeOpenEnd({ steps, createdAtMs }: CoordinationView, now: EpochMs): number {
  return steps.reduce(
    (last, { admittedAtMs, endedAtMs }) => Math.max(last, endedAtMs ?? admittedAtMs),
    Math.max(now, createdAtMs),
  );
}

interface RowPlace {
  readonly depth: number;
  readonly startedAtMs: number;
  readonly untilMs: number;
  readonly past: TimelinePast;
  readonly revised: ReadonlyMap<StepId, readonly RevisionRecord[]>;
}

function createTimelineRow(
  step: StepView,
  { depth, startedAtMs, untilMs, past, revised }: RowPlace,
): TimelineRow {
  const { stepId, parentStepId, name, agentId, lane, status, attempt, acknowledgedAtMs } = step;
  const measureSince = (atMs: number): number => Math.max(0, atMs - startedAtMs);
  const beganAtMs = findStepBeginning(step);
  const ended = listEndedAttempts(step, past.attempts.get(stepId) ?? [], revised.get(stepId) ?? []);
  const earlier = ended.map((each) => createEarlierRow(each, measureSince));
  return {
    stepId,
    ...(parentStepId && { parentStepId }),
    depth,
    ...(name && { name }),
    agentId,
    lane,
    status,
    attempt,
    ...createSituationFields(step),
    ...(earlier.length > 0 && { earlier }),
    startMs: measureSince(beganAtMs),
    ...(acknowledgedAtMs !== undefined && { acknowledgedMs: measureSince(acknowledgedAtMs) }),
    durationMs: step.durationMs ?? Math.max(0, (step.endedAtMs ?? untilMs) - beganAtMs),
    ...createHeldFields(step, past.gates, measureSince),
    ...createProgressField(stepId, past.progress),
  };
}

/** Returns since when the newest attempt's result was held, and the question about what is held now. */
function createHeldFields(
  { stepId, attempt, held: heldView }: StepView,
  gates: GateLog,
  since: (atMs: number) => number,
): Partial<TimelineRow> {
  const newest = gates.held.get(stepId);
  return {
    ...(newest?.attempt === attempt && { heldMs: since(newest.atMs) }),
    ...(heldView?.escalationId !== undefined && { escalationId: heldView.escalationId }),
  };
}

/**
 * Returns when the newest attempt of a step was dispatched, or else the step admitted; for a skipped step without
 * attempt, which took no time, when it ended.
 */
function findStepBeginning({ status, admittedAtMs, dispatchedAtMs, endedAtMs }: StepView): EpochMs {
  return dispatchedAtMs ?? (status === "skipped" ? endedAtMs : undefined) ?? admittedAtMs;
}

/** Returns the fields of a row that say what its step waits for, and how its child ran. */
function createSituationFields(step: StepView): Partial<TimelineRow> {
  const { dependsOn = [], retryAtMs, answerByMs, carriedFrom, requested, ran, differences } = step;
  return {
    ...(dependsOn.length > 0 && { dependsOn }),
    ...(retryAtMs !== undefined && { retryAtMs }),
    ...(answerByMs !== undefined && { answerByMs }),
    ...(carriedFrom && { carriedFrom }),
    ...(requested && { requested }),
    ...(ran && { ran }),
    ...(differences && { differences }),
  };
}

interface EndedAttempt {
  readonly attempt: number;
  readonly status: EarlierAttempt["status"];
  readonly dispatchedAtMs: EpochMs;
  readonly endedAtMs: EpochMs;
}

/**
 * Lists the attempts before the newest one, in order. A revised result ended its attempt when it was held: what came
 * after was ruling on it.
 */
function listEndedAttempts(
  { attempt: newest }: StepView,
  failed: readonly PastAttempt[],
  revisions: readonly RevisionRecord[],
): EndedAttempt[] {
  const revised = revisions
    .filter(({ attempt }) => attempt < newest)
    .map(({ attempt, dispatchedAtMs, heldAtMs }): EndedAttempt => {
      return { attempt, status: "revised", dispatchedAtMs, endedAtMs: heldAtMs };
    });
  return [...failed, ...revised].toSorted((a, b) => a.attempt - b.attempt);
}

function createEarlierRow(
  { attempt, status, dispatchedAtMs, endedAtMs }: EndedAttempt,
  since: (atMs: number) => number,
): EarlierAttempt {
  const durationMs = Math.max(0, endedAtMs - dispatchedAtMs);
  return { attempt, status, startMs: since(dispatchedAtMs), durationMs };
}

/** A step, and how deep it is in the tree. */
interface PlacedStep {
  readonly step: StepView;
  readonly depth: number;
}

/** Sorts steps so that children stand behind their parents, and adds how deep each is nested. */
function sortInTreeOrder(steps: readonly StepView[]): PlacedStep[] {
  const knownIds = new Set(steps.map(({ stepId }) => stepId));
  const children = Map.groupBy(steps, ({ parentStepId }) =>
    parentStepId && knownIds.has(parentStepId) ? parentStepId : undefined,
  );
  const placed: PlacedStep[] = [];
  const pending: PlacedStep[] = (children.get(undefined) ?? []).map((step) => ({ step, depth: 0 })).reverse();
  for (let next = pending.pop(); next; next = pending.pop()) {
    placed.push(next);
    const { step, depth } = next;
    for (const child of (children.get(step.stepId) ?? []).toReversed())
      pending.push({ step: child, depth: depth + 1 });
  }
  return placed;
}
