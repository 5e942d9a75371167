/** A gateway whose host does not answer hears of requests nevertheless: they do not wait for what it takes back meanwhile. */
import { expect, it } from "vitest";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { spawnOf } from "../support/fake-clock-host.ts";
import { endDone } from "../support/scripted-runner.ts";
import { AGENT, createGateways, LEASE_MS, type Gateways, type TestGateway } from "./gateways-scene.ts";
import { plan, PLAN_ID, step } from "./planned-world.ts";

/** As many children as a gateway has to ask its host about when it takes their coordinations back. */
async function spawnTwo({ coordinator, host }: TestGateway): Promise<void> {
  for (const task of ["first", "second"]) {
    const request = spawnOf({ task, trace: `trace-${task}` });
    const admission = await coordinator.admitSpawn(request);
    if (admission.kind === "refused") throw new Error(admission.reason);
    await coordinator.confirmSpawn(admission.envelope, host.spawn(request));
  }
  host.says = () => new Promise(() => undefined);
}

async function submitSlow({ coordinator }: TestGateway): Promise<void> {
  expect(await coordinator.submitPlan({ plan: plan([step("slow")]), ownerAgent: AGENT })).toMatchObject({
    kind: "accepted",
  });
  await waitUntilSettled();
}

/** Cancels the plan through a gateway that does not drive it, and returns its status 4 s later. */
async function cancelThrough({ coordinator }: TestGateway, gateways: Gateways): Promise<string> {
  expect(await gateways.driverOf(PLAN_ID)).toBe("a");
  expect(await coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" })).toMatchObject({
    kind: "accepted",
  });
  await gateways.clock.advance(4_000);
  return (await gateways.view(PLAN_ID)).status;
}

it("stops a plan that is cancelled through another gateway while coordinations are given back to it", async () => {
  await using gateways = createGateways();
  const a = await gateways.start("a");
  const b = await gateways.start("b");
  await spawnTwo(a);
  a.kill();
  await gateways.clock.advance(LEASE_MS);
  const again = await gateways.start("a", ({ envelope }) =>
    envelope.stepId === "slow" ? "work" : endDone(),
  );
  await submitSlow(again);
  const questions = a.host.asked.length;
  await gateways.clock.advance(LEASE_MS / 5);
  expect(a.host.asked.length).toBe(questions + 1);
  expect(await cancelThrough(b, gateways)).toBe("cancelled");
  expect(again.plans.cancelled).toEqual(["plan-1:slow:1"]);
});

it("stops one also while it begins, and takes back the coordinations of its process before", async () => {
  await using gateways = createGateways();
  const a = await gateways.start("a", () => "work");
  const b = await gateways.start("b");
  await spawnTwo(a);
  await submitSlow(a);
  a.kill({ isOnMachine: false });
  const starting = gateways.start("a");
  await gateways.clock.advance(500);
  expect(await cancelThrough(b, gateways)).toBe("cancelled");
  await gateways.clock.advance(LEASE_MS * 4);
  await starting;
});
