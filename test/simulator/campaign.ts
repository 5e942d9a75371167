/** Owns: playing seed after seed, until something is found or the time is over. */
import { makeSchedule } from "./make-schedule.ts";
import { findProblems, type Finding } from "./play.ts";

export interface CampaignLimits {
  readonly firstSeed: number;
  readonly schedules: number;
  readonly durationMs: number;
}

export interface CampaignResult {
  readonly schedules: number;
  readonly moves: number;
  readonly durationMs: number;
  readonly found?: { readonly seed: number; readonly finding: Finding };
}

/** Never throws; `tell` hears after each schedule how many were played. */
export async function runCampaign(
  { firstSeed, schedules, durationMs }: CampaignLimits,
  tell: (played: number, moves: number) => void = () => undefined,
): Promise<CampaignResult> {
  const startedAt = performance.now();
  let played = 0;
  let moves = 0;
  while (played < schedules && performance.now() - startedAt < durationMs) {
    const seed = firstSeed + played;
    const schedule = makeSchedule(seed);
    const finding = await findProblems(schedule);
    played += 1;
    moves += schedule.moves.length;
    tell(played, moves);
    const result = { schedules: played, moves, durationMs: performance.now() - startedAt };
    if (finding) return { ...result, found: { seed, finding } };
  }
  return { schedules: played, moves, durationMs: performance.now() - startedAt };
}
