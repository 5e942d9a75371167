/** Owns: the worlds that are simulated, as the campaign, the shortening and the command know them. */
import { describeError } from "../../src/agents/coordination/std/describe-error.ts";
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
  /** Plays the schedule of a seed, or only the moves at these places, counted from 1. An error on the way is a finding, and a rejection that nobody hears of. */
  findProblems(seed: number, kept?: readonly number[]): Promise<Finding | undefined>;
}

interface Schedule {
  readonly moves: readonly object[];
}

interface PlayResult {
  readonly finding?: Finding;
}

function createSimulation<S extends Schedule>(
  world: Simulation["world"],
  make: (seed: number) => S,
  play: (schedule: S) => Promise<PlayResult>,
): Simulation {
  return {
    world,
    listMoves: (seed) => make(seed).moves,
    findProblems: async (seed, kept) => {
      const schedule = keepMoves(make(seed), kept);
      const unheard: string[] = [];
      const note = (error: unknown): void => void unheard.push(`nobody hears of: ${describeError(error)}`);
      process.on("unhandledRejection", note);
      try {
        const { finding } = await play(schedule);
        if (finding || unheard.length === 0) return finding;
        return { problems: unheard, atMove: schedule.moves.length };
      } catch (error) {
        return { problems: [`threw: ${describeError(error)}`], atMove: schedule.moves.length };
      } finally {
        process.off("unhandledRejection", note);
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
