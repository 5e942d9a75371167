/** Owns: that a result which was checked counts only when each of its checks let it pass, and was sure of it (G1). */
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { EventCheck } from "./check-log.ts";
import type { FactOf, PayloadOf } from "./journal.ts";

interface Books {
  readonly gates: Map<string, NonNullable<PayloadOf<"step.admitted">["gate"]>>;
  /** The verdicts on an attempt, by run, step and attempt. */
  readonly verdicts: Map<string, PayloadOf<"result.verified">[]>;
}

export function createResultCheck(): EventCheck {
  const books: Books = { gates: new Map(), verdicts: new Map() };
  return { see: (event) => seeEvent(books, event) };
}

function seeEvent(books: Books, event: RunEvent): string[] {
  if (event.type === "step.admitted" && event.payload.gate)
    books.gates.set(`${event.runId}/${event.payload.stepId}`, event.payload.gate);
  if (event.type === "result.verified") {
    const key = nameAttempt(event);
    books.verdicts.set(key, [...(books.verdicts.get(key) ?? []), event.payload]);
  }
  return event.type === "step.completed" ? checkRelease(books, event) : [];
}

function nameAttempt({ runId, payload }: FactOf<"result.verified"> | FactOf<"step.completed">): string {
  return `${runId}/${payload.stepId}:${payload.attempt}`;
}

function checkRelease({ gates, verdicts }: Books, event: FactOf<"step.completed">): string[] {
  const gate = gates.get(`${event.runId}/${event.payload.stepId}`);
  if (event.payload.released !== "verified" || !gate) return [];
  const key = nameAttempt(event);
  const passed = (verdicts.get(key) ?? []).filter(
    ({ verdict, confidence = 10_000 }) => verdict === "pass" && confidence >= (gate.criticThreshold ?? 0),
  );
  const missing = (gate.checks ?? []).filter((check) => !passed.some((one) => one.check === check));
  return missing.map((check) => `G1: ${key} counts, and ${check} did not pass it`);
}
