/** A gateway that goes on with many coordinations at its start is there for the others meanwhile. */
import { expect, it } from "vitest";
import { addMs } from "../../src/agents/coordination/contracts/ids.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { spawnOf } from "../support/fake-clock-host.ts";
import { AGENT, createGateways, type Gateways, type TestGateway } from "./gateways-scene.ts";
import { plan, PLAN_ID, step } from "./planned-world.ts";

async function spawn({ coordinator, host }: TestGateway, name: string): Promise<void> {
  const request = spawnOf({ task: `task of ${name}`, trace: `trace-${name}` });
  const admission = await coordinator.admitSpawn(request);
  if (admission.kind === "refused") throw new Error(admission.reason);
  await coordinator.confirmSpawn(admission.envelope, host.spawn(request));
}

/** A gateway `a` with a plan and two spawns is killed, and its host is slow from then on. */
async function createKilled(): Promise<Gateways> {
  const gateways = createGateways();
  const { clock } = gateways;
  const a = await gateways.start("a", () => "work");
  await gateways.start("b", () => "work");
  const retried = { defaults: { retry: { budget: 1, backoffMs: 1_000 } } };
  await a.coordinator.submitPlan({ plan: plan([step("slow")], retried), ownerAgent: AGENT });
  await spawn(a, "1");
  await spawn(a, "2");
  a.kill({ isOnMachine: false });
  // The host may take 10 s for an answer.
  a.host.says = () =>
    new Promise((resolve) => {
      clock.wakeAt(addMs(clock.now(), 9_900), () => resolve({ kind: "unknown" }));
    });
  return gateways;
}

it("a gateway that asks a slow host about every child at its start loses nothing to the others", async () => {
  await using gateways = await createKilled();
  const starting = gateways.start("a", () => "work");
  await waitUntilSettled();
  for (let second = 0; second < 60; second += 1) await gateways.clock.advance(1_000);
  await starting;
  expect(gateways.lines.filter((line) => line.startsWith("b:"))).toEqual([]);
  expect((await gateways.view(PLAN_ID)).steps).toMatchObject([{ stepId: "slow", status: "running" }]);
  expect(await gateways.driverOf(PLAN_ID)).toBe("a");
});
