/**
 * L4: a history that a release recorded folds to the same state for ever. The files are never edited; a release that
 * records differently adds its own (record-histories.ts).
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FACT_PAYLOADS, type FactType } from "../../src/agents/coordination/contracts/facts.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { listClaimChanges } from "../../src/agents/coordination/ledger/claim-changes.ts";
import type { KnownCoordination } from "../../src/agents/coordination/ledger/state.ts";
import { listEventReferences, summarizeCoordination } from "../../src/agents/coordination/ledger/summary.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { verifyWorkflowRuns } from "../../src/agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import { summarizeRun } from "../../src/agents/coordination/workflow/state/run-view.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryLedger } from "../support/memory-store.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import {
  foldEvents,
  foldRun,
  foldThroughout,
  foldWithNotes,
  foldWorkflowEvents,
  foldWorkflowRun,
  halfOf,
  readRuns,
  readWorkflowRuns,
} from "./fold-histories.ts";
import { REVIEWED_ENDS, tellEnd } from "./reviewed-ends.ts";

/** Facts that no recorded history holds, each with the reason. There is none at present. */
const NEVER_RECORDED: Partial<Record<FactType, string>> = {};

const FOLDED = ".folded.jsonl";
const WORKFLOW = ".workflow.jsonl";
const names = readdirSync(import.meta.dirname).filter(
  (name) => name.endsWith(".jsonl") && !name.endsWith(FOLDED),
);
const workflows = names.filter((name) => name.endsWith(WORKFLOW));
const histories = names.filter((name) => !name.endsWith(WORKFLOW));
const isFirstRelease = (name: string): boolean => name.startsWith("0.1.0-");
const later = histories.filter((name) => !isFirstRelease(name));

function readText(name: string): string {
  return readFileSync(join(import.meta.dirname, name), "utf8");
}

function readFolded(name: string): unknown[] {
  const lines = readText(name.replace(/\.jsonl$/u, FOLDED)).trimEnd();
  return lines.split("\n").map((line): unknown => JSON.parse(line));
}

function copyAsJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

describe("the recorded histories", () => {
  it("are there, and hold every fact and every end of a step", () => {
    expect(histories).toContain("0.1.0-gateway.jsonl");
    expect(histories).toContain("0.1.0-conflict.jsonl");
    const events = histories.flatMap(readRuns).flat();
    const met = new Set<string>(events.map(({ type }) => type));
    const missing = Object.keys(FACT_PAYLOADS).filter((type) => !met.has(type));
    expect(missing).toEqual(Object.keys(NEVER_RECORDED));
    const reconciled = events.filter(({ payload }) => "via" in payload && payload.via === "reconciled");
    expect(reconciled.length).toBeGreaterThan(2);
    expect(events.some((event) => event.type === "step.admitted" && event.payload.parentStepId)).toBe(true);
  });

  it.each(histories.filter(isFirstRelease))("%s folds to the state that it must give for ever", (name) => {
    const expected: unknown = JSON.parse(readText(name.replace(/jsonl$/u, "expected.json")));
    expect(copyAsJson(readRuns(name).map(foldEvents))).toEqual(expected);
  });

  it.each(later)("%s folds to the states that it must give for ever", (name) => {
    const states = readRuns(name).map((events) => foldThroughout(events, foldWithNotes));
    expect(copyAsJson(states)).toEqual(readFolded(name));
  });

  it("came to what a person read in their logs", () => {
    const ends = later.flatMap((name) =>
      readRuns(name).map((events): [string, object] => [
        `${name.replace(".jsonl", "")} ${events[0]?.runId}`,
        tellEnd(foldRun(halfOf(events)), foldRun(events)),
      ]),
    );
    expect(Object.fromEntries(ends)).toEqual(REVIEWED_ENDS);
  });

  it.each(histories)("%s has as many ends of steps as were counted when it ended", (name) => {
    for (const events of readRuns(name)) {
      const counts = countEnds(foldRun(events));
      for (const { type, payload } of events)
        if (type === "coordination.terminal") expect(counts).toEqual({ skipped: 0, ...payload.steps });
    }
  });

  it.each(histories)("%s is a ledger that is verified", async (name) => {
    const store = createMemoryLedger().open(createFakeClock());
    for (const events of readRuns(name)) {
      const [{ runId }] = events as [RunEvent, ...RunEvent[]];
      const references = events.flatMap(listEventReferences);
      const claims = events.flatMap(listClaimChanges);
      const summary = summarizeCoordination(foldRun(events));
      await store.append({ runId, events, summary, references, claims, contents: [] });
    }
    const { problems } = await verifyLedger(store);
    // A fork was recorded without its source.
    expect(problems.filter(({ message }) => !/^its source \S+ is not there$/u.test(message))).toEqual([]);
  });
});

describe("the recorded workflow runs", () => {
  it("are a run, the run within it and its worker, with an agent and a question", () => {
    const runs = workflows.flatMap(readWorkflowRuns);
    const ended = runs.map((events) => [events[0]?.payload, events.at(-1)?.type]);
    expect(ended).toMatchObject([
      [{ workflowId: "nested" }, "run.completed"],
      [{ workflowId: "supervised", parent: { runId: "asked-3" } }, "run.completed"],
      [{ workflowId: "worker-b" }, "run.completed"],
    ]);
    const types = runs.flat().map(({ type }) => type);
    expect(types).toEqual(expect.arrayContaining(["coordination.model_asked", "interrupt.resolved"]));
  });

  it.each(workflows)("%s folds to the states that it must give for ever", (name) => {
    const states = readWorkflowRuns(name).map((events) => foldThroughout(events, foldWorkflowEvents));
    expect(copyAsJson(states)).toEqual(readFolded(name));
  });

  it("came to what a person read in their logs", () => {
    const runs = workflows.flatMap(readWorkflowRuns).map(foldWorkflowRun);
    const ends = runs.map(({ phase, nodes, variables }) => {
      const states = [...nodes.values()].map(({ nodeId, status }) => `${nodeId} ${status}`);
      return [phase.kind, variables.get("got"), states];
    });
    const answers = runs.flatMap(({ nodes }) => nodes.get("dispatch")?.answers ?? []);
    expect(answers.map(({ kind, by, resumeValue }) => [kind, by, resumeValue])).toEqual([
      ["approval", "alice", { action: "accept" }],
    ]);
    expect(ends).toEqual([
      ["completed", undefined, ["sub completed", "beside completed", "join completed"]],
      ["completed", "worker-b did it", ["supervisor completed", "dispatch completed"]],
      ["completed", undefined, ["w0 completed"]],
    ]);
  });

  it.each(workflows)("%s is a ledger that is verified", async (name) => {
    const store = createMemoryWorkflowLedger().open();
    for (const events of readWorkflowRuns(name)) {
      const run = foldWorkflowRun(events);
      await store.append({ runId: run.runId, events, summary: summarizeRun(run, "driver") });
    }
    expect((await verifyWorkflowRuns(store)).problems).toEqual([]);
  });
});

/** The delivery of a plan is no step of it. */
function countEnds({ steps }: KnownCoordination): object {
  const ends = [...steps.values()].flatMap(({ spec, phase }) =>
    spec.stepId === "@delivery" ? [] : [phase.status],
  );
  const count = (status: string): number => ends.filter((end) => end === status).length;
  return {
    total: ends.length,
    completed: count("completed"),
    failed: count("failed"),
    timedOut: count("timed_out"),
    cancelled: count("cancelled"),
    skipped: count("skipped"),
  };
}
