/**
 * Plans live through every kind of crash. `SWEEP_SCHEDULES` sets how many seeded schedules are played, `SWEEP_SEED` the first
 * seed. A failure names its schedule with as few crashes as still break it.
 */
import { describe, expect, it } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { problemsOf } from "./plan-check.ts";
import { playPlan } from "./plan-play.ts";
import { describeSchedule, scheduleOf, type Schedule } from "./plan-schedule.ts";
import { listCrashesAt, SMALL, TRAPS, UNASKED } from "./plan-small.ts";
import { chooseCampaignSize } from "../support/campaign-size.ts";

const SCHEDULES = chooseCampaignSize("SWEEP_SCHEDULES", { short: 500, long: 2_000 });
const FIRST_SEED = Number(process.env["SWEEP_SEED"] ?? 1);

const BEGIN = "2026-01-02T03:04:06.000Z";

async function findProblems(schedule: Schedule): Promise<string[]> {
  try {
    return problemsOf(await playPlan(schedule));
  } catch (error) {
    return [error instanceof Error ? `${error.message}\n${error.stack ?? ""}` : String(error)];
  }
}

/** Leaves away one crash or request after the other, as long as something is still wrong. */
async function shrinkSchedule(schedule: Schedule): Promise<Schedule> {
  const smaller = [
    ...schedule.crashes.map((_, index) => ({ ...schedule, crashes: schedule.crashes.toSpliced(index, 1) })),
    ...schedule.asked.map((_, index) => ({ ...schedule, asked: schedule.asked.toSpliced(index, 1) })),
  ];
  for (const each of smaller) if ((await findProblems(each)).length > 0) return shrinkSchedule(each);
  return schedule;
}

async function explainSchedule(schedule: Schedule): Promise<string> {
  const least = await shrinkSchedule(schedule);
  return `${least.name}: ${(await findProblems(least)).join("; ")}\n${describeSchedule(least)}`;
}

describe("the checker of plans", () => {
  it.each<[title: string, change: (events: readonly RunEvent[]) => readonly RunEvent[]]>([
    ["before the deadline of the plan", (events) => events.map((event) => ({ ...event, timestamp: BEGIN }))],
    ["without having been held", (events) => events.filter(({ type }) => type !== "result.held")],
  ])("finds a result that is withheld unasked %s", async (_title, change) => {
    const played = await playPlan(UNASKED);
    expect(problemsOf(played)).toEqual([]);
    const problems = problemsOf({ ...played, events: change(played.events) });
    expect(problems.join()).toMatch(/"code":"withheld".*: the agent did not fail so/);
  });
});

describe("a plan", () => {
  it.each(SMALL)("keeps every promise whichever port call is its last: $name", async (schedule) => {
    const { calls } = await playPlan(schedule);
    const broken: string[] = [];
    for (const crash of listCrashesAt(calls)) {
      const problems = await findProblems({ ...schedule, crashes: [crash] });
      if (problems.length > 0) broken.push(`${JSON.stringify(crash)}: ${problems.join("; ")}`);
      if (broken.length > 2) break;
    }
    expect(broken).toEqual([]);
  });

  it.each(TRAPS)("$name", async ({ ends, ...schedule }) => {
    const played = await playPlan(schedule);
    expect(problemsOf(played)).toEqual([]);
    const end = played.events.find((event) => event.type === "coordination.terminal");
    expect(end?.payload).toMatchObject(ends);
  });

  it(`keeps every promise through crashes, bad hosts and requests (${SCHEDULES} schedules)`, async () => {
    const broken: string[] = [];
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SCHEDULES && broken.length < 5; seed += 1) {
      const schedule = scheduleOf(seed);
      if ((await findProblems(schedule)).length > 0) broken.push(await explainSchedule(schedule));
    }
    expect(broken.join("\n\n")).toBe("");
  });
});
