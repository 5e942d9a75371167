/** Owns: how what agents say of their progress reads, and finding the newest of all coordinations. */
import type { CoordinationId, StepId } from "../../../agents/coordination/contracts/ids.ts";
import {
  readCoordination,
  type CoordinationView,
  type ProgressView,
  type StepView,
} from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { readProgressLines } from "../../../agents/coordination/runtime/log/read-progress.ts";
import { listRuns } from "../../../agents/coordination/runtime/log/read-pages.ts";
import { formatDuration } from "../../../agents/coordination/std/quantities.ts";
import type { LedgerReader } from "../../compose.ts";

/** What an agent says, as the commands print it with `--json`. */
export interface ProgressReport extends Pick<ProgressView, "percent" | "atMs" | "lineWithheld"> {
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

/** Reads what the agents at work of a coordination say of how far they are. @throws CoordinationError as `getMany` */
export async function readProgressReports(
  reader: Pick<LedgerReader, "getMany">,
  view: Pick<CoordinationView, "steps">,
): Promise<ProgressByStep> {
  const lines = await readProgressLines(reader, view);
  return new Map(
    view.steps.flatMap(({ stepId, progress }) =>
      progress ? [[stepId, createProgressReport(progress, lines.get(stepId))] as const] : [],
    ),
  );
}

/** Describes progress like `40%, checking the links (3.0s ago)`. */
export function describeProgress({ percent, line, lineWithheld, atMs }: ProgressReport, now: number): string {
  const words = line ?? (lineWithheld ? "(withheld)" : "(not kept any more)");
  const share = percent === undefined ? "" : `${percent}%, `;
  return `${share}${words} (${formatDuration(Math.max(0, now - atMs))} ago)`;
}

export interface FoundProgress extends Pick<StepView, "stepId" | "name"> {
  readonly coordinationId: CoordinationId;
  readonly progress: ProgressReport;
}

/** Running coordinations that are looked into, the newest first. */
const LOOKED_MAX = 50;

/** Finds what agents at work said last of how far they are, the newest first. */
export async function findNewestProgress(reader: LedgerReader, limit: number): Promise<FoundProgress[]> {
  const found: FoundProgress[] = [];
  let looked = 0;
  for await (const { runId } of listRuns(reader, { status: "running" })) {
    const view = await readCoordination(reader, runId);
    const reports = view && (await readProgressReports(reader, view));
    for (const { stepId, name } of view?.steps ?? []) {
      const progress = reports?.get(stepId);
      if (progress)
        found.push({ coordinationId: runId, stepId, ...(name !== undefined && { name }), progress });
    }
    looked += 1;
    if (looked === LOOKED_MAX) break;
  }
  return found.toSorted((a, b) => b.progress.atMs - a.progress.atMs).slice(0, limit);
}
