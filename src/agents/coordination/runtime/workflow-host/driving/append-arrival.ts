/**
 * Owns: what is asked of a run that another process drives. Only the events of the request are appended, under compare-and-set
 * (L2); what follows from them is planned and performed by the owner of the run, which finds them.
 */
import { CoordinationError } from "../../../contracts/errors.ts";
import type { WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import { waitForDuration } from "../../../std/wait-for.ts";
import { applyDrafts } from "../../../workflow/advance-run.ts";
import { draftForkGoingLive } from "../../../workflow/go-live.ts";
import { summarizeRun } from "../../../workflow/state/run-view.ts";
import { isMaterialising } from "../../../workflow/state/workflow-state.ts";
import type { LoadedRun } from "../records/run-book.ts";
import { catchUpUnlessEnded, RACES_MAX } from "./advance-driven.ts";
import { type RunDriverState } from "./run-driver-state.ts";
import { isLedgerConflict } from "./plan-runs.ts";
import type { RequestDrafts, RequestOutcome } from "./request-drafts.ts";

/** How often a fork is looked at that still takes events of its source. */
const LOOK_MS = 100;
const LOOKS_MAX = 100;

/**
 * Appends what a request drafts to a run that another process drives, and returns the run after it, or the refusal.
 * Waits until a fork has its source's events, and tries again where others appended first, up to `RACES_MAX` times in
 * all. @throws CoordinationError `LEDGER_BUSY` for a fork that takes too long, and what `append` throws
 */
export async function applyRequestToForeignRun<R>(
  driving: RunDriverState,
  loadedRun: LoadedRun,
  request: (loadedRun: LoadedRun) => RequestDrafts<R>,
): Promise<RequestOutcome<R>> {
  for (let tries = 1; ; tries += 1) {
    const now = await awaitSourceEvents(driving, loadedRun);
    const answer = request(now);
    if ("refused" in answer) return { loadedRun: now, refused: answer.refused };
    const { graph } = now;
    const { settings, clock, owner } = driving;
    const before = draftForkGoingLive(now.run, { graph, settings }, owner.id);
    const context = { graph, settings, now: clock.now() };
    const { run, events } = applyDrafts(now.run, context, [...before, ...answer.drafts]);
    if (answer.drafts.length === 0 || events.length === 0) return { loadedRun: now };
    try {
      return { loadedRun: await appendToForeignRun(driving, { run, graph }, events) };
    } catch (error) {
      if (!isLedgerConflict(error) || tries >= RACES_MAX) throw error;
    }
  }
}

/**
 * Resolves with the newest state, as soon as the run has all that it takes from its source. Throws when that takes too
 * long.
 */
async function awaitSourceEvents(driving: RunDriverState, loadedRun: LoadedRun): Promise<LoadedRun> {
  const { clock } = driving;
  let now = await catchUpUnlessEnded(driving, loadedRun);
  for (let looks = 0; isMaterialising(now.run); looks += 1) {
    if (looks >= LOOKS_MAX)
      throw new CoordinationError(
        "LEDGER_BUSY",
        `${now.run.runId} still takes the events of its source; try again when it has them`,
      );
    await waitForDuration(clock, LOOK_MS);
    now = await catchUpUnlessEnded(driving, now);
  }
  return now;
}

/** Appends the events of a request to a run that another process drives, and tells the listeners. */
async function appendToForeignRun(
  driving: RunDriverState,
  loadedRun: LoadedRun,
  events: readonly WorkflowEvent[],
): Promise<LoadedRun> {
  const { store, book, logger, listeners } = driving;
  const { run } = loadedRun;
  const { runId } = run;
  const before = await store.entry(runId);
  // Without a time to wake: whoever takes the run over looks at it at once.
  const summary = {
    ...summarizeRun(run, before?.summary.driver ?? driving.owner.id),
    chars: run.chars,
    ...(before?.summary.root && { root: before.summary.root }),
  };
  await store.append({ runId, events, summary });
  const last = events.at(-1);
  logger.debug(
    { runId, sequence: last?.sequence, type: last?.type, events: events.length },
    "appended to a run that another process drives",
  );
  book.keep(loadedRun);
  for (const listener of listeners) listener(loadedRun, events);
  return loadedRun;
}
