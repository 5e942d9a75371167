/** Owns: the worlds that are simulated, as the campaign, the shortening and the command know them. */
import { makeSchedule } from "./make-schedule.ts";
import { playSchedule } from "./play.ts";
import { makeWorkflowSchedule } from "./workflows/make-workflow-schedule.ts";
import { playWorkflows } from "./workflows/play-workflows.ts";

export interface Finding {
  readonly problems: readonly string[];
  /** How many moves had been made; all of them where the end is to blame. */
  readonly atMove: number;
}

export interface Simulation {
  readonly world: "coordinations" | "workflows";
  /** Lists the moves of the schedule of a seed. */
  listMoves(seed: number): readonly object[];
  /** Plays the schedule of a seed, or only the moves at these places, counted from 1. An error on the way is a finding. */
  findProblems(seed: number, kept?: readonly number[]): Promise<Finding | undefined>;
}

interface Schedule {
  readonly moves: readonly object[];
}

interface Played {
  readonly finding?: Finding;
}

function createSimulation<S extends Schedule>(
  world: Simulation["world"],
  make: (seed: number) => S,
  play: (schedule: S) => Promise<Played>,
): Simulation {
  return {
    world,
    listMoves: (seed) => make(seed).moves,
    findProblems: async (seed, kept) => {
      const schedule = keepMoves(make(seed), kept);
      try {
        return (await play(schedule)).finding;
      } catch (error) {
        const problem = error instanceof Error ? `threw: ${error.message}` : `threw: ${String(error)}`;
        return { problems: [problem], atMove: schedule.moves.length };
      }
    },
  };
}

function keepMoves<S extends Schedule>(schedule: S, kept?: readonly number[]): S {
  if (!kept) return schedule;
  return { ...schedule, moves: schedule.moves.filter((_, index) => kept.includes(index + 1)) };
}

export const SIMULATIONS: readonly Simulation[] = [
  createSimulation("coordinations", makeSchedule, playSchedule),
  createSimulation("workflows", makeWorkflowSchedule, playWorkflows),
];
