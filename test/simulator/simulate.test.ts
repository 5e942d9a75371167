/**
 * The whole system keeps its promises under seeded schedules. `SIMULATE_SCHEDULES` sets how many are played, `SIMULATE_SEED`
 * the first seed; `npm run simulate` plays more, and shortens what it finds.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { runCampaign } from "./campaign.ts";
import { makeSchedule } from "./make-schedule.ts";
import { playSchedule } from "./play.ts";
import { applyFault, PLANTED_FAULTS } from "./planted-faults.ts";
import { keepMoves, kindOf } from "./shrink.ts";

const ROOT = join(import.meta.dirname, "../..");
const SCHEDULES = chooseCampaignSize("SIMULATE_SCHEDULES", { short: 300, long: 5_000 });
const FIRST_SEED = Number(process.env["SIMULATE_SEED"] ?? 1);

describe("the simulator", () => {
  it(`finds no broken promise (${SCHEDULES} schedules)`, async () => {
    const { found } = await runCampaign({
      firstSeed: FIRST_SEED,
      schedules: SCHEDULES,
      durationMs: Infinity,
    });
    expect(found && `npm run simulate -- --seed ${found.seed}: ${found.finding.problems.join("; ")}`).toBe(
      undefined,
    );
  });

  it("plays the same log for the same seed, every time", async () => {
    const playLog = async (): Promise<string> => {
      const { world } = await playSchedule(makeSchedule(7));
      return JSON.stringify(world.journal.events);
    };
    expect(await playLog()).toBe(await playLog());
  });

  it("plays a part of the moves of a schedule", () => {
    const schedule = makeSchedule(7);
    const [first, , third] = schedule.moves;
    expect(keepMoves(schedule, [1, 3]).moves).toEqual([first, third]);
  });

  it("takes two findings about one promise for the same kind", () => {
    const describeKind = (problem: string): string => kindOf({ problems: [problem], atMove: 1 });
    expect(describeKind("plan-3: D2: a key was dispatched twice")).toBe("D2");
    expect(describeKind("D2: plan-1:s1:1 is dispatched twice (plan-1:9)")).toBe("D2");
  });

  it.each(PLANTED_FAULTS)("has a planted fault that fits the source: $name", (fault) => {
    const source = readFileSync(join(ROOT, fault.file), "utf8");
    expect(applyFault(fault, source)).not.toBe(source);
  });

  it("names each planted fault once", () => {
    const names = PLANTED_FAULTS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
