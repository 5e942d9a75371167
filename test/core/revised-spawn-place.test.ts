/** Owns: that the place of a spawn among those that may run at once is free when its child is over, however often it was revised. */
import { expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createCoordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createSpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { createArbitrationDependencies } from "../support/arbitration-dependencies.ts";
import { OWNER, createWorld, openLanes } from "../support/fake-clock-host.ts";
import { createGateDependencies, type GivenGates } from "../support/gate-dependencies.ts";
import { planDependencies } from "../support/plan-dependencies.ts";
import { createScriptedRunner, endDone } from "../support/scripted-runner.ts";
import {
  createGatesWith,
  createRuling,
  createScriptedVerifier,
  listEvents,
  spawnChild,
  waitUntilQuiet,
} from "./gates-world.ts";

const ignore = (): void => undefined;
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** A coordinator under which one spawn may run at once. */
async function startNarrow(gates: GivenGates) {
  const runner = createScriptedRunner(() => endDone({ second: true }));
  const world = createWorld({}, runner);
  const store = world.ledger.open(world.clock);
  const gate = createSpawnGate({ clock: world.clock, limits: { spawnsMax: 1 }, delayMs: 0 });
  const coordinator = createCoordinator({
    store,
    content: store,
    withheld: world.texts,
    ...planDependencies(runner),
    ...createArbitrationDependencies(),
    ...createGateDependencies(gates),
    clock: world.clock,
    runner: world.host,
    logger: SILENT,
    lanes: openLanes(),
    gate,
    settings: world.settings,
    newCoordinationId: () => "co-1" as CoordinationId,
  });
  await coordinator.start();
  return { world, gate, coordinator };
}

it.each(["pass", "revise"] as const)("after a first verdict of %s", async (first) => {
  const { verifier } = createScriptedVerifier((_, time) => createRuling(time === 1 ? first : "pass"));
  const { world, gate, coordinator } = await startNarrow({ gates: createGatesWith(["lint"]), verifier });
  const child = await spawnChild(world, coordinator);
  await child.says("done");
  await child.ends();
  await world.clock.advance(10_000);
  await waitUntilQuiet(world);
  expect(listEvents(world, "step.completed")).toHaveLength(1);
  expect(await gate.enter(OWNER)).toMatchObject({ kind: "admitted" });
  await coordinator.stop();
});

it("while its result is held for people, as after a restart", async () => {
  const { world, gate, coordinator } = await startNarrow({ gates: createGatesWith([]) });
  const child = await spawnChild(world, coordinator);
  expect(await gate.enter(OWNER)).toMatchObject({ kind: "refused" });
  await child.says('Perhaps.\n{"confidence": 0.3}');
  await child.ends();
  expect(listEvents(world, "result.held")).toHaveLength(1);
  const entry = await gate.enter(OWNER);
  expect(entry).toMatchObject({ kind: "admitted" });
  if (entry.kind === "admitted") entry.leave();
  await coordinator.cancel({ coordinationId: "co-1" as CoordinationId, by: "operator" });
  await waitUntilQuiet(world);
  // The end of the step gives back no place a second time.
  expect(await gate.enter(OWNER)).toMatchObject({ kind: "admitted" });
  expect(await gate.enter(OWNER)).toMatchObject({ kind: "refused" });
  await coordinator.stop();
});
