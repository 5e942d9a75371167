/**
 * Owns: the events that a fork takes from its source, a page at a time (docs/adr/0013). For a branch they are copied; for a replay
 * derived again, and held against the record. Nothing is done outside, but for models that are asked again whether they refuse.
 *
 * Cut off at any line, it goes on from the fork's own log; two processes that do it come to the same events.
 */
import { isCoordinationError } from "../../../contracts/errors.ts";
import type { CoordinationId, EpochMs } from "../../../contracts/ids.ts";
import type { RunOrigin } from "../../../contracts/workflows/run-origin.ts";
import type { WorkflowDraft, WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import { evolveWorkflow } from "../../../workflow/state/evolve-workflow.ts";
import { createRunEvent } from "../../../workflow/advance-run.ts";
import {
  replayPart,
  type AskEffect,
  type RecordedPart,
  type ReplayedPart,
} from "../../../workflow/replay-workflow.ts";
import { draftNodeCancellations } from "../../../workflow/node-contract/run-end.ts";
import type { Divergence } from "../../../workflow/same-draft.ts";
import { isEndedPhase, type WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import type { LoadedRun } from "../records/run-book.ts";
import type { WorkflowHostDependencies } from "../records/workflow-dependencies.ts";

export type AskAgain = (
  loadedRun: LoadedRun,
  call: {
    readonly effect: AskEffect;
    readonly recorded: readonly WorkflowEvent[];
    readonly sourceRunId: CoordinationId;
  },
  signal: AbortSignal,
) => Promise<readonly WorkflowDraft[]>;

export interface TakingDependencies extends Pick<WorkflowHostDependencies, "store" | "settings" | "clock"> {
  readonly askAgain: AskAgain;
}

/** The taking of one fork's events. It forgets nothing that matters when it is forgotten. */
export interface SourceEventTaker {
  /** The next events, as they are to be appended; at least one. */
  next(loadedRun: LoadedRun, signal: AbortSignal): Promise<TakenEvents>;
}

export interface TakenEvents {
  readonly run: WorkflowRun;
  readonly events: readonly WorkflowEvent[];
}

const PAGE = 1_000;

/**
 * Creates the taking of a fork's events from its source: each call of `next` returns the next ones. Where the source
 * has gone, or the fork diverges from it, they are the events that end the fork.
 */
export function createSourceTaking(dependencies: TakingDependencies, origin: RunOrigin): SourceEventTaker {
  let askedEffectId: string | undefined;
  let derivesFrom: number | undefined;
  return {
    next: async (loadedRun, signal) => {
      derivesFrom ??= await findFirstDerivedSequence(dependencies, origin);
      let limit = PAGE;
      for (;;) {
        const recorded = await readSourceRecord(dependencies, origin, {
          from: loadedRun.run.nextSequence,
          limit,
        });
        if (typeof recorded === "string")
          return createEndingEvents(dependencies, loadedRun.run, draftMissingSource(recorded));
        const part = replayRecordedPart(dependencies, loadedRun, { recorded, derivesFrom, askedEffectId });
        if (!part) return createEndingEvents(dependencies, loadedRun.run, UNREPLAYABLE);
        if (part.events.length > 0) return part;
        switch (part.then.kind) {
          case "more":
            limit *= 2;
            continue;
          case "diverged":
            return createEndingEvents(
              dependencies,
              loadedRun.run,
              draftDivergence(origin, part.then.divergence),
            );
          case "ask": {
            const { effect } = part.then;
            const call = { effect, recorded: recorded.events, sourceRunId: origin.sourceRunId };
            const drafts = await dependencies.askAgain(loadedRun, call, signal);
            if (drafts.length > 0) return createEndingEvents(dependencies, loadedRun.run, drafts);
            askedEffectId = effect.id;
            continue;
          }
          case "over":
            return createEndingEvents(
              dependencies,
              loadedRun.run,
              draftMissingSource(describeDamage("it has no more events")),
            );
        }
      }
    },
  };
}

/** A part of the source's record that is to be replayed, and from which event it is derived. */
interface PartToReplay {
  readonly recorded: RecordedPart;
  readonly derivesFrom: number;
  readonly askedEffectId: string | undefined;
}

/** Replays a part of a record; `undefined` for a record that breaks the rules of every log. */
function replayRecordedPart(
  { settings }: TakingDependencies,
  { run, graph }: LoadedRun,
  { recorded, derivesFrom, askedEffectId }: PartToReplay,
): ReplayedPart | undefined {
  try {
    return replayPart(run, { graph, settings, derivesFrom, askedEffectId }, recorded);
  } catch (error) {
    if (isCoordinationError(error) && error.code === "INVARIANT_VIOLATED") return undefined;
    throw error;
  }
}

const UNREPLAYABLE: readonly WorkflowDraft[] = [
  {
    type: "run.failed",
    payload: {
      error: { code: "replay_diverged", message: "the log of the source is not the log of a workflow run" },
    },
  },
];

/**
 * Returns the sequence of the first event that is derived again; those before it are copied. A branch copies all it
 * takes. A replay derives nothing that its source itself had taken from elsewhere.
 */
async function findFirstDerivedSequence(
  { store }: TakingDependencies,
  { mode, fromSeq, sourceRunId }: RunOrigin,
): Promise<number> {
  if (mode === "branch") return Infinity;
  return Math.max(fromSeq, (await store.entry(sourceRunId))?.origin?.until ?? 0);
}

/** Returns a page of the source's events, or a text that says why there is none. */
async function readSourceRecord(
  { store }: TakingDependencies,
  { sourceRunId, until }: RunOrigin,
  { from, limit }: { readonly from: number; readonly limit: number },
): Promise<RecordedPart | string> {
  const wanted = Math.min(limit, until - from);
  try {
    const events = await store.read(sourceRunId, { from, limit: wanted });
    if (events.length === wanted) return { events, isAll: from + wanted === until };
    if (await store.pruned.find(sourceRunId)) return "the source was pruned from the ledger meanwhile";
    return describeDamage(`event ${from + events.length} is missing`);
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "EVENT_UNREADABLE") throw error;
    return describeDamage(`an event from ${from} on cannot be read`);
  }
}

function describeDamage(why: string): string {
  return `the log of the source was damaged meanwhile: ${why}`;
}

function draftMissingSource(message: string): WorkflowDraft[] {
  return [{ type: "run.failed", payload: { error: { code: "replay_source_missing", message } } }];
}

function draftDivergence({ sourceRunId }: RunOrigin, { event, kind, point }: Divergence): WorkflowDraft[] {
  const { sequence: atSequence, eventId: originalEventId } = event;
  const error = {
    code: "replay_diverged",
    message: `the replay differs from the record at event ${atSequence}: ${point}`,
  };
  return [
    {
      type: "replay.diverged",
      payload: { sourceRunId, atSequence, originalEventId, divergenceKind: kind, divergencePoint: point },
    },
    { type: "run.failed", payload: { error } },
  ];
}

/**
 * Returns the run with the drafts as its last events, behind the cancellations of what is still at work. Appends
 * nothing.
 */
function createEndingEvents(
  { clock }: TakingDependencies,
  run: WorkflowRun,
  drafts: readonly WorkflowDraft[],
): TakenEvents {
  const now = clock.now();
  const takenEvents = { run, events: [] as WorkflowEvent[] };
  for (const draft of drafts) {
    if (draft.type === "run.failed") {
      const cut = draftNodeCancellations(takenEvents.run, "the replay cannot go on");
      for (const each of cut) recordDraft(takenEvents, each, now);
    }
    recordDraft(takenEvents, draft, now);
  }
  return takenEvents;
}

/** Adds the draft as the next event, unless the run has ended. */
function recordDraft(
  takenEvents: { run: WorkflowRun; readonly events: WorkflowEvent[] },
  draft: WorkflowDraft,
  now: EpochMs,
): void {
  if (isEndedPhase(takenEvents.run.phase)) return;
  const event = createRunEvent(takenEvents.run, draft, now);
  takenEvents.events.push(event);
  takenEvents.run = evolveWorkflow(takenEvents.run, event);
}
