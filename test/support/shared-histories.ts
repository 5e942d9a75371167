/** Owns: histories that several properties are checked on. Playing them takes most of the time, so each is played once for all. */
import fc from "fast-check";

/** Checks a property on the first so many of the histories, or on all. A failure names the smallest history that shows it. */
export type CheckAll<History> = (
  check: (history: History) => void | Promise<void>,
  count?: number,
) => Promise<void>;

/** The histories are drawn and played by the first property that asks for them. `PROPERTY_SEED` draws others. */
export function shareHistories<Setup, History>(
  setups: fc.Arbitrary<Setup>,
  play: (setup: Setup) => History,
  numRuns: number,
): CheckAll<History> {
  const draw = { numRuns, seed: Number(process.env["PROPERTY_SEED"]) };
  const histories: History[] = [];
  return async (check, count = numRuns) => {
    if (histories.length === 0)
      fc.assert(
        fc.property(setups, (setup) => void histories.push(play(setup))),
        draw,
      );
    try {
      for (const history of histories.slice(0, count)) await check(history);
    } catch (error) {
      // The same histories once more, now one by one and with what makes them smaller.
      await fc.assert(
        fc.asyncProperty(setups, async (setup) => check(play(setup))),
        draw,
      );
      throw error;
    }
  };
}
