/** Owns: the log of a workflow run in memory: text, hashes and the origin of a fork. */
import { CoordinationError, assertInvariant } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  findEventId,
  runOriginSchema,
  type RunOrigin,
} from "../../src/agents/coordination/contracts/workflows/run-origin.ts";
import {
  decodeWorkflowEvent,
  type WorkflowEvent,
} from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type { WorkflowSummary } from "../../src/agents/coordination/contracts/workflows/workflow-summary.ts";
import type { EventDamage } from "../../src/agents/coordination/ports/ledger-store.ts";
import type { WorkflowAppend } from "../../src/agents/coordination/ports/workflow-store.ts";
import { damageIn, type ChainedLog } from "./hash-chain.ts";

export interface MemoryRun extends ChainedLog {
  readonly ordinal: number;
  /** JSON, of a fork. */
  origin?: string;
  /** The number of each event among all of the ledger. */
  readonly places: number[];
  summary: WorkflowSummary;
}

/** Event ids follow from the run id, the origin and the sequence, whatever is kept. */
export function readable(runId: CoordinationId, run: Pick<MemoryRun, "origin">, text: string): WorkflowEvent {
  const event = JSON.parse(text) as WorkflowEvent;
  return decodeWorkflowEvent({ ...event, eventId: findEventId(runId, originOf(run), event.sequence) });
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

/** Without its origin no event of a fork can be read, whatever its hash says. */
export function damageOf(run: MemoryRun | undefined, { runId, before }: Range): EventDamage | undefined {
  if (before > 0 && run?.origin !== undefined && !knownOrigin(run).origin)
    return { sequence: 0, problem: "event_unreadable" };
  return damageIn(run, before, (text) => readable(runId, run ?? {}, text));
}

export function checkPlaces({ runId, events }: WorkflowAppend, length: number): void {
  if (events.some(({ sequence }, index) => sequence !== length + index))
    throw new CoordinationError("LEDGER_CONFLICT", `${runId} has ${length} events`);
}

export function checkIds({ runId, events }: WorkflowAppend, run: MemoryRun): void {
  const origin = originOf(run);
  for (const { eventId, sequence } of events) {
    const isIts = eventId === findEventId(runId, origin, sequence);
    assertInvariant(isIts, `the event at ${runId}:${sequence} is not ${eventId}`);
  }
}
