/**
 * Owns: how much work one check may take. References and alternatives can multiply beyond all bounds, and time would not be
 * the same on every machine, so work is counted.
 */

/** Thrown through ajv's code, which has no other way to stop. */
export class WorkExceeded extends Error {}

export interface WorkMeter {
  /** @throws WorkExceeded */
  spend(units: number): void;
  /** Characters times the size of a pattern. @throws WorkExceeded */
  spendOnPattern(units: number): void;
}

/** A meter of the work of a check, which can begin again. */
export interface WorkBudget {
  readonly meter: WorkMeter;
  restart(): void;
}

/** A unit takes about 50 ns, and may leave an error behind: 0.2 s and 100 MB at the most, measured. */
const UNITS_MAX = 2_000_000;
/** A unit takes 0.1 to 35 ns: 0.7 s at the most, measured. */
const PATTERN_UNITS_MAX = 20_000_000;

/**
 * Creates the budget of work that one check may take, with its meter, which throws once it is spent; `restart` fills
 * it again.
 */
export function createWorkBudget(): WorkBudget {
  let left = UNITS_MAX;
  let patternLeft = PATTERN_UNITS_MAX;
  return {
    restart: () => {
      left = UNITS_MAX;
      patternLeft = PATTERN_UNITS_MAX;
    },
    meter: {
      spend: (units) => {
        left -= units;
        if (left < 0) throw new WorkExceeded();
      },
      spendOnPattern: (units) => {
        patternLeft -= units;
        if (patternLeft < 0) throw new WorkExceeded();
      },
    },
  };
}
