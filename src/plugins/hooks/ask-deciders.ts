/** Owns: what several plugins say of one decision. They are asked at once, so that none waits for another. */
import { hooksOf } from "./asked-hooks.ts";
import type { ProblemParts } from "./hook-problem.ts";
import type { HookDecision } from "./hook-types.ts";
import { isolatedCopy } from "./isolated-copy.ts";
import { readDecision } from "./read-answers.ts";
import { runAsked } from "./run-asked.ts";

export type DecisionRuling =
  /** `plugin` is the one whose confidence counts, or else the first that allowed it. */
  | { readonly action: "allow"; readonly plugin: string; readonly confidence?: number }
  | {
      readonly action: "deny";
      readonly plugin: string;
      /** A sentence that names the plugin. */
      readonly reason: string;
      /** The plugin did not deny it, it failed. */
      readonly failed?: true;
    };

export async function askDeciders(
  parts: ProblemParts,
  decision: HookDecision,
  deadlineAtMs?: number,
): Promise<DecisionRuling | undefined> {
  const asked = hooksOf("decide", parts.clock.now());
  const rulings = await Promise.all(asked.map((one) => rulingOf(one)));
  const given = rulings.flatMap((ruling) => ruling ?? []);
  return given.find(({ action }) => action === "deny") ?? leastConfident(given);

  async function rulingOf(one: (typeof asked)[number]): Promise<DecisionRuling | undefined> {
    const { plugin } = one;
    const outcome = await runAsked(parts, one, {
      given: (context) => [isolatedCopy(decision), context],
      ...{ deadlineAtMs, read: readDecision },
    });
    if (outcome?.kind === "problem")
      return { action: "deny", plugin, reason: outcome.problem.message, failed: true };
    if (!outcome?.value) return undefined;
    const { action, reason, confidence } = outcome.value;
    if (action === "deny")
      return { action, plugin, reason: `the plugin ${plugin} denied it: ${reason ?? "it gave no reason"}` };
    return { action, plugin, ...(confidence !== undefined && { confidence }) };
  }
}

function leastConfident(rulings: readonly DecisionRuling[]): DecisionRuling | undefined {
  const [first, ...others] = rulings;
  return others.reduce(
    (least, next) => (confidenceOf(next) < confidenceOf(least) ? next : least),
    first as DecisionRuling,
  );
}

function confidenceOf(ruling: DecisionRuling): number {
  return ruling.action === "allow" ? (ruling.confidence ?? Number.POSITIVE_INFINITY) : 0;
}
