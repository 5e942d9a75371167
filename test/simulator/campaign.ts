/** Owns: playing seed after seed in each world, until something is found or the time is over. */
import type { Finding, Simulation } from "./simulation.ts";

export interface CampaignLimits {
  /** Each seed is played in each of them. */
  readonly simulations: readonly Simulation[];
  readonly firstSeed: number;
  /** In all worlds together. */
  readonly schedules: number;
  readonly durationMs: number;
  /** Only schedules with such a move are played; absent: all are. */
  readonly withMove?: string | undefined;
}

/** A finding, with the simulation and the seed that lead to it. */
export interface SeedFinding {
  readonly simulation: Simulation;
  readonly seed: number;
  readonly finding: Finding;
}

export interface CampaignResult {
  readonly schedules: number;
  readonly moves: number;
  readonly durationMs: number;
  readonly found?: SeedFinding;
}

/** Never throws; `tell` hears after each schedule how many were played. */
export async function runCampaign(
  { simulations, firstSeed, schedules, durationMs, withMove }: CampaignLimits,
  tell: (played: number, moves: number) => void = () => undefined,
): Promise<CampaignResult> {
  const startedAt = performance.now();
  let played = 0;
  let moves = 0;
  for (let next = 0; played < schedules && performance.now() - startedAt < durationMs; next += 1) {
    const seed = firstSeed + Math.floor(next / simulations.length);
    const simulation = simulations[next % simulations.length];
    if (!simulation) break;
    if (withMove !== undefined && !hasMove(simulation.listMoves(seed), withMove)) continue;
    const finding = await simulation.findProblems(seed);
    played += 1;
    moves += simulation.listMoves(seed).length;
    tell(played, moves);
    const result = { schedules: played, moves, durationMs: performance.now() - startedAt };
    if (finding) return { ...result, found: { simulation, seed, finding } };
  }
  return { schedules: played, moves, durationMs: performance.now() - startedAt };
}

function hasMove(moves: readonly object[], kind: string): boolean {
  return moves.some((move) => "kind" in move && move.kind === kind);
}

/** By then each kind of move was in a schedule (test/simulator/situations.ts). */
const SEEDS_WITH_ALL_KINDS = 500;

/** Lists the kinds of moves that the schedules of simulations have, in the order of the alphabet. */
export function listMoveKinds(simulations: readonly Simulation[]): string[] {
  const kinds = new Set<string>();
  for (const simulation of simulations)
    for (let seed = 1; seed <= SEEDS_WITH_ALL_KINDS; seed += 1)
      for (const move of simulation.listMoves(seed)) if ("kind" in move) kinds.add(String(move.kind));
  return [...kinds].toSorted();
}
