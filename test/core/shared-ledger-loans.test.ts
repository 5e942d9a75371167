/** Budget that a plan lends to a plan inside, where another gateway than its own opens the plan inside. */
import { expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { endDone } from "../support/scripted-runner.ts";
import { AGENT, createGateways, type Gateways } from "./gateways-scene.ts";
import { plan, PLAN_ID, scriptOf, step } from "./planned-world.ts";

const INSIDE = "inside" as CoordinationId;

const listLoans = (gateways: Gateways): unknown[] =>
  gateways.eventsOf(PLAN_ID).flatMap((event) => (event.type === "budget.lent" ? [event.payload.budget] : []));

it("it is set aside, and given back, in the log of the gateway that drives the plan around", async () => {
  await using gateways = createGateways();
  const a = await gateways.start("a", scriptOf({ a: ["work"], go: ["work"], later: ["work"] }));
  const b = await gateways.start("b", scriptOf({ n: ["work"] }));
  const steps = [step("a"), step("go"), step("later", { dependsOn: ["go"] })];
  await a.coordinator.submitPlan({ plan: plan(steps, { budget: { spawns: 4 } }), ownerAgent: AGENT });
  await waitUntilSettled();
  const listBegun = (): string[] => a.plans.orders.map(({ envelope }) => envelope.stepId);
  const session = a.plans.orders.find(({ envelope }) => envelope.stepId === "a")!.childSessionKey;
  const inside = plan([step("n")], { coordinationId: INSIDE, ownerSession: session });
  expect(await b.coordinator.submitPlan({ plan: inside, ownerAgent: AGENT })).toMatchObject({
    kind: "accepted",
  });
  expect(listLoans(gateways)).toEqual([{ spawns: 2 }]);
  await waitUntilSettled();
  a.plans.end("go", endDone());
  await gateways.clock.advance(5_000);
  expect(listBegun()).toEqual(["a", "go"]);
  b.plans.end("n", endDone());
  await gateways.clock.advance(5_000);
  expect(listLoans(gateways)).toEqual([{ spawns: 2 }, { spawns: 1 }]);
  expect(listBegun()).toEqual(["a", "go", "later"]);
});
