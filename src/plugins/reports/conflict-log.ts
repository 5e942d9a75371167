/**
 * Owns: the conflicts of a coordination with their times, read from its log: the folded state keeps no times, and needs no names.
 * Does not own: how they read (`conflict-text.ts`).
 */
import type { LogReader } from "../../agents/coordination/ports/ledger-store.ts";
import type { FactPayloads } from "../../agents/coordination/contracts/facts.ts";
import {
  epochMsOf,
  type CoordinationId,
  type EpochMs,
  type StepId,
} from "../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../agents/coordination/contracts/run-event.ts";
import { readLog } from "../../agents/coordination/runtime/log/read-pages.ts";

/** As the commands print it with `--json`. */
export interface ConflictRecord extends Readonly<FactPayloads["conflict.detected"]> {
  readonly coordinationId: CoordinationId;
  readonly detectedAtMs: EpochMs;
  /** Absent while people may still answer. */
  readonly resolution?: ConflictResolution;
}

/** How a conflict was resolved, and when. */
export type ConflictResolution = Readonly<Omit<FactPayloads["conflict.resolved"], "conflictId">> & {
  readonly resolvedAtMs: EpochMs;
};

/** Changes of a coordination's steps, as its log has them. */
export interface ChangeLog {
  /** In the order of the log. */
  readonly conflicts: readonly ConflictRecord[];
  /** How often a write left something behind. */
  readonly changes: number;
  /** The names of steps that have one beside their id. */
  readonly names: ReadonlyMap<StepId, string>;
}

/**
 * Reads from a coordination's log its conflicts with their resolutions, the names of its steps, and the number of
 * changes. @throws CoordinationError as `LedgerStore.read`
 */
export async function readChangeLog(reader: LogReader, coordinationId: CoordinationId): Promise<ChangeLog> {
  const notes: ConflictNotes = { conflicts: new Map(), names: new Map(), changes: 0 };
  for await (const page of readLog(reader, coordinationId))
    for (const event of page) noteChange(event, notes);
  return { ...notes, conflicts: [...notes.conflicts.values()] };
}

/** The conflicts and names of steps that were found in a log so far. */
interface ConflictNotes {
  readonly conflicts: Map<string, ConflictRecord>;
  readonly names: Map<StepId, string>;
  changes: number;
}

/** Notes what an event says of a conflict, of a change or of the name of a step. */
function noteChange({ type, payload, timestamp, runId }: RunEvent, notes: ConflictNotes): void {
  switch (type) {
    case "step.admitted":
      if (payload.name !== undefined) notes.names.set(payload.stepId, payload.name);
      break;
    case "resource.changed":
      notes.changes += 1;
      break;
    case "conflict.detected": {
      const conflict = { ...payload, coordinationId: runId, detectedAtMs: epochMsOf(timestamp) };
      notes.conflicts.set(payload.conflictId, conflict);
      break;
    }
    case "conflict.resolved": {
      const { conflictId, ...resolution } = payload;
      const conflict = notes.conflicts.get(conflictId);
      const resolved = { ...resolution, resolvedAtMs: epochMsOf(timestamp) };
      if (conflict) notes.conflicts.set(conflictId, { ...conflict, resolution: resolved });
      break;
    }
    default:
      break;
  }
}
