import { describe, expect, it } from "vitest";
import { DELIVERY_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import { endDone } from "../support/scripted-runner.ts";
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
