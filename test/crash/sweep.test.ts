/**
 * Every port call of many schedules is made to fail once: the process dies before it, or after it, or the call fails.
 * `SWEEP_SCHEDULES` sets how many schedules with a fault are played, `SWEEP_SEED` the first seed.
 */
import { describe, expect, it } from "vitest";
import { isFact, type RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { playSweep, storiesOf, type PlayedSweep, type StoryOutcome } from "./sweep-schedule.ts";
import { FAULTS, type Fault } from "./sweep-process.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";

const SCHEDULES = chooseCampaignSize("SWEEP_SCHEDULES", { short: 300, long: 600 });
const FIRST_SEED = Number(process.env["SWEEP_SEED"] ?? 1);

type EventOf<T extends RunEvent["type"]> = Extract<RunEvent, { type: T }>;
const filterByType = <T extends RunEvent["type"]>(events: readonly RunEvent[], type: T): EventOf<T>[] =>
  events.filter((event): event is EventOf<T> => event.type === type);

async function check(played: PlayedSweep): Promise<void> {
  const { world, tellings } = played;
  const runs = world.ledger.events();
  const events = runs.flat();
  expect((await verifyLedger(world.ledger.open(world.clock))).problems).toEqual([]);
  for (const run of runs) {
    expect(filterByType(run, "coordination.terminal"), "D5: one end").toHaveLength(1);
    expect(run.findLast(isFact)?.type, "D5: nothing after it").toBe("coordination.terminal");
  }
  checkOnce(events);
  const outcomes = outcomesOf(events);
  for (const each of tellings) {
    checkAdmission(each, outcomes);
    checkChild(each, { events, outcomes });
  }
}

const keyOf = ({
  coordinationId,
  stepId,
}: {
  readonly coordinationId: string;
  readonly stepId: string;
}): string => `${coordinationId}:${stepId}`;

/** Everything that the host was answered is in the ledger, and came to an end. */
function checkAdmission(
  { story, admitted, refusalNoted }: StoryOutcome,
  outcomes: ReadonlyMap<string, string>,
): void {
  if (!admitted) return;
  const outcome = outcomes.get(keyOf(admitted));
  expect(outcome, JSON.stringify(story)).toBeDefined();
  if (refusalNoted) expect(outcome, JSON.stringify(story)).toBe("failed");
}

/** A gateway that nothing happens to admits every spawn whose source is there, and knows every child that the host made. */
function checkEachAdmitted(seed: number, { tellings }: PlayedSweep): void {
  for (const { story, isAsked, admitted, child, confirmed } of tellings) {
    const where = `seed ${seed}: ${JSON.stringify(story)}`;
    expect(admitted !== undefined, where).toBe(isAsked === true);
    expect(confirmed !== undefined, where).toBe(child !== undefined);
  }
}

/** A child that the host made has one step, which ended as the host knows that the child did. */
function checkChild(
  { story, child, confirmed }: StoryOutcome,
  {
    events,
    outcomes,
  }: { readonly events: readonly RunEvent[]; readonly outcomes: ReadonlyMap<string, string> },
): void {
  if (!child) return;
  const where = JSON.stringify(story);
  const holders = filterByType(events, "step.acknowledged").filter(
    ({ payload }) => payload.childSessionKey === child,
  );
  expect(holders, where).toHaveLength(1);
  const [{ runId: coordinationId, payload }] = holders as [(typeof holders)[number]];
  const { stepId } = payload;
  if (confirmed) expect(stepId, where).toBe(confirmed.stepId);
  expect(outcomes.get(keyOf({ coordinationId, stepId })), where).toBe(story.ending?.outcome ?? "timed_out");
}

/** D2: nothing is recorded twice. */
function checkOnce(events: readonly RunEvent[]): void {
  const keys = filterByType(events, "step.dispatched").map(({ payload }) => payload.idempotencyKey);
  const calls = filterByType(events, "step.admitted").map(({ payload }) => payload.call.toolCallId);
  const children = filterByType(events, "step.acknowledged").map(({ payload }) => payload.childSessionKey);
  for (const names of [keys, calls, children])
    expect(new Set(names).size, names.join(" ")).toBe(names.length);
}

/** How each step ended, by `coordinationId:stepId`. */
function outcomesOf(events: readonly RunEvent[]): Map<string, string> {
  const outcomes = new Map<string, string>();
  for (const event of events) {
    const outcome = outcomeOf(event);
    if (outcome === undefined || !event.nodeId) continue;
    const key = `${event.runId}:${event.nodeId}`;
    expect(outcomes.has(key), `${key} ended twice`).toBe(false);
    outcomes.set(key, outcome);
  }
  return outcomes;
}

function outcomeOf(event: RunEvent): string | undefined {
  if (event.type === "step.completed") return "completed";
  if (event.type === "step.timed_out") return "timed_out";
  if (event.type !== "step.failed") return undefined;
  return event.payload.cancelled ? "cancelled" : "failed";
}

/** Seeds in turn, and for each every call of its undisturbed run with every fault. */
async function* generateFaults(): AsyncGenerator<{ readonly seed: number; readonly fault: Fault }> {
  for (let seed = FIRST_SEED; ; seed += 1) {
    const { calls } = await playSweep(seed);
    for (let atCall = 1; atCall <= calls; atCall += 1)
      for (const kind of FAULTS) yield { seed, fault: { kind, atCall } };
  }
}

/** The undisturbed runs have up to hundreds of calls: every n-th of them, so that many seeds are met. */
const STRIDE = 11;

describe("a gateway", () => {
  it("that nothing happens to tells the truth about every spawn", async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + 60; seed += 1) {
      const played = await playSweep(seed);
      await check(played);
      checkEachAdmitted(seed, played);
    }
  });

  it(`that fails at any call of a port keeps every promise (${SCHEDULES} schedules)`, async () => {
    let played = 0;
    let met = 0;
    let deaths = 0;
    for await (const { seed, fault } of generateFaults()) {
      if (met++ % STRIDE !== 0) continue;
      try {
        const result = await playSweep(seed, fault);
        deaths += result.deaths;
        await check(result);
      } catch (error) {
        throw new Error(
          `seed ${seed}, ${fault.kind} call ${fault.atCall}: ${JSON.stringify(storiesOf(seed))}`,
          { cause: error },
        );
      }
      if ((played += 1) >= SCHEDULES) break;
    }
    expect(deaths).toBeGreaterThan(SCHEDULES / 3);
  });

  it("that fails at each call of one schedule in turn keeps every promise", async () => {
    const undisturbed = await playSweep(7);
    checkEachAdmitted(7, undisturbed);
    const { calls } = undisturbed;
    const early = Math.min(calls, 60);
    for (let atCall = 1; atCall <= early; atCall += 1)
      for (const kind of FAULTS) await check(await playSweep(7, { kind, atCall }));
  });
});
