/** Owns: how many durable commits a plan takes. Each costs more than all of our own work for a step. */
import { expect, it } from "vitest";
import { runPlan } from "../bench/measure-plans.ts";
import { openPlanHost, planOf } from "../bench/plan-host.ts";

const STEPS = 5;

interface Plan {
  readonly steps: readonly { readonly stepId: string; readonly dependsOn?: readonly string[] }[];
}

/** Each step is given what the step before it came to. */
function passResultsOn({ steps, ...others }: Plan): object {
  const withInputs = steps.map((step) => {
    const [before] = step.dependsOn ?? [];
    return before === undefined ? step : { ...step, input: { before: `{{steps.${before}.outputs.text}}` } };
  });
  return { ...others, steps: withInputs };
}

it.each([
  ["whose steps only wait for each other", (plan: object) => plan],
  ["whose steps are given each other's results", (plan: object) => passResultsOn(plan as Plan)],
])(
  "a chain %s takes a commit for each step, one when it is taken up and one when its owner was told",
  async (_, change) => {
    await using host = await openPlanHost({ concurrency: 8 });
    await runPlan(host, change(planOf("co-chain", "chain", STEPS)));
    expect(host.transactions()).toBe(STEPS + 2);
  },
);

it("a join is given the results of all before it within the commit of the last of them", async () => {
  await using host = await openPlanHost({ concurrency: 8 });
  const plan = planOf("co-joined", "joined", STEPS) as Plan;
  const join = plan.steps.at(-1);
  const input = Object.fromEntries(join?.dependsOn?.map((id) => [id, `{{steps.${id}.outputs.text}}`]) ?? []);
  await runPlan(host, { ...plan, steps: [...plan.steps.slice(0, -1), { ...join, input }] });
  // Taken up, all steps at once, the join, the owner told.
  expect(host.transactions()).toBe(4);
});
