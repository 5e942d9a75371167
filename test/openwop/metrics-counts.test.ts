/** Owns: what is counted of recorded coordinations, once each, and that nothing that users name becomes a label. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { METRICS, countSeries } from "../../src/plugins/metrics/definitions.ts";
import { recordConflicts } from "../cli/recorded-conflicts.ts";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type { EpochMs, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { step } from "../core/plan-scene.ts";
import { admit, dispatch, finish, openPlan, planStep, startStep } from "../core/planned-scene.ts";
import { ENDED_PLAN, FORKED_PLAN, recordPlans, RUNNING_PLAN, type PlanScript } from "../cli/recorded-plan.ts";
import { recordQuestions, SPAWNS } from "../cli/recorded-questions.ts";
import { forge } from "../cli/forge.ts";
import { fillLedger } from "../page/filled-ledger.ts";
import { forge as forgeDamage } from "../support/ledger-fixtures-damage.ts";
import { createAuthor, openingOf, openRun, spawnOf } from "../support/ledger-fixtures.ts";
import {
  createManualClock,
  createTempFolder,
  openTestLedger,
  TEST_EPOCH_MS,
} from "../support/temp-ledger.ts";
import type { TempFolder } from "../support/temp-ledger.ts";
import { openMetrics } from "./metrics-scene.ts";

let folder: TempFolder;
let path: string;

beforeEach(() => {
  folder = createTempFolder();
  path = folder.file("ledger.sqlite");
});

afterEach(() => {
  folder[Symbol.dispose]();
});

/** Selects what is said of one metric. */
function selectOf(counted: Readonly<Record<string, number>>, name: string): Record<string, number> {
  return Object.fromEntries(Object.entries(counted).filter(([series]) => series.startsWith(name)));
}

describe("of a plan", () => {
  it("counts how its steps ended, how long they waited and took, and what is open", async () => {
    await recordPlans(path, [RUNNING_PLAN]);
    await using scene = await openMetrics(path);
    expect(await scene.count()).toEqual({
      'coordination_opened_total{origin="plan"}': 1,
      'coordination_attempts_total{lane="control"}': 1,
      'coordination_attempts_total{lane="data"}': 4,
      'coordination_retries_total{cause="failed"}': 1,
      'coordination_steps_total{lane="data",outcome="completed"}': 1,
      'coordination_step_wait_seconds_count{lane="control"}': 1,
      'coordination_step_wait_seconds_sum{lane="control"}': 0.1,
      'coordination_step_wait_seconds_count{lane="data"}': 4,
      'coordination_step_wait_seconds_sum{lane="data"}': expect.any(Number) as number,
      'coordination_step_duration_seconds_count{lane="data",outcome="completed"}': 1,
      'coordination_step_duration_seconds_sum{lane="data",outcome="completed"}': 10,
      'coordination_questions_total{cause="retries_exhausted"}': 1,
      coordination_open_coordinations: 1,
      coordination_open_steps: 4,
      coordination_open_questions: 1,
      'coordination_ledger_runs{kind="coordination"}': 1,
    });
  });

  it("counts its end, its delivery and steps that were skipped; what a fork carried is nobody's work", async () => {
    await recordPlans(path, [ENDED_PLAN, FORKED_PLAN]);
    await using scene = await openMetrics(path);
    const counted = await scene.count();
    expect(selectOf(counted, "coordination_steps_total")).toEqual({
      'coordination_steps_total{lane="data",outcome="completed"}': 2,
      'coordination_steps_total{lane="data",outcome="skipped"}': 1,
      'coordination_steps_total{lane="data",outcome="timed_out"}': 1,
    });
    expect(selectOf(counted, "coordination_attempts_total")).toEqual({
      'coordination_attempts_total{lane="data"}': 4,
    });
    expect(counted).toMatchObject({
      'coordination_ended_total{status="partial"}': 1,
      'coordination_deliveries_total{outcome="delivered"}': 1,
      'coordination_step_duration_seconds_sum{lane="data",outcome="timed_out"}': 5,
    });
  });

  it("waits for the time of a retry before its wait counts", async () => {
    await recordPlans(path, [RUNNING_PLAN]);
    await using scene = await openMetrics(path);
    const { 'coordination_step_wait_seconds_sum{lane="data"}': waited = 0 } = await scene.count();
    // `fetch` at once, `slow` after 0.4 s, `parse` after 0.5 s; the retry was due about 1 s after 10 s and began at 20 s.
    expect(waited).toBeGreaterThan(0.4 + 0.5 + 8);
    expect(waited).toBeLessThan(0.4 + 0.5 + 9.5);
  });
});

describe("of questions, held results and conflicts", () => {
  it("counts what was asked, what came of it, and how long people took", async () => {
    await recordQuestions(path);
    await using scene = await openMetrics(path);
    expect(await scene.count()).toMatchObject({
      coordination_held_results_total: 6,
      'coordination_held_results_ruled_total{ruling="verified"}': 1,
      'coordination_held_results_ruled_total{ruling="approved"}': 1,
      'coordination_held_results_ruled_total{ruling="revised"}': 1,
      'coordination_retries_total{cause="revision"}': 1,
      'coordination_questions_total{cause="confidence"}': 4,
      'coordination_questions_total{cause="verifier"}': 1,
      'coordination_questions_total{cause="agent"}': 1,
      'coordination_questions_closed_total{resolution="approved"}': 1,
      'coordination_questions_closed_total{resolution="denied"}': 1,
      'coordination_question_answer_seconds_sum{by="operator"}': 29.9,
      'coordination_question_answer_seconds_count{by="operator"}': 1,
      'coordination_question_answer_seconds_sum{by="person"}': 10,
      'coordination_question_answer_seconds_count{by="person"}': 1,
      coordination_open_steps: 3,
      coordination_open_questions: 4,
    });
  });

  it("counts conflicts by their strategy and by what came of them for who asked", async () => {
    await recordConflicts(path, folder.path);
    await using scene = await openMetrics(path);
    expect(selectOf(await scene.count(), "coordination_conflicts_total")).toEqual({
      'coordination_conflicts_total{outcome="refused",strategy="owner_wins"}': 3,
      'coordination_conflicts_total{outcome="refused",strategy="manual_review"}': 1,
    });
  });
});

describe("of what was refused or stopped", () => {
  it("counts outcomes of attempts that are over, and plans that begin nothing more", async () => {
    const stopped: PlanScript = {
      id: "plan-stopped",
      objective: "Stop at the first failure",
      failurePolicy: { retryBudget: 1, timeoutPolicy: "fail_fast", escalationPolicy: "none" },
      steps: [step("first", [], { retry: { budget: 1, backoffMs: 1_000 } }), step("second", ["first"])],
      acts: [
        [0, "dispatch", "first", 1],
        [1_000, "fail", "first", 1],
        [10_000, "dispatch", "first", 2],
        [11_000, "complete", "first", 1, {}],
        [12_000, "fail", "first", 2],
      ],
    };
    await recordPlans(path, [stopped]);
    await using scene = await openMetrics(path);
    expect(await scene.count()).toMatchObject({
      'coordination_fenced_outcomes_total{because="stale_attempt"}': 1,
      'coordination_plan_stops_total{because="fail_fast"}': 1,
      'coordination_steps_total{lane="data",outcome="failed"}': 1,
    });
  });

  it("counts a plan that stops at its budget without people as no question", async () => {
    const store = await openTestLedger(path);
    await store.append(
      createAuthor("spent").append(
        openPlan({ steps: 2, plan: { budget: { spawns: 1 } }, questions: { answerMs: 600_000 } }),
        admit(planStep("a"), planStep("b", { after: ["a"] })),
        dispatch("a"),
        startStep("a"),
        finish("a", 1, { usage: { spawns: 1 } }),
        { type: "tripBreaker" },
      ),
    );
    await store.close();
    await using scene = await openMetrics(path);
    const counted = await scene.count();
    expect(counted).toMatchObject({ 'coordination_plan_stops_total{because="budget"}': 1 });
    expect(selectOf(counted, "coordination_questions")).toEqual({});
  });

  it("counts the end of a plan that ended with its parent, and no delivery", async () => {
    const store = await openTestLedger(path);
    await store.append(
      createAuthor("nested").append(
        openPlan({ steps: 1 }),
        admit(planStep("a")),
        dispatch("a"),
        startStep("a"),
        finish("a"),
        { type: "cancelCoordination", by: "parent" },
        { type: "settleCoordination" },
      ),
    );
    await store.close();
    await using scene = await openMetrics(path);
    const counted = await scene.count();
    expect(counted).toMatchObject({ 'coordination_ended_total{status="success"}': 1 });
    expect(selectOf(counted, "coordination_deliveries_total")).toEqual({});
  });

  it("counts what the operator's budget stopped", async () => {
    const store = await openTestLedger(path);
    const opening = { ...openingOf("trace-spender"), budget: { spawns: 1 } } as Command;
    const stop: Command = { type: "stopAtBudget", stepId: "@owner" as StepId, stopped: "spawn" };
    await store.append(createAuthor("spender").append(opening, spawnOf("call-first"), stop));
    await store.close();
    await using scene = await openMetrics(path);
    expect(await scene.count()).toMatchObject({
      'coordination_budget_stops_total{limit="spawns",stopped="spawn"}': 1,
    });
  });
});

describe("what was appended", () => {
  it("is counted once, however often it is asked for, and from the beginning of the process on", async () => {
    await recordPlans(path, [RUNNING_PLAN]);
    await using whole = await openMetrics(path);
    const first = await whole.count();
    expect(await whole.count()).toEqual(first);
    // Before 20 s `fetch` was opened, admitted and failed once: what follows is understood all the same.
    const store = await openTestLedger(path, { mode: "read" });
    const after = await store.positionBefore((TEST_EPOCH_MS + 20_000) as EpochMs);
    await store.close();
    await using later = await openMetrics(path, { after });
    const counted = await later.count();
    expect(counted).toMatchObject({
      'coordination_retries_total{cause="failed"}': 1,
      'coordination_attempts_total{lane="data"}': 2,
      'coordination_steps_total{lane="data",outcome="completed"}': 1,
      coordination_open_coordinations: 1,
    });
    expect(counted).not.toHaveProperty('coordination_opened_total{origin="plan"}');
  });

  it("is counted while it is appended by another connection, by scrapes and by the looks between", async () => {
    const clock = createManualClock();
    const store = await openTestLedger(path, { clock });
    const { author, request } = openRun("first");
    await store.append(request);
    await using scene = await openMetrics(path, { clock });
    expect(await scene.count()).toMatchObject({ 'coordination_attempts_total{lane="data"}': 1 });
    await store.append(author.append(spawnOf("call-second")));
    clock.set(TEST_EPOCH_MS + 1_000);
    clock.fire();
    expect(await scene.count()).toMatchObject({ 'coordination_attempts_total{lane="data"}': 2 });
    await store.close();
  });

  it("is counted up to damage and behind it, and the damage is told", async () => {
    const store = await openTestLedger(path);
    const { author, request } = openRun("damaged");
    await store.append(request);
    await store.append(author.append(spawnOf("call-next")));
    await store.append(openRun("sound").request);
    await store.close();
    forge(
      path,
      "drop trigger event_no_update; update event set payload = '{}' where sequence = 0 and run_key = 1",
    );
    await using scene = await openMetrics(path);
    const counted = await scene.count();
    expect(counted["coordination_metrics_unreadable_total"]).toBeGreaterThan(0);
    expect(counted).toMatchObject({ 'coordination_opened_total{origin="observed"}': 1 });
  });

  it.each([
    ["cannot be read", "update event set payload = '{}' where sequence = 2"],
    ["lacks an event", "delete from event where sequence = 2"],
  ])("has the open questions of the others where one log %s", async (_what, sql) => {
    await recordQuestions(path);
    const readQuestions = async (): Promise<number> => {
      await using scene = await openMetrics(path);
      const name = "coordination_open_questions";
      return (await scene.read()).get(name)?.samples.get(name) ?? Number.NaN;
    };
    const before = await readQuestions();
    forgeDamage(path, `${sql} and run_key = (select run_key from run where run_id = '${SPAWNS}')`);
    const after = await readQuestions();
    expect(after).toBeGreaterThan(0);
    expect(after).toBeLessThan(before);
  });
});

describe("the series", () => {
  it("are the same whatever a ledger holds, at most 500, and none has a name that users chose", async () => {
    await fillLedger(path);
    await using scene = await openMetrics(path);
    const before = [...(await scene.read()).values()].flatMap(({ samples }) => [...samples.keys()]);
    const store = await openTestLedger(path);
    for (const [index, name] of ['x"} 1\n', "{evil}", "agent\\", "co-1"].entries()) {
      const author = createAuthor(`hostile-${index}`);
      await store.append(author.append(openingOf(name), spawnOf(name)));
    }
    await store.close();
    const after = [...(await scene.read()).values()].flatMap(({ samples }) => [...samples.keys()]);
    expect(after).toEqual(before);
    expect(after.length).toBeLessThanOrEqual(500);
    expect(after).toHaveLength(Object.values(METRICS).reduce((sum, metric) => sum + countSeries(metric), 0));
  });

  it("are not made of values that are not known, whoever asks", async () => {
    await recordPlans(path, [ENDED_PLAN]);
    await using scene = await openMetrics(path);
    const before = await scene.metrics.scrape();
    scene.metrics.noteAppend(1, 'written"} 1\nevil{x="' as "written");
    expect(await scene.metrics.scrape()).toBe(before);
  });

  it("tell how long appends took, by what came of them", async () => {
    await recordPlans(path, [ENDED_PLAN]);
    await using scene = await openMetrics(path);
    scene.metrics.noteAppend(0.002, "written");
    scene.metrics.noteAppend(0.5, "failed");
    expect(selectOf(await scene.count(), "coordination_ledger_append_seconds_sum")).toEqual({
      'coordination_ledger_append_seconds_sum{outcome="failed"}': 0.5,
      'coordination_ledger_append_seconds_sum{outcome="written"}': 0.002,
    });
  });
});
