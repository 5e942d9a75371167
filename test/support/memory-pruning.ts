/** Owns: removing runs from a ledger in memory, and the traces that they leave, with the meaning of the port (N1, N2). */
import { createPrunedRunError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { Summary } from "../../src/agents/coordination/contracts/coordination-summary.ts";
import type {
  BoundChild,
  LedgerPruning,
  PrunableRun,
  PrunedRun,
  PrunedRuns,
  RemovableRun,
} from "../../src/agents/coordination/ports/run-store.ts";
import {
  createPrunableRun,
  leaveOutJoinedFamilies,
  type NewerRow,
} from "../../src/infra/ledger/prunable-runs.ts";
import type { Answer, OwnedKeptRun } from "./memory-run.ts";

/** The traces of removed runs, and the children that stay bound. */
export interface MemoryTraces {
  readonly runs: Map<string, PrunedRun & { readonly claims: number; readonly ordinal: number }>;
  readonly bound: BoundChild[];
}

export function createMemoryTraces(): MemoryTraces {
  return { runs: new Map(), bound: [] };
}

export function createMemoryPrunedRuns({ runs, bound }: MemoryTraces, answer: Answer): PrunedRuns {
  return {
    counts: () =>
      answer(() =>
        [...runs.values()].reduce(
          (sum, { events, claims }) => ({
            runs: sum.runs + 1,
            events: sum.events + events,
            claims: sum.claims + claims,
          }),
          { runs: 0, events: 0, claims: 0 },
        ),
      ),
    find: (runId) =>
      answer(() => {
        const trace = runs.get(runId);
        if (!trace) return undefined;
        const { claims: _, ordinal: _ordinal, ...pruned } = trace;
        return pruned;
      }),
    listBindings: (session) =>
      answer(() => {
        const bindings = bound.filter((child) => child.session === session).map(({ binding }) => binding);
        return [...new Set(bindings)].toSorted();
      }),
  };
}

/** @throws CoordinationError `RUN_PRUNED` for a run that was removed */
export function checkNotPruned({ runs }: MemoryTraces, runId: string): void {
  if (runs.has(runId)) throw createPrunedRunError(runId);
}

/** The ordinal of the next run: no number is given twice. */
export function findNextOrdinal(
  runs: ReadonlyMap<CoordinationId, { readonly ordinal: number }>,
  traces: MemoryTraces,
): number {
  const ordinals = [...runs.values(), ...traces.runs.values()].map(({ ordinal }) => ordinal);
  return Math.max(0, ...ordinals) + 1;
}

interface PrunedLedger {
  readonly runs: Map<CoordinationId, OwnedKeptRun<Summary>>;
  readonly traces: MemoryTraces;
  /** Removes everything else that belongs to a run. */
  readonly forget: (runId: CoordinationId) => void;
  readonly hasClaim: (runId: CoordinationId) => boolean;
  readonly now: () => EpochMs;
}

export function createMemoryPruning(ledger: PrunedLedger, answer: Answer): LedgerPruning {
  const { runs } = ledger;
  return {
    page: ({ before, limit, beforeMs }) =>
      answer(() =>
        [...runs]
          .filter(([, { ordinal }]) => ordinal < before)
          .toSorted(([, a], [, b]) => b.ordinal - a.ordinal)
          .slice(0, limit)
          .map(([runId, run]) => lookAt(ledger, { runId, run, beforeMs })),
      ),
    remove: (removable, basis) =>
      answer(() => {
        const newer = [...runs].filter(([, { ordinal }]) => ordinal > basis.newest).map(describeRun);
        const removed = leaveOutJoinedFamilies(removable, basis, newer).filter((run) =>
          removeRun(ledger, run),
        );
        return { runs: removed.length, events: removed.reduce((sum, { length }) => sum + length, 0) };
      }),
  };
}

function describeRun([runId, { ordinal, summary, events }]: [
  CoordinationId,
  OwnedKeptRun<Summary>,
]): NewerRow {
  const { payload } = JSON.parse(events[0] ?? "{}") as { readonly payload?: unknown };
  return {
    run_key: ordinal,
    run_id: runId,
    kind: "coordination",
    summary: JSON.stringify(summary),
    origin: null,
    payload: JSON.stringify(payload ?? null),
  };
}

interface LookedAt {
  readonly runId: CoordinationId;
  readonly run: OwnedKeptRun<Summary>;
  readonly beforeMs: EpochMs;
}

function lookAt(ledger: PrunedLedger, { runId, run, beforeMs }: LookedAt): PrunableRun {
  const state = findState(ledger, { runId, run, beforeMs });
  return createPrunableRun({ ...describeRun([runId, run]), length: run.events.length, state });
}

function findState(ledger: PrunedLedger, { runId, run, beforeMs }: LookedAt): PrunableRun["state"] {
  const { timestamp } = JSON.parse(run.events.at(-1) ?? "{}") as { readonly timestamp: string };
  if (run.summary.status === "running" || run.hasArrived) return "open";
  if (Date.parse(timestamp) >= beforeMs || isNewest(ledger, run)) return "recent";
  return ledger.hasClaim(runId) ? "used" : "prunable";
}

/** SQLite gives the number of the newest run again once that is removed: so it stays until another one has begun. */
function isNewest({ runs }: PrunedLedger, { ordinal }: { readonly ordinal: number }): boolean {
  return [...runs.values()].every((other) => other.ordinal <= ordinal);
}

/** Returns whether the run was removed: not where it is another than the one that was looked at. */
function removeRun(
  ledger: PrunedLedger,
  { ordinal, runId: id, length, boundChildren = [] }: RemovableRun,
): boolean {
  const { runs, traces, now } = ledger;
  const runId = id as CoordinationId;
  const run = runs.get(runId);
  if (!run || run.ordinal !== ordinal || run.events.length !== length) return false;
  if (run.summary.status === "running" || run.hasArrived || isNewest(ledger, run)) return false;
  const claims = run.events.filter((text) => text.includes('"type":"claim.acquired"')).length;
  traces.runs.set(runId, {
    runId,
    kind: "coordination",
    events: length,
    prunedAtMs: now(),
    claims,
    ordinal,
  });
  traces.bound.push(...boundChildren);
  runs.delete(runId);
  ledger.forget(runId);
  return true;
}
