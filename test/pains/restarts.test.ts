/** The pains that need a restart, or gateways with few places. Both gateways are killed once, for all of them. */
import { afterAll, beforeAll, it } from "vitest";
import { createSlowRules } from "./failing-model.ts";
import { createKilledAttempt, KILLED_AFTER_COMPACTION, KILLED_WITH_LONG_RESULT } from "./killed-stories.ts";
import { openPair, type Pair } from "./pair.ts";
import { createLostApprovals, LOST_ACKNOWLEDGEMENT, ORPHANS, tellDeadlock } from "./restart-stories.ts";

const LOST_APPROVALS = createLostApprovals();
const STORIES = [ORPHANS, LOST_ACKNOWLEDGEMENT, LOST_APPROVALS];
const KILLED_ATTEMPT = createKilledAttempt();

let pair: Pair;

/** An error before the kill fails the test of its own story alone. */
const failures = new Map<object, unknown>();

async function prepare(story: object, begin: () => Promise<void>): Promise<void> {
  await begin().catch((error: unknown) => failures.set(story, error));
}

async function tellEnd(story: object, end: () => Promise<void>): Promise<void> {
  if (failures.has(story)) throw failures.get(story);
  await end();
}

beforeAll(async () => {
  pair = await openPair({
    createRules: createSlowRules,
    configPatch: {
      agents: { defaults: { subagents: { maxConcurrent: 2 } } },
    },
  });
});

beforeAll(async () => {
  for (const story of [KILLED_AFTER_COMPACTION, KILLED_WITH_LONG_RESULT])
    await prepare(story, () => story.begin(pair.coordinated));
  await Promise.all(STORIES.map((story) => prepare(story, () => story.begin(pair))));
  // Last, because it and an orphan hold the two places until the kill.
  await prepare(KILLED_ATTEMPT, () => KILLED_ATTEMPT.begin(pair.coordinated));
  const stages = [pair.plain, pair.coordinated];
  await Promise.all(stages.map(({ gateway }) => gateway.kill9()));
  await Promise.all(stages.map((stage) => stage.restart()));
});

afterAll(() => pair.close());

it("P2 a restart orphans running children: their work is not done", () =>
  tellEnd(ORPHANS, () => ORPHANS.end(pair)));
it("P7 a lost acknowledgement: the result is told a second time", () =>
  tellEnd(LOST_ACKNOWLEDGEMENT, () => LOST_ACKNOWLEDGEMENT.end(pair)));
it("P13 deadlock on a place: who waits for children holds the place that they need", () =>
  tellDeadlock(pair));
it("P16 approvals are lost by a restart", () => tellEnd(LOST_APPROVALS, () => LOST_APPROVALS.end(pair)));

it("ends a killed attempt with its privileges, merged once, and on the same bill (P24, P25, P26, P30)", () =>
  tellEnd(KILLED_ATTEMPT, () => KILLED_ATTEMPT.end(pair.coordinated)));
it("has a long result whole after a kill (P23)", () =>
  tellEnd(KILLED_WITH_LONG_RESULT, () => KILLED_WITH_LONG_RESULT.end(pair.coordinated)));
it("knows after a compaction and a kill which children there were (P28)", () =>
  tellEnd(KILLED_AFTER_COMPACTION, () => KILLED_AFTER_COMPACTION.end(pair.coordinated)));
