/** Owns: how a give-up is said: that a plan ended without reaching all that it is for, and what it did not reach. */
import type { CriterionMet } from "../../contracts/verification.ts";

/** So many are named, and no more: whoever is told has room for little. */
const NAMED_MAX = 20;

/**
 * Returns the unmet success criteria of a plan in words like `gave up: speed, tests not met`; an empty text when none
 * is unmet.
 */
export function formatUnmetCriteria(successCriteria: readonly CriterionMet[] | undefined): string {
  const unmet = (successCriteria ?? []).filter(({ met }) => !met).map(({ key }) => key);
  if (unmet.length === 0) return "";
  const more = unmet.length > NAMED_MAX ? ` and ${unmet.length - NAMED_MAX} more` : "";
  return `gave up: ${unmet.slice(0, NAMED_MAX).join(", ")}${more} not met`;
}
