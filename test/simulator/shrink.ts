/** Owns: shortening a schedule as long as it still fails in the same way. */
import type { SeedFinding } from "./campaign.ts";
import type { Finding } from "./simulation.ts";

/** The fewest moves of a schedule that still lead to a finding. */
export interface ShrunkSchedule {
  readonly finding: Finding;
  /** The places of the moves that are left, in the schedule of the seed, counted from 1. */
  readonly kept: readonly number[];
}

/** Enough for every schedule that was ever found, and no endless wait for one that hangs. */
const PLAYS_MAX = 300;

/** Two findings are of one kind when their first problems are about the same promise. */
export function kindOf({ problems }: Finding): string {
  const [first = ""] = problems;
  return first.replace(/^(?:co|plan)-[\w-]+: /u, "").split(/[:(]/u)[0] ?? "";
}

/** Leaves away halves, quarters and single moves, over and over, until none can go any more. */
export async function shrinkSchedule({ simulation, seed, finding }: SeedFinding): Promise<ShrunkSchedule> {
  const kind = kindOf(finding);
  const places = simulation.listMoves(seed).map((_, index) => index + 1);
  let best: ShrunkSchedule = { finding, kept: places.slice(0, finding.atMove) };
  let plays = 0;
  for (let size = Math.ceil(best.kept.length / 2); size >= 1 && plays < PLAYS_MAX;) {
    let isSmaller = false;
    for (let from = best.kept.length - 1; from >= 0 && plays < PLAYS_MAX; from -= size) {
      const kept = best.kept.toSpliced(Math.max(0, from - size + 1), size);
      plays += 1;
      const found = await simulation.findProblems(seed, kept);
      if (!found || kindOf(found) !== kind) continue;
      best = { finding: found, kept };
      isSmaller = true;
    }
    if (size > 1) size = Math.ceil(size / 2);
    else if (!isSmaller) break;
  }
  return best;
}
