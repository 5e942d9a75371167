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

beforeAll(async () => {
  pair = await openPair({
    createRules: createSlowRules,
    configPatch: {
      agents: { defaults: { subagents: { maxConcurrent: 2 } } },
    },
  });
});

beforeAll(async () => {
  await KILLED_AFTER_COMPACTION.begin(pair.coordinated);
  await KILLED_WITH_LONG_RESULT.begin(pair.coordinated);
  await Promise.all(STORIES.map((story) => story.begin(pair)));
  // Last, because it and an orphan hold the two places until the kill.
  await KILLED_ATTEMPT.begin(pair.coordinated);
  const stages = [pair.plain, pair.coordinated];
  await Promise.all(stages.map(({ gateway }) => gateway.kill9()));
  await Promise.all(stages.map((stage) => stage.restart()));
});

afterAll(() => pair.close());

it("P2 a restart orphans running children: their work is not done", () => ORPHANS.end(pair));
it("P7 a lost acknowledgement: the result is told a second time", () => LOST_ACKNOWLEDGEMENT.end(pair));
it("P13 deadlock on a place: who waits for children holds the place that they need", () =>
  tellDeadlock(pair));
it("P16 approvals are lost by a restart", () => LOST_APPROVALS.end(pair));

it("ends a killed attempt with its privileges, merged once, and on the same bill (P24, P25, P26, P30)", () =>
  KILLED_ATTEMPT.end(pair.coordinated));
it("has a long result whole after a kill (P23)", () => KILLED_WITH_LONG_RESULT.end(pair.coordinated));
it("knows after a compaction and a kill which children there were (P28)", () =>
  KILLED_AFTER_COMPACTION.end(pair.coordinated));
