/** Owns: what a ledger holds and what of it is open, counted. */
import type { Summary } from "../../agents/coordination/contracts/coordination-summary.ts";
import {
  MISMATCHES_NAME,
  REFUSED_CALLS_NAME,
} from "../../agents/coordination/contracts/coordination-summary.ts";
import type { CoordinationId } from "../../agents/coordination/contracts/ids.ts";
import { readCoordinationView } from "../../agents/coordination/runtime/log/coordination-view.ts";
import { listRuns } from "../../agents/coordination/runtime/log/read-pages.ts";
import { readUnlessDamaged } from "../../agents/coordination/runtime/log/read-state.ts";
import type { ReportedLedger } from "./reported-ledger.ts";
import { findNewestConflicts } from "./find-conflicts.ts";
import { createQuestionReads, findNewestQuestions, OPEN_QUESTIONS_MAX } from "./find-questions.ts";
import { listGateways, type GatewayLoad } from "./gateway-report.ts";
import { findNewestProgress, type FoundProgress } from "./progress-report.ts";
import { countRefusedToolCalls } from "./list-refused-calls.ts";

/** The content of a ledger, and the open part of it, as `status --json` has them. */
export interface ContentsCounts {
  readonly coordinations: number;
  readonly running: number;
  readonly openSteps: number;
  readonly openConflicts: number;
  readonly openQuestions: number;
  /** Coordinations with children that did not run as they were asked. */
  readonly mismatches: number;
  /** Calls that privileges refused in coordinations that run. */
  readonly refusedCalls: number;
}

/** So many agents at work are named, those that told their progress most recently. */
const PROGRESS_MAX = 5;

export interface ContentsReport extends ContentsCounts {
  /** Usage of the running coordinations up to now. */
  readonly runningUsage?: NonNullable<Summary["usage"]>;
  /** The most urgent deadline of the open questions. */
  readonly answerByMs?: number;
  /** Absent where no agent at work says how far it is. */
  readonly progress?: readonly FoundProgress[];
  /** Where several gateways share the ledger. */
  readonly gateways?: readonly GatewayLoad[];
}

/** Beyond that it is enough to know that there are many. */
const CONFLICTS_MAX = 1_000;
const MISMATCHES_MAX = 1_000;

/**
 * Counts what a ledger holds and what of it is open, with progress and gateways; conflicts and questions count up to a
 * bound, without those in damaged logs. @throws CoordinationError as `LedgerStore.list`
 */
export async function countLedgerContents(reader: ReportedLedger): Promise<ContentsReport> {
  const { coordinations } = await reader.counts();
  let running = 0;
  let openSteps = 0;
  const runIds = new Set<CoordinationId>();
  const runningUsage = { tokens: 0, costMicroUsd: 0 };
  for await (const { runId, summary } of listRuns(reader, { status: "running" })) {
    running += 1;
    runIds.add(runId);
    openSteps += summary.steps.open;
    runningUsage.tokens += summary.usage?.tokens ?? 0;
    runningUsage.costMicroUsd += summary.usage?.costMicroUsd ?? 0;
  }
  const { conflicts } = await findNewestConflicts(reader, { limit: CONFLICTS_MAX, isOpen: true });
  const questions = await countOpenQuestions(reader);
  const progress = running > 0 ? await findNewestProgress(reader, PROGRESS_MAX) : [];
  const mismatches = (await reader.holders(MISMATCHES_NAME, MISMATCHES_MAX)).length;
  const refusedCalls = await countRefusedOfRunning(reader, runIds);
  const gateways = await listGateways(reader, [...runIds]);
  const counts = {
    coordinations,
    running,
    openSteps,
    openConflicts: conflicts.length,
    mismatches,
    refusedCalls,
  };
  return {
    ...counts,
    ...questions,
    ...(progress.length > 0 && { progress }),
    ...(runningUsage.tokens > 0 && { runningUsage }),
    ...(gateways.length > 0 && { gateways }),
  };
}

/** Coordinations that are looked into for refused calls. */
const REFUSING_MAX = 1_000;

/** Counts refused calls of running coordinations; only those that have some are read. */
async function countRefusedOfRunning(
  reader: ReportedLedger,
  running: ReadonlySet<CoordinationId>,
): Promise<number> {
  if (running.size === 0) return 0;
  const holders = await reader.holders(REFUSED_CALLS_NAME, REFUSING_MAX);
  let count = 0;
  for (const runId of holders.filter((holder) => running.has(holder))) {
    const view = await readUnlessDamaged(() => readCoordinationView(reader, runId));
    count += view ? countRefusedToolCalls(view.steps) : 0;
  }
  return count;
}

/**
 * Counts the open questions, at most `OPEN_QUESTIONS_MAX`, and finds the first time by which one has to be answered.
 */
async function countOpenQuestions(
  reader: ReportedLedger,
): Promise<{ readonly openQuestions: number; readonly answerByMs?: number }> {
  const { questions: open } = await findNewestQuestions(createQuestionReads(reader), {
    wanted: "open",
    limit: OPEN_QUESTIONS_MAX,
  });
  const openQuestions = open.length;
  if (openQuestions === 0) return { openQuestions };
  const answerByMs = open.reduce(
    (least, { question }) => Math.min(least, question.deadlineAtMs),
    Number.POSITIVE_INFINITY,
  );
  return { openQuestions, answerByMs };
}
