/**
 * Owns: what a coordination's log says of held results and questions, with times: the folded state keeps the newest attempt only, and
 * no verdicts once a result is ruled on. Does not own: how it reads.
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

interface OfAttempt {
  readonly stepId: StepId;
  readonly attempt: number;
  readonly atMs: EpochMs;
}

/** A check ruled on a held result, or gave no verdict. */
export type VerdictRecord = OfAttempt &
  (FactPayloads["result.verified"] | FactPayloads["verification.failed"]);

/** A result went back to its agent, and with it the attempt was over. */
export interface RevisionRecord extends OfAttempt {
  readonly criteria: readonly string[];
  readonly dispatchedAtMs: EpochMs;
  /** When the child had ended. */
  readonly heldAtMs: EpochMs;
}

/** Why a held result was released, as it is recorded. */
export type RecordedRelease = NonNullable<FactPayloads["step.completed"]["released"]>;

export interface GateLog {
  /** In the order of the log. */
  readonly verdicts: readonly VerdictRecord[];
  readonly revisions: readonly RevisionRecord[];
  /** When the result of the newest held attempt was held, by step. */
  readonly held: ReadonlyMap<StepId, { readonly attempt: number; readonly atMs: EpochMs }>;
  /** How a held result was let through, by step. */
  readonly released: ReadonlyMap<StepId, RecordedRelease>;
  /** When questions were closed, by id. */
  readonly closedAtMs: ReadonlyMap<string, EpochMs>;
}

/**
 * Reads from a coordination's log the verdicts on its results, their revisions, when each was held, how it was let
 * through, and when questions were closed. @throws CoordinationError as `LedgerStore.read`
 */
export async function readGateLog(reader: LogReader, coordinationId: CoordinationId): Promise<GateLog> {
  const notes: GateLogNotes = {
    verdicts: [],
    revisions: [],
    held: new Map(),
    released: new Map(),
    closedAtMs: new Map(),
    begun: new Map(),
  };
  for await (const page of readLog(reader, coordinationId))
    for (const event of page) noteGateEvent(event, epochMsOf(event.timestamp), notes);
  const { begun: _, ...log } = notes;
  return log;
}

/** The events of gates that were found in a log so far. */
interface GateLogNotes {
  readonly verdicts: VerdictRecord[];
  readonly revisions: RevisionRecord[];
  readonly held: Map<StepId, { readonly attempt: number; readonly atMs: EpochMs }>;
  readonly released: Map<StepId, RecordedRelease>;
  readonly closedAtMs: Map<string, EpochMs>;
  /** When the newest attempt began, by step. */
  readonly begun: Map<StepId, EpochMs>;
}

/** Notes what an event says of a held result, a verdict on it or a question. */
function noteGateEvent({ type, payload }: RunEvent, atMs: EpochMs, notes: GateLogNotes): void {
  switch (type) {
    case "step.dispatched":
      notes.begun.set(payload.stepId, atMs);
      break;
    case "result.held":
      notes.held.set(payload.stepId, { attempt: payload.attempt, atMs });
      break;
    case "result.verified":
    case "verification.failed":
      notes.verdicts.push({ ...payload, atMs });
      break;
    case "result.revised":
      notes.revisions.push(createRevisionRecord(payload, atMs, notes));
      break;
    case "step.completed":
      if (payload.released) notes.released.set(payload.stepId, payload.released);
      break;
    case "escalation.closed":
      notes.closedAtMs.set(payload.escalationId, atMs);
      break;
    default:
      break;
  }
}

function createRevisionRecord(
  { stepId, attempt, criteria }: FactPayloads["result.revised"],
  atMs: EpochMs,
  { begun, held: heldAttempts }: GateLogNotes,
): RevisionRecord {
  const dispatchedAtMs = begun.get(stepId) ?? atMs;
  return {
    stepId,
    attempt,
    atMs,
    criteria,
    dispatchedAtMs,
    heldAtMs: heldAttempts.get(stepId)?.atMs ?? atMs,
  };
}
