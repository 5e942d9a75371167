/** The command `npm run simulate`: plays the whole system by seeds, shortens what it finds, and looks for planted faults. */
import { parseArgs } from "node:util";
import { listMoveKinds, runCampaign, type CampaignResult } from "./campaign.ts";
import { findPlanted, type PlantedResult } from "./find-planted.ts";
import { PLANTED_FAULTS } from "./planted-faults.ts";
import { shrinkSchedule } from "./shrink.ts";
import { SIMULATIONS, type Simulation } from "./simulation.ts";

const HELP = `npm run simulate [-- options]

Plays two worlds in one process on virtual time: gateways that coordinate agents, and hosts that run workflows, with
their stores, models, people and clocks. A seed decides everything.

  --world <name>   only that world: coordinations or workflows; else each seed is played in both
  --seed <n>       the first seed (1); the schedules after it have the seeds after it
  --schedules <n>  how many schedules are played at most
  --minutes <n>    for how long at most (1, where no --schedules are given); with --planted: for each fault
  --with <kind>    only schedules that have such a move, such as reconfigure
  --moves <list>   only these moves of the schedule of the seed, such as 1,4,9: plays a shortened schedule again
  --no-shrink      do not shorten a schedule that fails
  --planted        plant one fault after the other in the source, and tell which of them are found
  --only <name>    only the planted fault of that name
  --list           names the planted faults
  --json           for programs
  --help           show this

Exit code 1 when something is found; with --planted, when a fault is not.

Examples:
  npm run simulate
  npm run simulate -- --seed 1000 --minutes 10
  npm run simulate -- --world workflows --seed 94 --moves 3,7,9
  npm run simulate -- --planted --only key-of-older-attempt
`;

const OPTIONS = {
  help: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  list: { type: "boolean", default: false },
  planted: { type: "boolean", default: false },
  shrink: { type: "boolean", default: true },
  world: { type: "string" },
  seed: { type: "string", default: "1" },
  schedules: { type: "string" },
  minutes: { type: "string" },
  moves: { type: "string" },
  with: { type: "string" },
  only: { type: "string" },
} as const;

const tell = (line: string): void => void process.stderr.write(`${line}\n`);
const print = (line: string): void => void process.stdout.write(`${line}\n`);

type Values = ReturnType<typeof readValues>;

function readValues() {
  return parseArgs({ allowNegative: true, options: OPTIONS }).values;
}

function readNumber(name: string, text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (Number.isFinite(value) && value >= 0) return value;
  if (value === Infinity) return value;
  throw new Error(`--${name} takes a number, not ${JSON.stringify(text)}`);
}

async function runCommand(): Promise<number> {
  const values = readValues();
  if (values.help) print(HELP);
  else if (values.list) for (const { name, breaks } of PLANTED_FAULTS) print(`${name}: ${breaks}`);
  else if (values.planted) return lookForPlanted(values);
  else if (values.moves !== undefined) return playAgain(values);
  else return simulate(values);
  return 0;
}

/** @throws Error for a world that there is not */
function chooseSimulations({ world }: Values): readonly [Simulation, ...Simulation[]] {
  const [first, ...others] = SIMULATIONS.filter((each) => world === undefined || each.world === world);
  if (!first) {
    const names = SIMULATIONS.map((each) => each.world).join(" and ");
    throw new Error(`there is no world ${JSON.stringify(world)}; there are ${names}`);
  }
  return [first, ...others];
}

/** @throws Error for a kind of move that no schedule of these simulations has */
function assertMoveKind(simulations: readonly Simulation[], kind: string): void {
  const kinds = listMoveKinds(simulations);
  if (!kinds.includes(kind))
    throw new Error(`there is no move ${JSON.stringify(kind)}; there are ${kinds.join(", ")}`);
}

async function simulate(values: Values): Promise<number> {
  const minutes = readNumber("minutes", values.minutes, values.schedules === undefined ? 1 : Infinity);
  const schedules = readNumber("schedules", values.schedules, Infinity);
  const firstSeed = readNumber("seed", values.seed, 1);
  const simulations = chooseSimulations(values);
  if (values.with !== undefined) assertMoveKind(simulations, values.with);
  let toldAt = performance.now();
  const result = await runCampaign(
    {
      simulations,
      firstSeed,
      schedules,
      durationMs: minutes * 60_000,
      withMove: values.with,
    },
    (played, moves) => {
      if (performance.now() - toldAt < 5_000) return;
      toldAt = performance.now();
      tell(`${played} schedules, ${moves} moves, nothing found yet`);
    },
  );
  return report(values, result);
}

async function report(values: Values, result: CampaignResult): Promise<number> {
  const { schedules, moves, durationMs, found } = result;
  const seconds = Math.round(durationMs / 100) / 10;
  if (found) return reportFinding(values, { schedules, moves, seconds, found });
  if (values.json) print(JSON.stringify({ schedules, moves, seconds }));
  else print(`${schedules} schedules, ${moves} moves in ${seconds} s: nothing found`);
  return 0;
}

interface FailedCampaign extends Pick<Required<CampaignResult>, "schedules" | "moves" | "found"> {
  readonly seconds: number;
}

async function reportFinding(values: Values, { found, ...counts }: FailedCampaign): Promise<number> {
  const { seed, finding, simulation } = found;
  const { world } = simulation;
  const moves = simulation.listMoves(seed);
  const all = moves.map((_, index) => index + 1);
  const least = values.shrink ? await shrinkSchedule(found) : { finding, kept: all };
  const { problems } = least.finding;
  const again = `npm run simulate -- --world ${world} --seed ${seed} --moves ${least.kept.join(",")}`;
  if (values.json) {
    print(JSON.stringify({ ...counts, found: { world, seed, problems, moves: least.kept, again } }));
    return 1;
  }
  print(`seed ${seed} of ${world}, after ${counts.schedules} schedules:`);
  for (const problem of problems) print(`  ${problem}`);
  print(`its moves, ${least.kept.length} of ${all.length}:`);
  for (const place of least.kept) print(`  ${JSON.stringify(moves[place - 1])}`);
  print(`play it again: ${again}`);
  return 1;
}

async function playAgain(values: Values): Promise<number> {
  const [simulation] = chooseSimulations(values);
  const { world } = simulation;
  const seed = readNumber("seed", values.seed, 1);
  const kept = (values.moves ?? "").split(",").map((place) => readNumber("moves", place, 0));
  const { length } = simulation.listMoves(seed);
  const strange = kept.find((place) => !Number.isInteger(place) || place < 1 || place > length);
  if (strange !== undefined)
    throw new Error(
      `--moves names ${strange}, and the schedule of seed ${seed} of ${world} has 1 to ${length}`,
    );
  const finding = await simulation.findProblems(seed, kept);
  if (values.json) print(JSON.stringify({ world, seed, moves: kept, problems: finding?.problems ?? [] }));
  else print(finding ? finding.problems.join("\n") : "nothing found");
  return finding ? 1 : 0;
}

function lookForPlanted(values: Values): number {
  const faults = PLANTED_FAULTS.filter(({ name }) => values.only === undefined || name === values.only);
  if (faults.length === 0)
    throw new Error(`there is no planted fault ${JSON.stringify(values.only)}; see --list`);
  const durationMs = readNumber("minutes", values.minutes, 1) * 60_000;
  const seed = readNumber("seed", values.seed, 1);
  const results: PlantedResult[] = [];
  for (const fault of faults) {
    const result = findPlanted(fault, { seed, durationMs });
    results.push(result);
    const { name, isFound, seconds, schedules, problem = "" } = result;
    tell(
      `${results.length}/${faults.length} ${isFound ? "found" : "NOT FOUND"} ${name} ` +
        `in ${seconds.toFixed(1)} s, ${schedules} schedules: ${problem.slice(0, 100)}`,
    );
  }
  const found = results.filter(({ isFound }) => isFound);
  const seconds = results.reduce((sum, each) => sum + each.seconds, 0);
  if (values.json) print(JSON.stringify({ found: found.length, of: faults.length, seconds, results }));
  else print(`${found.length} of ${faults.length} planted faults found in ${seconds.toFixed(0)} s`);
  return found.length === faults.length ? 0 : 1;
}

try {
  process.exitCode = await runCommand();
} catch (error) {
  tell(error instanceof Error ? error.message : String(error));
  process.exitCode = 2;
}
