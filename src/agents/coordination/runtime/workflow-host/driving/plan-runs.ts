/** Owns: what one turn of a run comes to, on its newest state: the events to append, with what is written beside them. */
import { isCoordinationError } from "../../../contracts/errors.ts";
import type { WorkflowDraft, WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import type { WorkspaceWrite } from "../../../ports/workspace-store.ts";
import { draftEffectOutcome } from "../../../workflow/workflow-commands.ts";
import { draftForkGoingLive } from "../../../workflow/go-live.ts";
import type { EffectOutcome, NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import { advanceRun, type RunProgress } from "../../../workflow/advance-run.ts";
import { computeRunStatus, summarizeRun } from "../../../workflow/state/run-view.ts";
import { isAtFork } from "../../../workflow/state/workflow-state.ts";
import { maskValue } from "../records/mask-secrets.ts";
import { createMemoryWrites } from "../records/memory-writes.ts";
import type { EpochMs } from "../../../contracts/ids.ts";
import type { WorkflowSummary } from "../../../contracts/workflows/workflow-summary.ts";
import type { LoadedRun } from "../records/run-book.ts";
import { createLostRunError } from "../../ownership/own-runs.ts";
import type { TenantUsage } from "../records/tenant-usage.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";
import { createWorkspaceWrites } from "../records/run-workspace.ts";

export interface PlanDependencies extends Pick<
  WorkflowHostDependencies,
  "store" | "clock" | "logger" | "settings" | "owner" | "secrets" | "sha256"
> {
  readonly usage: TenantUsage;
}

/** The planned progress of a run, with its writes to the workspace. */
export type PlannedProgress = RunProgress & { readonly workspace?: readonly WorkspaceWrite[] };

/**
 * Returns the run after the drafts and what follows from them in one call of `advanceRun`, with the events, memory and
 * effects of that. Appends and performs nothing.
 */
export function planTurn(
  { settings, clock, owner }: PlanDependencies,
  { run, graph }: LoadedRun,
  drafts: readonly WorkflowDraft[] = [],
): PlannedProgress {
  const before = draftForkGoingLive(run, { graph, settings }, owner.id);
  return advanceRun(run, { graph, settings, now: clock.now() }, [...before, ...drafts]);
}

/** Returns the plan with the event that begins a run before its other events, so that all are in one append. */
export function addFirstEvent(first: WorkflowEvent, planned: PlannedProgress): PlannedProgress {
  return { ...planned, events: [first, ...planned.events] };
}

/**
 * Returns what the outcomes of an effect, with secrets masked, make of a run one after the other: events, memory,
 * files and effects. Appends nothing.
 */
export function planOutcomes(
  dependencies: PlanDependencies,
  loadedRun: LoadedRun,
  { effect, outcomes }: { readonly effect: NodeEffect; readonly outcomes: readonly EffectOutcome[] },
): PlannedProgress {
  let planned: PlannedProgress = { run: loadedRun.run, events: [], memory: [], effects: [] };
  // SR-1: neither what it writes nor what it is told by models, tools and peers brings a secret into the log.
  for (const outcome of maskValue(outcomes, dependencies.secrets)) {
    const now = { ...loadedRun, run: planned.run };
    const place = { graph: loadedRun.graph, settings: dependencies.settings, now: dependencies.clock.now() };
    const next = planTurn(dependencies, now, draftEffectOutcome(now.run, place, { effect, outcome }));
    planned = {
      ...next,
      events: [...planned.events, ...next.events],
      memory: [...planned.memory, ...next.memory],
      workspace: [...(planned.workspace ?? []), ...createWorkspaceWrites(effect, outcome, next.events)],
    };
  }
  return planned;
}

/**
 * Returns the plan by which a run goes on after nobody drove it; the time since `awaySinceMs`, at the earliest, does
 * not count for its time limit.
 */
export function planResumption(
  dependencies: PlanDependencies,
  loadedRun: LoadedRun,
  awaySinceMs: EpochMs,
): PlannedProgress {
  return planTurn(dependencies, loadedRun, draftResumption(dependencies, loadedRun, awaySinceMs));
}

/** Drafts `run.resuming`, but nothing for a run that would do nothing: one that waits for people goes on waiting. */
function draftResumption(
  dependencies: PlanDependencies,
  loadedRun: LoadedRun,
  awaySinceMs: EpochMs,
): readonly WorkflowDraft[] {
  const { run } = loadedRun;
  // A fork that goes live tells of it by itself.
  if (isAtFork(run)) return [];
  const planned = planTurn(dependencies, loadedRun);
  if (planned.events.length === 0 && planned.effects.length === 0) return [];
  const payload = {
    process: dependencies.owner.id,
    fromStatus: computeRunStatus(run),
    awayMs: Math.max(0, dependencies.clock.now() - Math.max(awaySinceMs, findDueMs(dependencies, loadedRun))),
  };
  return [{ type: "run.resuming", payload }];
}

/** Returns when the run had something to do: behind its last event, or at the end of its delay. */
function findDueMs({ settings }: PlanDependencies, { run, graph }: LoadedRun): EpochMs {
  const { changedAtMs } = run;
  const { events, effects, wakeAtMs } = advanceRun(run, { graph, settings, now: changedAtMs });
  return events.length === 0 && effects.length === 0 ? (wakeAtMs ?? changedAtMs) : changedAtMs;
}

/**
 * Appends a plan's events to the run's log, with its summary, memory and files in the same append, and notes the
 * tenant's usage. @throws CoordinationError `NOT_OWNER` and what `append` throws
 */
export async function appendPlanned(
  dependencies: PlanDependencies,
  { run, events, memory, effects, wakeAtMs, workspace = [] }: PlannedProgress,
  token: number | undefined,
): Promise<void> {
  const { store, logger, owner } = dependencies;
  const writes = createMemoryWrites(dependencies, run, memory);
  const summary = summarizeProgress(dependencies, { run, effects, wakeAtMs });
  const { runId, origin } = run;
  if (token === undefined) throw createLostRunError(runId);
  await store.append({
    runId,
    events,
    summary,
    owner: { id: owner.id, token },
    ...(origin && events[0]?.sequence === 0 && { origin }),
    ...(writes.length > 0 && { memory: writes }),
    ...(workspace.length > 0 && { workspace }),
  });
  dependencies.usage.note(runId, summary);
  const last = events.at(-1);
  logger.debug(
    { runId: run.runId, sequence: last?.sequence, type: last?.type, events: events.length },
    "appended",
  );
}

interface AppendedProgress extends Pick<PlannedProgress, "run" | "effects"> {
  readonly wakeAtMs: EpochMs | undefined;
}

/** Returns the run's summary, with what others need to know of the run without reading it. */
function summarizeProgress(
  { owner, usage }: PlanDependencies,
  { run, effects, wakeAtMs }: AppendedProgress,
): WorkflowSummary {
  const root = usage.rootOf(run.runId);
  return {
    ...summarizeRun(run, owner.id),
    chars: run.chars,
    ...(root && { root }),
    ...(effects.length === 0 && wakeAtMs !== undefined && { wakesAtMs: wakeAtMs }),
  };
}

/** True for the error of an append that came after another one to the same log. */
export function isLedgerConflict(error: unknown): boolean {
  return isCoordinationError(error) && error.code === "LEDGER_CONFLICT";
}
