import type { GivenGates } from "../support/gate-parts.ts";
import { world } from "../support/fake-clock-host.ts";
import { done, scriptedRunner, type Scripted } from "../support/scripted-runner.ts";
import { gatesWith, quiet, scriptedVerifier, type Answers } from "./gates-world.ts";
import { plan, scriptOf, step, submitTo, type Fields, type PlanRun } from "./planned-world.ts";

export interface Checked {
  readonly run: PlanRun;
  readonly asked: ReturnType<typeof scriptedVerifier>["asked"];
}

/** A plan of one step `a` whose results `main`'s checks rule on. */
export async function checked(
  answers: Answers,
  {
    checks = ["lint"],
    gates = {},
    more = {},
    fields = {},
    scripts = [done({ n: 1 })],
  }: {
    readonly checks?: readonly string[];
    readonly gates?: object;
    readonly more?: GivenGates;
    readonly fields?: Fields;
    readonly scripts?: readonly Scripted[];
  } = {},
): Promise<Checked> {
  const { asked, verifier } = scriptedVerifier(answers);
  const given = { gates: gatesWith(checks, gates), verifier, ...more };
  const it = world({}, scriptedRunner(scriptOf({ a: scripts })), given);
  const run = await submitTo(it, plan([step("a", fields)]));
  await quiet(it);
  return { run, asked };
}
