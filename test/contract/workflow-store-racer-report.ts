export interface RacerReport {
  /** The keys that it was the first to begin. */
  readonly began: readonly string[];
  /** The nodes whose start it appended to the shared run. */
  readonly won: readonly string[];
  /** The portions of the shared fork that it was the one to write. */
  readonly portions: readonly number[];
}

export const FORK_PORTIONS = 25;

export const RACER_KEYS: readonly string[] = Array.from({ length: 60 }, (_, index) => `key-${index}`);
