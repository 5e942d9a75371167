/** The pains that need a restart, or gateways with few places. Both gateways are killed once, for all of them. */
import { afterAll, beforeAll, it } from "vitest";
import { createSlowRules } from "./failing-model.ts";
import type { Json } from "../support/gateway-client.ts";
import { mergeConfig } from "../support/gateway-config.ts";
import { PRICED_MODEL } from "./bill-stories.ts";
import { CHAT, CHAT_CONFIG } from "./chat-stories.ts";
import {
  createKilledAttempt,
  createKilledLiar,
  KILLED_AFTER_COMPACTION,
  KILLED_IN_CHAT,
  KILLED_WITH_LONG_RESULT,
} from "./killed-stories.ts";
import { ROUTED_MODELS, ROUTER, TRUTH_CONFIG } from "./truth-stories.ts";
import { openPair, type Pair } from "./pair.ts";
import { createLostApprovals, LOST_ACKNOWLEDGEMENT, ORPHANS, tellDeadlock } from "./restart-stories.ts";

const LOST_APPROVALS = createLostApprovals();
const STORIES = [ORPHANS, LOST_ACKNOWLEDGEMENT, LOST_APPROVALS];
const KILLED_ATTEMPT = createKilledAttempt();
const KILLED_LIAR = createKilledLiar();
const FEW_PLACES: Json = {
  agents: { defaults: { subagents: { maxConcurrent: 2 } } },
  models: { providers: { mock: { models: [PRICED_MODEL, ...ROUTED_MODELS] } } },
};

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
    plugins: [CHAT, ROUTER],
    configPatch: [CHAT_CONFIG, TRUTH_CONFIG].reduce(mergeConfig, FEW_PLACES),
    phase1: { truth: { onMismatch: "hold" } },
  });
});

beforeAll(async () => {
  for (const story of [KILLED_AFTER_COMPACTION, KILLED_WITH_LONG_RESULT, KILLED_LIAR, KILLED_IN_CHAT])
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
it("holds the result of a child that ran as another than asked through a kill, and lets it through once (P21)", () =>
  tellEnd(KILLED_LIAR, () => KILLED_LIAR.end(pair.coordinated)));
it("keeps a child's words out of the chat after a kill, unless its parent says them (P22)", () =>
  tellEnd(KILLED_IN_CHAT, () => KILLED_IN_CHAT.end(pair.coordinated)));
