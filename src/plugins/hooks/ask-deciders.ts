/** Owns: what several plugins say of one decision. They are asked at once, so that none waits for another. */
import { listHooks } from "./asked-hooks.ts";
import type { ProblemDependencies } from "./hook-problem.ts";
import type { HookDecision } from "./hook-types.ts";
import { copyIsolated } from "./isolated-copy.ts";
import { readDecision } from "./read-answers.ts";
import { runHook } from "./run-hook.ts";

/** The plugins' ruling on a decision. */
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

/**
 * Asks all `decide` hooks at once. Returns the first denial in order of priority, else the allowance with the lowest
 * confidence; `undefined` when none has an opinion.
 */
export async function askDeciders(
  dependencies: ProblemDependencies,
  decision: HookDecision,
  deadlineAtMs?: number,
): Promise<DecisionRuling | undefined> {
  const hooks = listHooks("decide", dependencies.clock.now());
  const rulings = await Promise.all(hooks.map((one) => askDecider(one)));
  const answers = rulings.flatMap((ruling) => ruling ?? []);
  return answers.find(({ action }) => action === "deny") ?? findLeastConfident(answers);

  /** Asks one hook. One that fails counts as denying; `undefined` where it has no opinion. */
  async function askDecider(one: (typeof hooks)[number]): Promise<DecisionRuling | undefined> {
    const { plugin } = one;
    const outcome = await runHook(dependencies, one, {
      createArguments: (context) => [copyIsolated(decision), context],
      deadlineAtMs,
      read: readDecision,
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

function findLeastConfident(rulings: readonly DecisionRuling[]): DecisionRuling | undefined {
  const [first, ...others] = rulings;
  return others.reduce(
    (least, next) => (rankConfidence(next) < rankConfidence(least) ? next : least),
    first as DecisionRuling,
  );
}

/** Returns the confidence of an allowance for comparing: infinite where none is stated, 0 for a denial. */
function rankConfidence(ruling: DecisionRuling): number {
  return ruling.action === "allow" ? (ruling.confidence ?? Number.POSITIVE_INFINITY) : 0;
}
