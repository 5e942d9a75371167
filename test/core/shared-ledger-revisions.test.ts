/** A result that is sent back after its gateway is gone: its agent is in no other gateway. */
import { describe, expect, it } from "vitest";
import { endDone } from "../support/scripted-runner.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import {
  createGatesWith,
  createRuling,
  createScriptedVerifier,
  waitForever,
  type Answers,
} from "./gates-world.ts";
import { AGENT, createGateways, LEASE_MS, type Gateways } from "./gateways-scene.ts";
import { plan, PLAN_ID, step } from "./planned-world.ts";

/** A gateway whose one check of every result answers so, sooner or later. */
const createChecking = (answers: Answers) => ({
  gates: createGatesWith(["lint"], { verifyMs: 600_000 }),
  verifier: createScriptedVerifier(answers).verifier,
});

const NEVER = createChecking(waitForever);
const createRevising = () =>
  createChecking((_, time) =>
    time === 1 ? createRuling("revise", { criteria: ["tests"] }) : createRuling("pass"),
  );

async function holdApples(gateways: Gateways) {
  const a = await gateways.start("a", () => endDone({ apples: 3 }), NEVER);
  const apples = plan([step("one", { task: "Count the apples" })]);
  expect(await a.coordinator.submitPlan({ plan: apples, ownerAgent: AGENT })).toMatchObject({
    kind: "accepted",
  });
  await waitUntilSettled();
  await gateways.clock.advance(1_000);
  expect((await gateways.view(PLAN_ID)).steps).toMatchObject([{ stepId: "one", status: "held" }]);
  return a;
}

describe("a result that is sent back", () => {
  it("after a takeover goes to an agent that is told the whole task and the result, in a session of its own", async () => {
    await using gateways = createGateways();
    const a = await holdApples(gateways);
    const b = await gateways.start("b", undefined, createRevising());
    a.kill();
    await gateways.clock.advance(LEASE_MS * 2);
    const [order] = b.plans.orders;
    for (const text of ["Count the apples", "tests", '"apples":3']) expect(order?.message).toContain(text);
    expect(order?.childSessionKey).not.toBe(a.plans.orders[0]?.childSessionKey);
    expect((await gateways.view(PLAN_ID)).steps[0]).toMatchObject({ status: "completed" });
  });

  it("goes to the same session where its own gateway was started again", async () => {
    await using gateways = createGateways();
    const a = await holdApples(gateways);
    a.kill();
    const again = await gateways.start("a", undefined, createRevising());
    await gateways.clock.advance(LEASE_MS * 2);
    const [order] = again.plans.orders;
    expect(order?.message).not.toContain("Count the apples");
    expect(order?.childSessionKey).toBe(a.plans.orders[0]?.childSessionKey);
  });
});
