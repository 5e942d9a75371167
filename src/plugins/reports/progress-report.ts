/** Owns: what agents say of how far they are, and finding the newest of all coordinations. Does not own: how it reads. */
import type { CoordinationId, EpochMs, StepId } from "../../agents/coordination/contracts/ids.ts";
import {
  readCoordinationView,
  type CoordinationView,
  type ProgressView,
} from "../../agents/coordination/runtime/log/coordination-view.ts";
import { readProgressLines } from "../../agents/coordination/runtime/log/read-progress.ts";
import { readUnlessDamaged } from "../../agents/coordination/runtime/log/read-state.ts";
import { listRuns } from "../../agents/coordination/runtime/log/read-pages.ts";
import type { ReportedLedger } from "./reported-ledger.ts";

/** An agent's progress, as the commands print it with `--json`. */
export interface ProgressReport {
  readonly percent?: number;
  readonly atMs: EpochMs;
  readonly lineWithheld?: true;
  /** Absent where it is withheld, or not kept any more. */
  readonly line?: string;
}

function createProgressReport(
  { percent, atMs, lineWithheld }: ProgressView,
  line: string | undefined,
): ProgressReport {
  return {
    ...(percent !== undefined && { percent }),
    ...(line !== undefined && { line }),
    ...(lineWithheld && { lineWithheld }),
    atMs,
  };
}

export type ProgressByStep = ReadonlyMap<StepId, ProgressReport>;

/**
 * Reads, by step, what the agents of a coordination last said of how far they are; steps of which nothing was said are
 * left out. @throws CoordinationError as `getMany`
 */
export async function readProgressReports(
  reader: ReportedLedger,
  view: CoordinationView,
): Promise<ProgressByStep> {
  const lines = await readProgressLines(reader, view);
  return new Map(
    view.steps.flatMap(({ stepId, progress }) =>
      progress ? [[stepId, createProgressReport(progress, lines.get(stepId))] as const] : [],
    ),
  );
}

/** Returns the field of a step's report with the progress that its agent told; an empty object where it told none. */
export function createProgressField(
  stepId: StepId,
  progress: ProgressByStep,
): { readonly progress?: ProgressReport } {
  const report = progress.get(stepId);
  return report ? { progress: report } : {};
}

export interface FoundProgress {
  readonly stepId: StepId;
  readonly name?: string;
  readonly coordinationId: CoordinationId;
  readonly progress: ProgressReport;
}

/** Running coordinations that are looked into, the newest first. */
const LOOKED_MAX = 50;

/**
 * Reads what agents of running coordinations last said of how far they are, the newest first; looks at a bounded
 * number of coordinations, and leaves damaged logs out.
 */
export async function findNewestProgress(reader: ReportedLedger, limit: number): Promise<FoundProgress[]> {
  const foundProgress: FoundProgress[] = [];
  let looked = 0;
  for await (const { runId } of listRuns(reader, { status: "running" })) {
    const view = await readUnlessDamaged(() => readCoordinationView(reader, runId));
    const reports = view && (await readProgressReports(reader, view));
    for (const { stepId, name } of view?.steps ?? []) {
      const progress = reports?.get(stepId);
      if (progress)
        foundProgress.push({ coordinationId: runId, stepId, ...(name !== undefined && { name }), progress });
    }
    looked += 1;
    if (looked === LOOKED_MAX) break;
  }
  return foundProgress.toSorted((a, b) => b.progress.atMs - a.progress.atMs).slice(0, limit);
}
