/**
 * The whole system keeps its promises under seeded schedules. `SIMULATE_SCHEDULES` sets how many are played, `SIMULATE_SEED`
 * the first seed; `npm run simulate` plays more, and shortens what it finds.
 */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chooseCampaignSize } from "../support/campaign-size.ts";
import { listMoveKinds, runCampaign } from "./campaign.ts";
import { makeSchedule } from "./make-schedule.ts";
import { playSchedule } from "./play.ts";
import { applyFault, PLANTED_FAULTS } from "./planted-faults.ts";
import { kindOf, shrinkSchedule } from "./shrink.ts";
import { SIMULATIONS, type Simulation } from "./simulation.ts";
import { findUnreached } from "./situations.ts";
import { makeWorkflowSchedule } from "./workflows/make-workflow-schedule.ts";
import { playWorkflows } from "./workflows/play-workflows.ts";

const ROOT = join(import.meta.dirname, "../..");
const SCHEDULES = chooseCampaignSize("SIMULATE_SCHEDULES", { short: 300, long: 5_000 });
const FIRST_SEED = Number(process.env["SIMULATE_SEED"] ?? 1);

/** Schedules in which something was found that the program did wrong. */
const FOUND: readonly { readonly world: Simulation["world"]; readonly seed: number }[] = [
  ...[
    2_000_447, 10_016_045, 30_404_888, 40_054_330, 40_077_734, 90_023_114, 92_008_435, 93_030_541, 93_031_816,
    95_102_771, 95_541_509,
  ].map((seed) => ({ world: "coordinations", seed }) as const),
  ...[12_329, 12_731, 21_720, 23_277, 50_460, 145_641].map((seed) => ({ world: "workflows", seed }) as const),
];

/** The beginning of the sha256 of the schedule of each of them, as JSON. */
const RECORDED: Readonly<Record<string, string>> = {
  2000447: "fec832d0456c092d",
  10016045: "718fc94b8578f632",
  30404888: "8c0f6baa782e92d0",
  40054330: "d8357aecaf752cb7",
  40077734: "a915835609ffae40",
  90023114: "7258c02556036291",
  92008435: "daeb091d7579a342",
  93030541: "e6acb73b58a893e1",
  93031816: "0fabfc9a331e0b07",
  95102771: "c230054973ddfff7",
  95541509: "061262153c31f774",
  12329: "9a1fd1b965c8fa7c",
  12731: "d1e587aedc194923",
  21720: "02912af0e48fd8cb",
  23277: "419f49526688e140",
  50460: "bf1f342100b1af88",
  145641: "0695ae10880ed2c3",
};

describe("the simulator", () => {
  it.each(SIMULATIONS)(`finds no broken promise of $world (${SCHEDULES} schedules)`, async (simulation) => {
    const { found } = await runCampaign({
      simulations: [simulation],
      firstSeed: FIRST_SEED,
      schedules: SCHEDULES,
      durationMs: Infinity,
    });
    const again = `npm run simulate -- --world ${simulation.world} --seed ${found?.seed}`;
    expect(found && `${again}: ${found.finding.problems.join("; ")}`).toBe(undefined);
  });

  it("knows which kinds of moves the schedules of a world have, and no others", () => {
    const listKinds = (world: Simulation["world"]) =>
      listMoveKinds(SIMULATIONS.filter((each) => each.world === world));
    expect(listKinds("coordinations")).toEqual(expect.arrayContaining(["prune", "reconfigure", "set clock"]));
    expect(listKinds("workflows")).toContain("set clock");
    expect(listKinds("workflows")).not.toContain("prune");
  });

  it.each(SIMULATIONS)(
    "plays schedules of $world in which callers get what they ask for",
    async ({ world }) => {
      expect(await findUnreached(world, { firstSeed: FIRST_SEED, schedules: 500 })).toEqual([]);
    },
  );

  it.each(FOUND)("finds nothing any more in seed $seed of $world", async ({ world, seed }) => {
    const simulation = SIMULATIONS.find((each) => each.world === world);
    expect(await simulation?.findProblems(seed)).toBe(undefined);
  });

  it("plays the same log for the same seed, every time", async () => {
    const playLogs = async (): Promise<string> => {
      const { world } = await playSchedule(makeSchedule(7));
      const { world: workflows } = await playWorkflows(makeWorkflowSchedule(7));
      return JSON.stringify([world.journal.events, [...workflows.ledger.runs]]);
    };
    expect(await playLogs()).toBe(await playLogs());
  });

  it("plays the recorded schedules as they were recorded, whatever moves were added since", () => {
    const digests = FOUND.filter(({ seed }) => Object.hasOwn(RECORDED, seed)).map(({ world, seed }) => {
      const schedule = world === "workflows" ? makeWorkflowSchedule(seed) : makeSchedule(seed);
      return [String(seed), hash("sha256", JSON.stringify(schedule)).slice(0, 16)];
    });
    expect(Object.fromEntries(digests)).toEqual(RECORDED);
  });

  it("plays a part of the moves of a schedule", async () => {
    const played: (readonly number[] | undefined)[] = [];
    const finding = { problems: ["D1: broken"], atMove: 3 };
    const simulation: Simulation = {
      world: "workflows",
      listMoves: () => [{}, {}, {}, {}],
      findProblems: (_, kept) => {
        played.push(kept);
        return Promise.resolve(kept?.includes(2) ? finding : undefined);
      },
    };
    expect(await shrinkSchedule({ simulation, seed: 1, finding })).toEqual({ finding, kept: [2] });
    expect(played.every((kept) => kept?.every((place) => place <= 3))).toBe(true);
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
