/** Owns: a plugin as a verifier: its verdict, or why there is none (G1: then nothing passes). */
import type { CheckAnswer, CheckRequest } from "../../agents/coordination/ports/verifier.ts";
import type { AskedHook } from "./asked-hooks.ts";
import type { ProblemDependencies } from "./hook-problem.ts";
import { copyIsolated } from "./isolated-copy.ts";
import { readVerdict } from "./read-answers.ts";
import { runHook } from "./run-hook.ts";

/** A plugin that is to verify a result. */
export interface AskedVerifier {
  readonly check: string;
  /** Absent where no such plugin verifies. */
  readonly asked: AskedHook | undefined;
}

/** A check of a result, without the settings of the operator. */
export type PluginCheck = Pick<CheckRequest, "result" | "deadlineAtMs" | "signal">;

/**
 * Asks the `verify` hook of a plugin for its verdict on a result; where there is none, as without a hook, after a
 * failure or for another target, the answer says why. Never rejects.
 */
export async function verifyByPlugin(
  dependencies: ProblemDependencies,
  { result, deadlineAtMs, signal }: PluginCheck,
  { check, asked: hook }: AskedVerifier,
): Promise<CheckAnswer> {
  const outcome =
    hook &&
    (await runHook(dependencies, hook, {
      deadlineAtMs,
      signal,
      read: readVerdict,
      createArguments: (context) => [copyIsolated(result), context],
    }));
  if (!hook || !outcome)
    return { kind: "none", because: "unavailable", message: `no plugin verifies as ${check}` };
  if (outcome.kind === "problem") {
    const { because, message } = outcome.problem;
    return { kind: "none", because, message };
  }
  const { verdict, criteria = [], confidence, target } = outcome.value;
  const { plugin } = hook;
  if (target !== undefined && target !== result.target)
    return { kind: "none", because: "other_target", message: `the plugin ${plugin} verified something else` };
  const rest = { ...(confidence !== undefined && { confidence }), agentId: `plugin:${plugin}` };
  return { kind: "verdict", verdict, criteria, ...rest };
}
