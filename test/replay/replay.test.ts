/**
 * L4: a history that a release recorded folds to the same state for ever. The files are never edited; a release that
 * records differently adds its own.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decodeEvent, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { fold } from "../../src/agents/coordination/ledger/evolve.ts";
import { referencesOf, summarize } from "../../src/agents/coordination/ledger/summary.ts";
import { viewCoordination } from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryLedger } from "../support/memory-store.ts";

const histories = readdirSync(import.meta.dirname).filter((name) => name.endsWith(".jsonl"));

function runsOf(name: string): RunEvent[][] {
  const lines = readFileSync(join(import.meta.dirname, name), "utf8")
    .trimEnd()
    .split("\n");
  const events = lines.map((line) => decodeEvent(JSON.parse(line)));
  return [...Map.groupBy(events, ({ runId }) => runId).values()];
}

function foldEvents(events: readonly RunEvent[]): object {
  const [first] = events;
  if (!first) throw new Error("a run without events");
  const state = fold(first.runId, events);
  if (state.kind === "unopened") throw new Error("a run that was not opened");
  // The content of a state, not its layout in memory.
  const { openSteps, lastFactId, nextSequence, iterations } = state;
  const causes = [...state.steps.values()].map(({ lastFactId: fact, chainEventId: chain }) => ({
    fact,
    chain,
  }));
  const view = viewCoordination(state);
  // The times of events, which later releases show.
  const escalations = view.escalations.map(({ askedAtMs: _, ...question }) => question);
  const conflicts = view.conflicts.map(({ resolvedAtMs: _, ...conflict }) => conflict);
  return {
    summary: summarize(state),
    references: events.flatMap(referencesOf),
    view: { ...view, escalations, conflicts },
    position: { nextSequence, iterations, lastFactId, openSteps, causes },
  };
}

describe("the recorded histories", () => {
  it("are there, and hold every fact and every end of a step", () => {
    expect(histories).toContain("0.1.0-gateway.jsonl");
    expect(histories).toContain("0.1.0-conflict.jsonl");
    const events = histories.flatMap(runsOf).flat();
    const met = new Set(events.map(({ type }) => type));
    for (const type of [
      "step.admitted",
      "step.completed",
      "step.failed",
      "step.timed_out",
      "conflict.resolved",
    ])
      expect(met).toContain(type);
    const reconciled = events.filter(({ payload }) => "via" in payload && payload.via === "reconciled");
    expect(reconciled.length).toBeGreaterThan(2);
    expect(events.some((event) => event.type === "step.admitted" && event.payload.parentStepId)).toBe(true);
  });

  it.each(histories)("%s folds to the state that it must give for ever", (name) => {
    const expected: unknown = JSON.parse(
      readFileSync(join(import.meta.dirname, name.replace(/jsonl$/u, "expected.json")), "utf8"),
    );
    expect(JSON.parse(JSON.stringify(runsOf(name).map(foldEvents)))).toEqual(expected);
  });

  it.each(histories)("%s is a ledger that is verified", async (name) => {
    const store = createMemoryLedger().open(createFakeClock());
    for (const events of runsOf(name)) {
      const [{ runId }] = events as [RunEvent, ...RunEvent[]];
      const state = fold(runId, events);
      if (state.kind === "unopened") throw new Error("a run that was not opened");
      const references = events.flatMap(referencesOf);
      await store.append({ runId, events, summary: summarize(state), references, contents: [] });
    }
    expect((await verifyLedger(store)).problems).toEqual([]);
  });
});
