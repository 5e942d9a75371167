/** Owns: pruning the ledger while other processes work, and holding each removal against what pruning promises (N1, N2). */
import type { CoordinationId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { LedgerPruning, RemovableRun } from "../../src/agents/coordination/ports/run-store.ts";
import { pruneLedger } from "../../src/agents/coordination/runtime/prune-ledger.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import type { Move } from "./moves.ts";
import { pickGateway } from "./perform-move.ts";
import { callPort, wrapPort, type Life } from "./process-life.ts";
import { callGateway, type World } from "./world.ts";

/** No run goes that is younger, as the command and the regular pruning have it. */
const KEPT_MS = 86_400_000;

export function pruneRuns(world: World, move: Extract<Move, { kind: "prune" }>): void {
  const { clock, ledger } = world;
  const gateway = pickGateway(world, move.gateway);
  const { life } = gateway;
  const store = ledger.open(clock);
  const beforeMs = (clock.now() - KEPT_MS) as EpochMs;
  const pruned = {
    ...wrapPort(life, "read", store),
    pruned: wrapPort(life, "read", store.pruned),
    workflows: createMemoryWorkflowLedger().open(),
    pruning: createSlowPruning(world, life, { pruning: store.pruning, callMs: move.callMs, beforeMs }),
  };
  void callGateway(gateway, () => pruneLedger(pruned, { beforeMs, isDryRun: move.isDryRun }));
}

interface SlowPruning {
  readonly pruning: LedgerPruning;
  /** How long each call takes, in which others work. */
  readonly callMs: number;
  readonly beforeMs: EpochMs;
}

function createSlowPruning(
  world: World,
  life: Life,
  { pruning, callMs, beforeMs }: SlowPruning,
): LedgerPruning {
  const waitAWhile = async (): Promise<void> => {
    if (callMs === 0) return;
    await new Promise<void>((resolve) => {
      world.clock.wakeAt((world.clock.now() + callMs) as EpochMs, resolve);
    });
  };
  return {
    page: async (place) => {
      const page = await callPort(life, "read", () => pruning.page(place));
      await waitAWhile();
      return page;
    },
    remove: async (runs, basis) => {
      const removed = await callPort(life, "append", async () => {
        world.journal.readNew();
        const before = new Set(world.ledger.runs.keys());
        const counts = await pruning.remove(runs, basis);
        const removedRuns = runs.filter(({ runId }) => hasGone(world, before, runId));
        world.problems.push(
          ...removedRuns.flatMap((run) => checkRemoval(world, run, beforeMs)),
          ...checkRelatives(world),
        );
        return counts;
      });
      await waitAWhile();
      return removed;
    },
  };
}

function hasGone({ ledger }: World, before: ReadonlySet<string>, runId: string): boolean {
  return before.has(runId) && !ledger.runs.has(runId as CoordinationId);
}

/** N1, N2: whole, ended and old; what a gate keeps back is kept back for ever. */
function checkRemoval(
  { journal, ledger }: World,
  { runId, length }: RemovableRun,
  beforeMs: number,
): string[] {
  const events = journal.eventsOf(runId);
  const isEnded = events.some(({ type }) => type === "coordination.terminal");
  const newest = events.at(-1);
  const problems: string[] = [];
  if (events.length !== length)
    problems.push(`N1: ${runId} is pruned with ${length} of ${events.length} events`);
  if (!isEnded) problems.push(`N2: ${runId} is pruned and open`);
  if (newest && Date.parse(newest.timestamp) >= beforeMs) problems.push(`N2: ${runId} is pruned too early`);
  const isBound = (session: string): boolean =>
    ledger.traces.bound.some((child) => child.session === session && child.binding === "gate");
  const free = listWithheldSessions(events).filter((session) => !isBound(session));
  return [
    ...problems,
    ...free.map((session) => `N3: the words of ${session} are free since ${runId} is pruned`),
  ];
}

/** Sessions of steps with checks, or of which a confidence is demanded, that did not complete with their agent's result. */
function listWithheldSessions(events: readonly RunEvent[]): string[] {
  const strict = events.flatMap(({ type, payload }) => {
    const gate = type === "step.admitted" && payload.gate;
    const isStrict = gate && ((gate.checks ?? []).length > 0 || gate.requireConfidence === true);
    return isStrict ? [payload.stepId] : [];
  });
  const released = events.flatMap(({ type, payload }) =>
    type === "step.completed" && payload.released !== "replaced" ? [payload.stepId] : [],
  );
  return events.flatMap(({ type, payload }) =>
    type === "step.acknowledged" && strict.includes(payload.stepId) && !released.includes(payload.stepId)
      ? [payload.childSessionKey]
      : [],
  );
}

/** N2: what a run is part of, or was forked from, is there as long as it is. */
function checkRelatives({ ledger, journal }: World): string[] {
  return [...ledger.runs.keys()].flatMap((runId) => {
    const [created] = journal.eventsOf(runId);
    if (created?.type !== "coordination.created") return [];
    const { parent, forkedFrom } = created.payload;
    return [parent?.coordinationId, forkedFrom?.coordinationId].flatMap((id) =>
      id !== undefined && ledger.traces.runs.has(id) ? [`N2: ${id} is pruned without ${runId}`] : [],
    );
  });
}
