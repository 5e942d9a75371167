/** Owns: what the ledger holds, read as plain text after each move, so that no code of the product is needed to read it. */
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { FactPayloads, FactType } from "../../src/agents/coordination/contracts/facts.ts";
import type { FactEvent, RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { MemoryLedger } from "../support/memory-store.ts";

export type FactOf<T extends FactType> = Extract<FactEvent, { type: T }>;
export type PayloadOf<T extends FactType> = FactPayloads[T];

export interface Journal {
  /** All events, in the order in which they were seen. */
  readonly events: readonly RunEvent[];
  eventsOf(runId: string): readonly RunEvent[];
  runIds(): readonly string[];
  /**
   * Returns the events that were appended since, and adds problems where earlier ones are not what they were. That holds the store
   * of the simulator, which is a double, to L1; `test/contract` holds the real stores to it.
   */
  takeNew(problems: string[]): RunEvent[];
  /** Reads what was appended since, so that a move can be judged while it is made. */
  readNew(): void;
  hasDispatched(key: string): boolean;
  filter<T extends FactType>(type: T): FactOf<T>[];
}

export function createJournal(ledger: MemoryLedger): Journal {
  const texts = new Map<string, string[]>();
  const byRun = new Map<string, RunEvent[]>();
  const events: RunEvent[] = [];
  const unseen: RunEvent[] = [];
  const dispatched = new Set<string>();
  const read = (): void => {
    for (const [runId, run] of ledger.runs) {
      const seen = texts.get(runId) ?? [];
      texts.set(runId, seen);
      const list = byRun.get(runId) ?? [];
      byRun.set(runId, list);
      for (const text of run.events.slice(seen.length)) {
        seen.push(text);
        const event = JSON.parse(text) as RunEvent;
        list.push(event);
        events.push(event);
        unseen.push(event);
        if (event.type === "step.dispatched") dispatched.add(event.payload.idempotencyKey);
      }
    }
  };
  return {
    events,
    eventsOf: (runId) => byRun.get(runId) ?? [],
    runIds: () => [...byRun.keys()],
    takeNew: (problems) => {
      for (const [runId, seen] of texts) {
        if (ledger.traces.runs.has(runId)) continue;
        const now = ledger.runs.get(runId as CoordinationId)?.events ?? [];
        if (seen.some((text, index) => now[index] !== text)) problems.push(`L1: ${runId} was changed`);
      }
      read();
      return unseen.splice(0);
    },
    readNew: read,
    hasDispatched: (key) => {
      read();
      return dispatched.has(key);
    },
    filter: (type) => events.filter((event): event is FactOf<typeof type> => event.type === type),
  };
}
