/** Owns: that no event is appended which its schema would not let anybody read again. */
import { CoordinationError } from "../../contracts/errors.ts";
import { FACT_PAYLOADS } from "../../contracts/facts.ts";
import { isFact, type RunEvent } from "../../contracts/run-event.ts";
import { describeProblems, EVENT_BOUNDS, parseBounded } from "../../contracts/validation.ts";

/**
 * Throws where an event breaks its schema: stored, it could never be read again, and its whole run with it. The
 * projection is made of what the facts hold, so the facts are enough.
 */
export function assertReadable(events: readonly RunEvent[]): void {
  for (const event of events) {
    if (!isFact(event) || FACT_PAYLOADS[event.type].safeParse(event.payload).success) continue;
    const parsed = parseBounded(FACT_PAYLOADS[event.type], event.payload, EVENT_BOUNDS);
    const why = parsed.ok ? "" : describeProblems(parsed.problems);
    throw new CoordinationError("INPUT_INVALID", `${event.eventId} (${event.type}): ${why}`);
  }
}
