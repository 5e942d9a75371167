import type { GivenGates } from "../support/gate-dependencies.ts";
import { createWorld } from "../support/fake-clock-host.ts";
import { endDone, createScriptedRunner, type ScriptedAttempt } from "../support/scripted-runner.ts";
import { createGatesWith, waitUntilQuiet, createScriptedVerifier, type Answers } from "./gates-world.ts";
import { plan, scriptOf, step, submitTo, type Fields, type PlanRun } from "./planned-world.ts";

/** The run of a plan whose results are checked, and the requests to its checks. */
export interface CheckedPlanRun {
  readonly run: PlanRun;
  readonly asked: ReturnType<typeof createScriptedVerifier>["checkRequests"];
}

/** A plan of one step `a` whose results `main`'s checks rule on. */
export async function runCheckedPlan(
  answers: Answers,
  {
    checks = ["lint"],
    gates = {},
    more = {},
    fields = {},
    scripts = [endDone({ n: 1 })],
  }: {
    readonly checks?: readonly string[];
    readonly gates?: object;
    readonly more?: GivenGates;
    readonly fields?: Fields;
    readonly scripts?: readonly ScriptedAttempt[];
  } = {},
): Promise<CheckedPlanRun> {
  const { checkRequests, verifier } = createScriptedVerifier(answers);
  const gateSettings = { gates: createGatesWith(checks, gates), verifier, ...more };
  const world = createWorld({}, createScriptedRunner(scriptOf({ a: scripts })), gateSettings);
  const run = await submitTo(world, plan([step("a", fields)]));
  await waitUntilQuiet(world);
  return { run, asked: checkRequests };
}
