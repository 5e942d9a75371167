/** Owns: the chain of hashes over a log in memory, and what in it is not as it was appended. */
import { hash } from "node:crypto";
import type { EventDamage } from "../../src/agents/coordination/ports/run-store.ts";

export interface ChainedLog {
  /** As JSON. */
  readonly events: string[];
  /** Over each event and what lies before it. */
  readonly hashes: string[];
  /** The hash before the first. */
  readonly origin?: string;
}

function hashAt({ hashes, origin }: ChainedLog, sequence: number, text: string): string {
  return hash("sha256", `${hashes[sequence - 1] ?? origin ?? ""}\n${text}`);
}

export function keepEvents(log: ChainedLog, events: readonly object[]): void {
  for (const event of events) {
    const text = JSON.stringify(event);
    log.hashes.push(hashAt(log, log.events.length, text));
    log.events.push(text);
  }
}

/** As somebody does who knows the hashes. */
export function hashAgain(log: ChainedLog): void {
  for (const [sequence, text] of log.events.entries()) log.hashes[sequence] = hashAt(log, sequence, text);
}

/** The first of the events below `before` that is damaged; `decode` throws for what is no event. */
export function findDamageIn(
  log: ChainedLog | undefined,
  before: number,
  decode: (text: string) => unknown,
): EventDamage | undefined {
  for (let sequence = 0; sequence < before; sequence += 1) {
    const problem = findProblemAt(log, sequence, decode);
    if (problem) return { sequence, problem };
  }
  return undefined;
}

function findProblemAt(
  log: ChainedLog | undefined,
  sequence: number,
  decode: (text: string) => unknown,
): EventDamage["problem"] | undefined {
  const text = log?.events[sequence];
  if (!log || text === undefined) return "event_missing";
  if (log.hashes[sequence] !== hashAt(log, sequence, text)) return "event_changed";
  try {
    decode(text);
    return undefined;
  } catch {
    return "event_unreadable";
  }
}
