/** Owns: that the place of a spawn among those that may run at once is free when it is over, however often it was revised. */
import { expect, it } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import { createCoordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createSpawnGate } from "../../src/agents/coordination/runtime/spawns/spawn-gate.ts";
import { createArbitrationDependencies } from "../support/arbitration-dependencies.ts";
import { OWNER, createWorld, openLanes } from "../support/fake-clock-host.ts";
import { createGateDependencies } from "../support/gate-dependencies.ts";
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

it.each(["pass", "revise"] as const)("after a first verdict of %s", async (first) => {
  const { verifier } = createScriptedVerifier((_, time) => createRuling(time === 1 ? first : "pass"));
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
    ...createGateDependencies({ gates: createGatesWith(["lint"]), verifier }),
    clock: world.clock,
    runner: world.host,
    logger: SILENT,
    lanes: openLanes(),
    gate,
    settings: world.settings,
    newCoordinationId: () => "co-1" as CoordinationId,
  });
  await coordinator.start();
  const child = await spawnChild(world, coordinator);
  await child.says("done");
  await child.ends();
  await world.clock.advance(10_000);
  await waitUntilQuiet(world);
  expect(listEvents(world, "step.completed")).toHaveLength(1);
  expect(await gate.enter(OWNER)).toMatchObject({ kind: "admitted" });
  await coordinator.stop();
});
