/** Owns: the attempts of steps that are over, read from the log: the folded state keeps the newest one only. */
import type { LogReader } from "../../agents/coordination/ports/ledger-store.ts";
import { epochMsOf, type EpochMs, type StepId } from "../../agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../agents/coordination/contracts/run-event.ts";
import type { CoordinationView } from "../../agents/coordination/runtime/log/coordination-view.ts";
import { readLog } from "../../agents/coordination/runtime/log/read-pages.ts";

/** An attempt of a step that failed or ran out of time. */
export interface PastAttempt {
  readonly attempt: number;
  readonly status: "failed" | "timed_out";
  readonly dispatchedAtMs: EpochMs;
  readonly endedAtMs: EpochMs;
}

/** By step, in order, without the newest attempt of each. */
export type PastAttempts = ReadonlyMap<StepId, readonly PastAttempt[]>;

/**
 * Reads from a coordination's log, for each step, the attempts that failed or timed out before its newest one; empty,
 * without reading, where no step was tried again.
 */
export async function readEarlierAttempts(
  reader: LogReader,
  { coordinationId, steps }: CoordinationView,
): Promise<PastAttempts> {
  const newest = new Map(steps.map(({ stepId, attempt }) => [stepId, attempt]));
  const attempts = new Map<StepId, PastAttempt[]>();
  if (steps.every(({ attempt }) => attempt <= 1)) return attempts;
  const begun = new Map<string, EpochMs>();
  for await (const page of readLog(reader, coordinationId))
    for (const event of page) noteAttempt(event, { begun, attempts, newest });
  return attempts;
}

/** The attempts that were found so far, and when the open ones began. */
interface AttemptNotes {
  readonly begun: Map<string, EpochMs>;
  readonly attempts: Map<StepId, PastAttempt[]>;
  readonly newest: ReadonlyMap<StepId, number>;
}

/**
 * Notes when an attempt began, and the attempt itself once it has failed or timed out, unless it is the newest of its
 * step.
 */
function noteAttempt(
  { type, payload, timestamp }: RunEvent,
  { begun, attempts, newest }: AttemptNotes,
): void {
  if (type !== "step.dispatched" && type !== "step.failed" && type !== "step.timed_out") return;
  const { stepId, attempt } = payload;
  const key = `${stepId}:${attempt}`;
  const atMs = epochMsOf(timestamp);
  if (type === "step.dispatched") begun.set(key, atMs);
  else if (attempt < (newest.get(stepId) ?? 0)) {
    const status = type === "step.failed" ? "failed" : "timed_out";
    const ended: PastAttempt = { attempt, status, dispatchedAtMs: begun.get(key) ?? atMs, endedAtMs: atMs };
    attempts.set(stepId, [...(attempts.get(stepId) ?? []), ended]);
  }
}
