/** Owns: what one turn of a run comes to, on its newest state: the events to append, with what is written beside them. */
import { isCoordinationError } from "../../../contracts/errors.ts";
import type { WorkflowDraft, WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import type { WorkspaceWrite } from "../../../ports/workspace-store.ts";
import { settleEffect } from "../../../workflow/workflow-commands.ts";
import { draftGoingLive } from "../../../workflow/go-live.ts";
import type { EffectOutcome, NodeEffect } from "../../../workflow/node-contract/node-type.ts";
import { advanceRun, type Progress } from "../../../workflow/advance-run.ts";
import { statusOf, summarizeRun } from "../../../workflow/state/run-view.ts";
import { isAtFork } from "../../../workflow/state/workflow-state.ts";
import { maskValue } from "../records/mask-secrets.ts";
import { memoryWritesOf } from "../records/memory-writes.ts";
import type { EpochMs } from "../../../contracts/ids.ts";
import type { WorkflowSummary } from "../../../contracts/workflows/workflow-summary.ts";
import type { LoadedRun } from "../records/run-book.ts";
import { createLostError } from "../../ownership/own-runs.ts";
import type { TenantUsage } from "../records/tenant-usage.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";
import { workspaceWritesOf } from "../records/run-workspace.ts";

export interface PlanDependencies extends Pick<
  WorkflowHostDependencies,
  "store" | "clock" | "logger" | "settings" | "owner" | "secrets" | "sha256"
> {
  readonly usage: TenantUsage;
}

export type Planned = Progress & { readonly workspace?: readonly WorkspaceWrite[] };

export function planOn(
  { settings, clock, owner }: PlanDependencies,
  { run, graph }: LoadedRun,
  drafts: readonly WorkflowDraft[] = [],
): Planned {
  const before = draftGoingLive(run, { graph, settings }, owner.id);
  return advanceRun(run, { graph, settings, now: clock.now() }, [...before, ...drafts]);
}

/** The event that begins the run is in the same append as what follows from it. */
export function withFirst(first: WorkflowEvent, planned: Planned): Planned {
  return { ...planned, events: [first, ...planned.events] };
}

export function settleAll(
  dependencies: PlanDependencies,
  loadedRun: LoadedRun,
  { effect, outcomes }: { readonly effect: NodeEffect; readonly outcomes: readonly EffectOutcome[] },
): Planned {
  let planned: Planned = { run: loadedRun.run, events: [], memory: [], effects: [] };
  // SR-1: neither what it writes nor what it is told by models, tools and peers brings a secret into the log.
  for (const outcome of maskValue(outcomes, dependencies.secrets)) {
    const now = { ...loadedRun, run: planned.run };
    const place = { graph: loadedRun.graph, settings: dependencies.settings, now: dependencies.clock.now() };
    const next = planOn(dependencies, now, settleEffect(now.run, place, { effect, outcome }));
    planned = {
      ...next,
      events: [...planned.events, ...next.events],
      memory: [...planned.memory, ...next.memory],
      workspace: [...(planned.workspace ?? []), ...workspaceWritesOf(effect, outcome, next.events)],
    };
  }
  return planned;
}

/** Plans how a run goes on, with how long nobody drove it: `awaySinceMs` is since when at the earliest. Its time limit leaves that out. */
export function planResumption(
  dependencies: PlanDependencies,
  loadedRun: LoadedRun,
  awaySinceMs: EpochMs,
): Planned {
  return planOn(dependencies, loadedRun, draftResumption(dependencies, loadedRun, awaySinceMs));
}

/** Drafts that a run goes on; nothing where it does nothing, as one that waits for people. */
function draftResumption(
  dependencies: PlanDependencies,
  loadedRun: LoadedRun,
  awaySinceMs: EpochMs,
): readonly WorkflowDraft[] {
  const { run } = loadedRun;
  // A fork that goes live tells of it by itself.
  if (isAtFork(run)) return [];
  const planned = planOn(dependencies, loadedRun);
  if (planned.events.length === 0 && planned.effects.length === 0) return [];
  const payload = {
    process: dependencies.owner.id,
    fromStatus: statusOf(run),
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

/** @throws CoordinationError `NOT_OWNER` and what `append` throws */
export async function appendPlanned(
  dependencies: PlanDependencies,
  { run, events, memory, effects, wakeAtMs, workspace = [] }: Planned,
  token: number | undefined,
): Promise<void> {
  const { store, logger, owner } = dependencies;
  const writes = memoryWritesOf(dependencies, run, memory);
  const summary = summarizeProgress(dependencies, { run, effects, wakeAtMs });
  const { runId, origin } = run;
  if (token === undefined) throw createLostError(runId);
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

interface AppendedProgress extends Pick<Planned, "run" | "effects"> {
  readonly wakeAtMs: EpochMs | undefined;
}

/** With what others need to know of the run without reading it. */
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

export function isConflict(error: unknown): boolean {
  return isCoordinationError(error) && error.code === "LEDGER_CONFLICT";
}
