/** The pains that need a restart, or gateways with few places. Both gateways are killed once. */
import { afterAll, beforeAll, it } from "vitest";
import { openPair, type Pair } from "./pair.ts";
import { createLostApprovals, tellDeadlock } from "./restart-stories.ts";

const LOST_APPROVALS = createLostApprovals();

let pair: Pair;

beforeAll(async () => {
  pair = await openPair({
    configPatch: {
      agents: { defaults: { subagents: { maxConcurrent: 2 } } },
    },
  });
});

beforeAll(async () => {
  await LOST_APPROVALS.begin(pair);
  const stages = [pair.plain, pair.coordinated];
  await Promise.all(stages.map(({ gateway }) => gateway.kill9()));
  await Promise.all(stages.map((stage) => stage.restart()));
});

afterAll(() => pair.close());

it("P13 deadlock on a place: who waits for children holds the place that they need", () =>
  tellDeadlock(pair));
it("P16 approvals are lost by a restart", () => LOST_APPROVALS.end(pair));
