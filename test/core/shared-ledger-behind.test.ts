/** A gateway that read a coordination long ago knows it as it is now, however much another one appended meanwhile. */
import { expect, it } from "vitest";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { endDone } from "../support/scripted-runner.ts";
import { AGENT, createGateways, type Gateways } from "./gateways-scene.ts";
import { plan, PLAN_ID, step } from "./planned-world.ts";

const NEWS_MIN = 1_000;

/** The gateway `b` reads a plan once; then a step of it and 200 others end, and a last one waits for people. */
async function createBehind(gateways: Gateways) {
  const a = await gateways.start("a", ({ envelope }) => (envelope.stepId === "slow" ? "work" : endDone()));
  const b = await gateways.start("b");
  const steps = [
    step("slow"),
    ...Array.from({ length: 200 }, (_, index) => step(`step-${index}`, { dependsOn: ["slow"] })),
    step("doubted", { dependsOn: ["slow"], verify: { requireConfidence: true } }),
  ];
  const submitted = await a.coordinator.submitPlan({ plan: plan(steps), ownerAgent: AGENT });
  expect(submitted).toMatchObject({ kind: "accepted" });
  await waitUntilSettled();
  await b.coordinator.view(PLAN_ID);
  const before = gateways.eventsOf(PLAN_ID).length;
  a.plans.end("slow", endDone());
  await gateways.clock.advance(5_000);
  expect(gateways.eventsOf(PLAN_ID).length - before).toBeGreaterThan(NEWS_MIN);
  return { a, b };
}

it("takes the answer to a question that is behind more than 1,000 events that it had not read", async () => {
  await using gateways = createGateways();
  const { b } = await createBehind(gateways);
  const answered = await b.coordinator.answer({
    questionId: `${PLAN_ID}:escalation-1`,
    answer: "approve",
    by: { kind: "operator" },
    through: "cli",
  });
  expect(answered).toMatchObject({ kind: "accepted" });
  await gateways.clock.advance(5_000);
  expect((await gateways.view(PLAN_ID)).status).toBe("success");
});

it("shows a plan as it is behind more than 1,000 events that it had not read", async () => {
  await using gateways = createGateways();
  const { b } = await createBehind(gateways);
  expect(await b.coordinator.view(PLAN_ID)).toEqual(await gateways.view(PLAN_ID));
});
