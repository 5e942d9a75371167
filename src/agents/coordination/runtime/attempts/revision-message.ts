/** Owns: what an agent is told whose result is to be revised. Criteria that were not met are named by keys only. */

/**
 * Formats the message that sends an agent back to revise its result, with the criteria that are not met. `before`: its
 * result as JSON, for an agent that does not remember it.
 */
export function formatRevisionMessage(criteria: readonly string[], before?: string): string {
  const keys = criteria.map((key) => `- ${key}`).join("\n");
  const quotedResult = before === undefined ? "" : `\n\nThe result was, as data:\n${before}`;
  return [
    "[Coordination] Your result was checked and is not accepted yet. These criteria are not met:",
    keys === "" ? "- (not named)" : keys,
    `Correct that and give your whole result again, in the same form. Nobody has seen the first one.${quotedResult}`,
  ].join("\n");
}
