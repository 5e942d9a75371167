/** Owns: playing seed after seed in each world, until something is found or the time is over. */
import type { Finding, Simulation } from "./simulation.ts";

export interface CampaignLimits {
  /** Each seed is played in each of them. */
  readonly simulations: readonly Simulation[];
  readonly firstSeed: number;
  /** In all worlds together. */
  readonly schedules: number;
  readonly durationMs: number;
}

export interface Found {
  readonly simulation: Simulation;
  readonly seed: number;
  readonly finding: Finding;
}

export interface CampaignResult {
  readonly schedules: number;
  readonly moves: number;
  readonly durationMs: number;
  readonly found?: Found;
}

/** Never throws; `tell` hears after each schedule how many were played. */
export async function runCampaign(
  { simulations, firstSeed, schedules, durationMs }: CampaignLimits,
  tell: (played: number, moves: number) => void = () => undefined,
): Promise<CampaignResult> {
  const startedAt = performance.now();
  let played = 0;
  let moves = 0;
  while (played < schedules && performance.now() - startedAt < durationMs) {
    const seed = firstSeed + Math.floor(played / simulations.length);
    const simulation = simulations[played % simulations.length];
    if (!simulation) break;
    const finding = await simulation.findProblems(seed);
    played += 1;
    moves += simulation.listMoves(seed).length;
    tell(played, moves);
    const result = { schedules: played, moves, durationMs: performance.now() - startedAt };
    if (finding) return { ...result, found: { simulation, seed, finding } };
  }
  return { schedules: played, moves, durationMs: performance.now() - startedAt };
}
