/** Owns: how coordination is measured from its logs. */
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { statsSchema } from "../../src/agents/coordination/contracts/config/stats-config.ts";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import {
  addCounts,
  createCoordinationCounter,
  createZeroCounts,
  type CoordinationCounts,
} from "../../src/agents/coordination/stats/count-coordination.ts";
import { findPercentile, measureCounts, type Measure } from "../../src/agents/coordination/stats/measures.ts";
import { recordConflicts, WRITERS } from "../cli/recorded-conflicts.ts";
import { recordLedger, RESEARCH } from "../cli/recorded-ledger.ts";
import { ENDED_PLAN, recordPlans } from "../cli/recorded-plan.ts";
import { recordQuestions, SPAWNS } from "../cli/recorded-questions.ts";
import { endDone } from "../support/scripted-runner.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { runCheckedPlan } from "./checked-plan.ts";
import { createRuling, waitUntilQuiet } from "./gates-world.ts";
import { createIsolated, runIsolated } from "./isolated-run.ts";
import { admit, dispatch, finish, openPlan, planScene, planStep, startStep } from "./planned-scene.ts";
import { plan } from "./planned-world.ts";
import { SETTLE } from "./scene.ts";

const TARGETS = statsSchema.parse({});

async function readRecorded(
  record: (file: string, folder: string) => Promise<unknown>,
  id: string,
): Promise<RunEvent[]> {
  using folder = createTempFolder();
  await record(folder.file("ledger.sqlite"), folder.path);
  const ledger = await openTestLedger(folder.file("ledger.sqlite"));
  const events = await ledger.read(id as CoordinationId, { from: 0, limit: 10_000 });
  await ledger.close();
  return events;
}

function countEvents(events: readonly RunEvent[]): CoordinationCounts {
  const counter = createCoordinationCounter();
  for (const event of events) counter.take(event);
  return counter.counts;
}

const findMeasure = (counts: CoordinationCounts, name: Measure["name"]): Measure | undefined =>
  measureCounts(counts, TARGETS).find((measure) => measure.name === name);

describe("the counts of a coordination", () => {
  it("tell its end, its first result and its results", async () => {
    const counts = countEvents(await readRecorded((file) => recordLedger(file, [RESEARCH]), RESEARCH.id));
    expect(counts).toMatchObject({ coordinations: 1, ended: 1, succeeded: 0, duplicates: 0, held: 0 });
    expect(counts.results).toBe(counts.completed);
    expect(counts.firstResultMs).toHaveLength(1);
    expect(counts.firstResultMs[0]).toBeGreaterThan(0);
  });

  it("tell what was held, what people were asked, and how long they took", async () => {
    const counts = countEvents(await readRecorded((file) => recordQuestions(file), SPAWNS));
    expect(counts.held).toBeGreaterThan(0);
    expect(counts.results).toBeGreaterThanOrEqual(counts.held);
    expect(counts.questions).toBeGreaterThanOrEqual(counts.answerMs.length + counts.expired);
    expect(Math.min(...counts.answerMs)).toBeGreaterThan(0);
  });

  it.each([
    ["passes its checks", ["pass"], { results: 1, held: 0 }],
    ["is revised once", ["revise", "pass"], { results: 2, held: 1 }],
    ["is rejected", ["fail"], { results: 1, held: 1 }],
  ] as const)("tell a result that %s", async (_, verdicts, expected) => {
    const { run } = await runCheckedPlan((_request, time) => createRuling(verdicts[time - 1] ?? "pass"), {
      scripts: [endDone({ n: 1 }), endDone({ n: 2 })],
    });
    await run.advance(10_000);
    await waitUntilQuiet(run.world);
    expect(countEvents(run.world.ledger.events().flat())).toMatchObject(expected);
    await run.close();
  });

  it("take a result that only waits for its merge for none that was held", async () => {
    const run = await runIsolated({ a: { "a.txt": "new\n" } }, plan([createIsolated("a")]));
    expect(run.events("result.held")).toHaveLength(1);
    expect(countEvents(run.world.ledger.events().flat())).toMatchObject({ results: 1, held: 0 });
    await run.close();
  });

  it.each([
    ["person", false, [5_000]],
    ["operator", false, [5_000]],
    ["agent", false, []],
    ["plugin", false, []],
    ["person", true, []],
  ])(
    "tell how long people took since they were asked: an answer of %s, refused: %s",
    (kind, isRefused, ms) => {
      const createFact = (type: string, atMs: number, payload = {}) =>
        ({
          type,
          timestamp: new Date(atMs).toISOString(),
          payload: { escalationId: "escalation-1", ...payload },
        }) as unknown as RunEvent;
      const counts = countEvents([
        createFact("coordination.escalated", 0),
        createFact("escalation.forwarded", 10_000),
        createFact("escalation.answered", 15_000, {
          by: { kind },
          ...(isRefused && { refused: "not_an_answer" }),
        }),
        createFact("escalation.closed", 15_000, { resolution: "answered" }),
      ]);
      expect(counts.answerMs).toEqual(ms);
    },
  );

  it("leave out telling the owner of a plan, which is no step of it", async () => {
    const events = await readRecorded((file) => recordPlans(file, [ENDED_PLAN]), ENDED_PLAN.id);
    const steps = events.filter(({ type, nodeId }) => type === "step.completed" && nodeId !== "@delivery");
    expect(events.some(({ type, nodeId }) => type === "step.completed" && nodeId === "@delivery")).toBe(true);
    expect(countEvents(events).completed).toBe(steps.length);
  });

  it("leave out a plan that ended with its parent, whose owner was not to be told", () => {
    const { log } = planScene(
      openPlan({ steps: 1 }),
      admit(planStep("a")),
      dispatch("a"),
      startStep("a"),
      finish("a"),
      { type: "cancelCoordination", by: "parent" },
      SETTLE,
    );
    expect(countEvents(log)).toMatchObject({ ended: 1, tellings: 0, delivered: 0 });
  });

  it("leave out sessions that are told a question in place of people", () => {
    const createTold = (tellingId: string, delivery: string) =>
      ({
        type: "session.told",
        timestamp: new Date(0).toISOString(),
        payload: { tellingId, delivery },
      }) as unknown as RunEvent;
    const counts = countEvents([
      createTold("question:escalation-1", "not_delivered"),
      createTold("answer:escalation-1", "delivered"),
      createTold("result:step-1:1", "not_delivered"),
    ]);
    expect(counts).toMatchObject({ tellings: 2, delivered: 1 });
  });

  it.each([
    ["hitl", 1],
    ["none", 0],
  ] as const)(
    "tell a spent budget as a question only where people are asked: %s",
    (escalationPolicy, questions) => {
      const { log } = planScene(
        openPlan({
          steps: 2,
          policy: { escalationPolicy },
          plan: { budget: { spawns: 1 } },
          questions: { answerMs: 600_000 },
        }),
        admit(planStep("a"), planStep("b", { after: ["a"] })),
        dispatch("a"),
        startStep("a"),
        finish("a", 1, { usage: { spawns: 1 } }),
        { type: "tripBreaker" },
      );
      expect(log.some(({ type }) => type === "coordination.escalated")).toBe(true);
      expect(countEvents(log).questions).toBe(questions);
    },
  );

  it("tell conflicts", async () => {
    const counts = countEvents(await readRecorded(recordConflicts, WRITERS));
    expect(counts.conflicts).toBeGreaterThan(0);
    expect(counts.lostUpdates).toBeLessThanOrEqual(counts.conflicts);
  });

  it("of several are their sum, in whatever order they are added", () => {
    const values = fc.record({ ended: fc.nat(9), held: fc.nat(9), answerMs: fc.array(fc.nat(99)) });
    fc.assert(
      fc.property(fc.array(values), (several) => {
        const add = (some: typeof several): CoordinationCounts => {
          const sum = createZeroCounts();
          for (const part of some) addCounts(sum, { ...createZeroCounts(), ...part });
          return { ...sum, answerMs: sum.answerMs.toSorted((a, b) => a - b) };
        };
        expect(add(several)).toEqual(add(several.toReversed()));
        expect(add(several).ended).toBe(several.reduce((sum, { ended }) => sum + ended, 0));
        expect(add(several).answerMs).toHaveLength(several.flatMap(({ answerMs }) => answerMs).length);
      }),
    );
  });
});

describe("a measure", () => {
  test.each([
    [{ ended: 20, succeeded: 19 }, "success", 0.95, "met"],
    [{ ended: 100, succeeded: 94 }, "success", 0.94, "missed"],
    [{ ended: 19, succeeded: 0 }, "success", 0, "few"],
    [{ results: 100, held: 21 }, "held", 0.21, "missed"],
    [{ completed: 1, duplicates: 1 }, "duplicates", 1, "missed"],
    [{ conflicts: 0, lostUpdates: 0 }, "lostUpdates", 0, "met"],
    [{ tellings: 100, delivered: 99 }, "delivery", 0.99, "met"],
  ] as const)("of %j: %s is %d, which is %s", (fields, name, value, verdict) => {
    expect(findMeasure({ ...createZeroCounts(), ...fields }, name)).toMatchObject({ value, verdict });
  });

  it("of nothing has no value, and no verdict", () => {
    expect(findMeasure(createZeroCounts(), "answers")).toEqual({
      name: "answers",
      unit: "ms",
      target: { is: "at most", value: 3_600_000 },
      count: 0,
      verdict: "few",
    });
  });

  it("of a percentile is a value that 95 of 100 do not exceed, and 94 do not reach", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(1_000), { minLength: 1 }), (values) => {
        const value = findPercentile(values, 0.95) ?? -1;
        expect(values).toContain(value);
        expect(values.filter((other) => other <= value).length).toBeGreaterThanOrEqual(0.95 * values.length);
        expect(values.filter((other) => other < value).length).toBeLessThan(0.95 * values.length);
      }),
    );
  });
});
