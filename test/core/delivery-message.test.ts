import { describe, expect, it } from "vitest";
import { DELIVERY_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import { endDone, endFailing } from "../support/scripted-runner.ts";
import { plan, runPlan, step } from "./planned-world.ts";

async function readDeliveryOf(outputs: object): Promise<string> {
  const run = await runPlan({ a: [endDone(outputs)] }, plan([step("a")]));
  await run.close();
  return run.ordersOf(DELIVERY_STEP_ID)[0]?.message ?? expect.fail("the owner was not told");
}

describe("the message with a long result to the owner of a plan", () => {
  it.each([
    ["a text alone, which is read without its JSON", { text: "x".repeat(50_000) }, 50_000],
    ["more than a text", { text: "x".repeat(50_000), pages: 3 }, 50_021],
  ])("names as many characters as coordination_result has of it: %s", async (_, outputs, chars) => {
    const message = await readDeliveryOf(outputs);
    expect(message).toContain(`this is shortened from ${chars} characters, sha256 `);
  });
});

describe("the message to the owner of a plan with more results than it can quote", () => {
  it("says how many are left out, and steps without a result take no place of one", async () => {
    const names = Array.from({ length: 230 }, (_, place) => `s${100 + place}`);
    const failing = Object.fromEntries(names.slice(0, 25).map((name) => [name, [endFailing()]]));
    const run = await runPlan(failing, plan(names.map((name) => step(name))));
    await run.advance(60_000);
    const message = run.ordersOf(DELIVERY_STEP_ID)[0]?.message ?? expect.fail("the owner was not told");
    for (const quoted of ["s125", "s324"]) expect(message).toContain(`"${quoted}":{}`);
    expect(message).not.toContain('"s325":{}');
    expect(message).toContain(
      "\n\nOutputs of 5 more steps are not quoted; coordination_result reads them.\n\n",
    );
    await run.close();
  });
});
