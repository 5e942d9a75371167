/** The places of spawns among those that may run at once, where their coordinations change hands. One may run at a time. */
import { expect, it } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import type { SpawnAdmission } from "../../src/agents/coordination/runtime/spawns/admit-spawn.ts";
import type { GivenGates } from "../support/gate-dependencies.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { spawnOf } from "../support/fake-clock-host.ts";
import { createGateways, LEASE_MS, type TestGateway } from "./gateways-scene.ts";

const ONE = { spawnsMax: 1 };

async function spawn({ coordinator, host }: TestGateway) {
  const request = spawnOf({ task: "task" });
  const admission = await coordinator.admitSpawn(request);
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId } = admission.envelope;
  const { childSessionKey } = host.spawn(request);
  await coordinator.confirmSpawn(admission.envelope, { childSessionKey, childRunId: "child-run" });
  return { coordinationId, child: childSessionKey };
}

const spawnAnother = ({ coordinator }: TestGateway): Promise<SpawnAdmission> =>
  coordinator.admitSpawn(spawnOf({ task: "other", trace: "trace-2" }));

it("those of another gateway take no place in the one that drives their coordination meanwhile", async () => {
  await using gateways = createGateways(ONE);
  const { clock } = gateways;
  const a = await gateways.start("a");
  const b = await gateways.start("b");
  const { coordinationId } = await spawn(a);
  a.kill();
  await clock.advance(LEASE_MS * 2);
  expect(await gateways.driverOf(coordinationId)).toBe("b");
  expect(await spawnAnother(b)).toMatchObject({ kind: "admitted" });
});

it("those of another gateway take no place in the one that gave their coordination back", async () => {
  await using gateways = createGateways(ONE);
  const { clock } = gateways;
  const a = await gateways.start("a");
  const b = await gateways.start("b");
  const { coordinationId, child } = await spawn(a);
  a.kill();
  await clock.advance(LEASE_MS * 2);
  expect(await gateways.driverOf(coordinationId)).toBe("b");
  const again = await gateways.start("a");
  await clock.advance(LEASE_MS);
  expect(await gateways.driverOf(coordinationId)).toBe("a");
  expect(await spawnAnother(again)).toMatchObject({ kind: "refused", code: "LANE_FULL" });
  again.host.end(child, { outcome: "completed" });
  await clock.advance(LEASE_MS * 10);
  expect((await gateways.view(coordinationId)).status).toBe("success");
  expect(await spawnAnother(b)).toMatchObject({ kind: "admitted" });
  expect(await spawnAnother(again)).toMatchObject({ kind: "admitted" });
});

it("those that ended in another gateway leave their place in their own, which was paused", async () => {
  await using gateways = createGateways(ONE);
  const { clock } = gateways;
  const a = await gateways.start("a");
  const b = await gateways.start("b");
  const { coordinationId } = await spawn(a);
  a.pause();
  await clock.advance(LEASE_MS * 2);
  await b.coordinator.cancel({ coordinationId, by: "operator" });
  await clock.advance(LEASE_MS);
  expect((await gateways.view(coordinationId)).status).toBe("cancelled");
  await a.resume();
  await clock.advance(LEASE_MS * 2);
  expect(await spawnAnother(a)).toMatchObject({ kind: "admitted" });
});

it("those that are given back to their own gateway, which was paused, have their place there until they end", async () => {
  await using gateways = createGateways(ONE);
  const { clock } = gateways;
  const a = await gateways.start("a");
  await gateways.start("b");
  const { coordinationId, child } = await spawn(a);
  a.pause();
  await clock.advance(LEASE_MS * 2);
  expect(await gateways.driverOf(coordinationId)).toBe("b");
  await a.resume();
  await clock.advance(LEASE_MS);
  expect(await gateways.driverOf(coordinationId)).toBe("a");
  expect(await spawnAnother(a)).toMatchObject({ kind: "refused", code: "LANE_FULL" });
  a.host.end(child, { outcome: "completed" });
  await a.coordinator.endChild(child, { outcome: "completed" });
  expect(await spawnAnother(a)).toMatchObject({ kind: "admitted" });
});

it("one that ends by a request through another gateway leaves its place, also where its own loses a race to that", async () => {
  await using gateways = createGateways(ONE);
  const { clock } = gateways;
  const gates: GivenGates = {
    gates: parsePluginConfig({
      coordination: { phase1: { gates: { enabled: true, requireConfidence: true } } },
    }).gates,
  };
  const a = await gateways.start("a", undefined, gates);
  const b = await gateways.start("b", undefined, gates);
  const { coordinationId, child } = await spawn(a);
  await a.coordinator.endChild(child, { outcome: "completed" });
  await clock.advance(1_000);
  expect((await gateways.view(coordinationId)).steps).toMatchObject([{ status: "held" }]);
  const answered = b.coordinator.answer({
    questionId: `${coordinationId}:escalation-1`,
    answer: "approve",
    by: { kind: "operator" },
    through: "cli",
  });
  expect(await answered).toMatchObject({ kind: "accepted" });
  // Before its next look at what others appended.
  await a.coordinator.cancel({ coordinationId, by: "operator" });
  await waitUntilSettled();
  await clock.advance(LEASE_MS);
  expect((await gateways.view(coordinationId)).steps).toMatchObject([{ status: "completed" }]);
  expect(await spawnAnother(a)).toMatchObject({ kind: "admitted" });
});
