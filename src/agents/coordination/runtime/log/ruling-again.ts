/** Owns: ruling again on a call when another process claimed something between the ruling and its record. */
import { isCoordinationError } from "../../contracts/errors.ts";

/** Another writer claimed something in between this often; then the caller hears of it. */
const RULINGS_MAX = 8;

/**
 * Returns what `rule` resolves to. Calls it again, up to `RULINGS_MAX` times in all, where another process claimed
 * something between the ruling and its record (S5); any other error is thrown.
 */
export async function ruleAgainAfterRace<T>(rule: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await rule();
    } catch (error) {
      if (!isCoordinationError(error) || error.code !== "CLAIM_CONFLICT" || tries >= RULINGS_MAX) throw error;
    }
  }
}
