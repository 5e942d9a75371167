/**
 * Owns: whether a model's own spawn may go on. Its child runs on a lane of the host that we cannot hold back, so the spawn
 * is admitted, delayed for a moment, or refused in words that the model can act on.
 */

export interface SpawnLimits {
  readonly spawnsMax: number;
  /** Absent: no limit of its own. */
  readonly spawnsPerSessionMax?: number | undefined;
}

/** The spawns of models that are open now. */
export interface OpenSpawns {
  readonly all: number;
  readonly ofSession: number;
}

export type SpawnRuling =
  | { readonly kind: "admitted" }
  | { readonly kind: "delay" }
  | { readonly kind: "refused"; readonly reason: string };

/**
 * Returns whether a model's spawn is admitted, delayed, or refused with a reason, by how many subagents are open.
 * `mayWait`: the time for a delay is not over yet.
 */
export function ruleOnSpawn(limits: SpawnLimits, open: OpenSpawns, mayWait: boolean): SpawnRuling {
  const reason = explainSpawnLimit(limits, open);
  if (reason === undefined) return { kind: "admitted" };
  return mayWait ? { kind: "delay" } : { kind: "refused", reason };
}

/** Returns why no more subagents may run now, and what to do, for the model; `undefined` while one may. */
function explainSpawnLimit(
  { spawnsMax, spawnsPerSessionMax = Infinity }: SpawnLimits,
  { all, ofSession }: OpenSpawns,
): string | undefined {
  if (ofSession >= spawnsPerSessionMax)
    return (
      `this session has ${formatSubagents(ofSession)} running, and at most ${spawnsPerSessionMax} may run at once; ` +
      "wait for one of its running subagents to finish, then spawn again"
    );
  if (all < spawnsMax) return undefined;
  const full = `${formatSubagents(all)} of all sessions together ${all === 1 ? "is" : "are"} running, and at most ${spawnsMax} may run at once`;
  return ofSession > 0
    ? `${full}; wait for one of this session's ${formatSubagents(ofSession)} to finish, then spawn again`
    : `${full}; this session has none of them, so do the work without a subagent or spawn again later`;
}

function formatSubagents(count: number): string {
  return count === 1 ? "1 subagent" : `${count} subagents`;
}
