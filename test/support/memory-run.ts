/** Owns: the log of a workflow run in memory: text, hashes and the origin of a fork. */
import { hash } from "node:crypto";
import { CoordinationError, invariant } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  eventIdIn,
  runOriginSchema,
  type RunOrigin,
} from "../../src/agents/coordination/contracts/run-origin.ts";
import {
  decodeWorkflowEvent,
  type WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflow-events.ts";
import type { WorkflowSummary } from "../../src/agents/coordination/contracts/workflow-summary.ts";
import type { EventDamage } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";

export interface MemoryRun {
  readonly ordinal: number;
  /** JSON, of a fork. */
  origin?: string;
  readonly events: string[];
  /** Over each event and what lies before it. */
  readonly hashes: string[];
  /** The number of each event among all of the ledger. */
  readonly places: number[];
  summary: WorkflowSummary;
}

/** Event ids follow from the run id, the origin and the sequence, whatever is kept. */
export function readable(runId: CoordinationId, run: Pick<MemoryRun, "origin">, text: string): WorkflowEvent {
  const event = JSON.parse(text) as WorkflowEvent;
  return decodeWorkflowEvent({ ...event, eventId: eventIdIn(runId, originOf(run), event.sequence) });
}

/** @throws `EVENT_UNREADABLE` */
function originOf({ origin }: Pick<MemoryRun, "origin">): RunOrigin | undefined {
  if (origin === undefined) return undefined;
  const parsed = runOriginSchema.safeParse(JSON.parse(origin));
  if (!parsed.success) throw new CoordinationError("EVENT_UNREADABLE", "the origin is unreadable");
  return parsed.data;
}

/** What cannot be read is not there. */
export function knownOrigin(run: Pick<MemoryRun, "origin">): { readonly origin?: RunOrigin } {
  try {
    const origin = originOf(run);
    return origin ? { origin } : {};
  } catch {
    return {};
  }
}

interface Range {
  readonly runId: CoordinationId;
  readonly before: number;
}

export function damageIn(run: MemoryRun | undefined, { runId, before }: Range): EventDamage | undefined {
  for (let sequence = 0; sequence < before; sequence += 1) {
    const problem = problemAt(run, runId, sequence);
    if (problem) return { sequence, problem };
  }
  return undefined;
}

function problemAt(
  run: MemoryRun | undefined,
  runId: CoordinationId,
  sequence: number,
): EventDamage["problem"] | undefined {
  if (run?.origin !== undefined && !knownOrigin(run).origin) return "event_unreadable";
  const text = run?.events[sequence];
  if (!run || text === undefined) return "event_missing";
  if (run.hashes[sequence] !== hashAt(run, sequence, text)) return "event_changed";
  try {
    readable(runId, run, text);
    return undefined;
  } catch {
    return "event_unreadable";
  }
}

function hashAt({ hashes, origin }: MemoryRun, sequence: number, text: string): string {
  return hash("sha256", `${hashes[sequence - 1] ?? origin ?? ""}\n${text}`);
}

export function keepEvent(run: MemoryRun, event: WorkflowEvent): void {
  const text = JSON.stringify(event);
  run.hashes.push(hashAt(run, run.events.length, text));
  run.events.push(text);
}

/** As somebody does who knows the hashes. */
export function hashAgain(run: MemoryRun): void {
  for (const [sequence, text] of run.events.entries()) run.hashes[sequence] = hashAt(run, sequence, text);
}

export function checkPlaces({ runId, events }: WorkflowAppend, length: number): void {
  if (events.some(({ sequence }, index) => sequence !== length + index))
    throw new CoordinationError("LEDGER_CONFLICT", `${runId} has ${length} events`);
}

export function checkIds({ runId, events }: WorkflowAppend, run: MemoryRun): void {
  const origin = originOf(run);
  for (const { eventId, sequence } of events) {
    const isIts = eventId === eventIdIn(runId, origin, sequence);
    invariant(isIts, `the event at ${runId}:${sequence} is not ${eventId}`);
  }
}
