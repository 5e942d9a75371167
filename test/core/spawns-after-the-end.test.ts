/** Spawns of a subagent that could not be stopped, once the coordination that it worked in has ended. */
import { describe, expect, it } from "vitest";
import type { CoordinationId, SessionKey, StepId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { createWorld, spawnOf, type World } from "../support/fake-clock-host.ts";
import { createScriptedRunner, endDone, endFailing } from "../support/scripted-runner.ts";
import { listEvents, spawnChild } from "./gates-world.ts";
import { plan, scriptOf, step, submitTo, type Fields, type PlanRun } from "./planned-world.ts";

const COORDINATION_ID = "co-1" as CoordinationId;
const ABOVE = "step-1" as StepId;
const REFUSED = {
  kind: "refused",
  code: "PLAN_STOPPED",
  reason:
    "the work that this subagent is for was cancelled or given up; end your own, and begin nothing more",
};
const ADMITTED = { kind: "admitted", envelope: { coordinationId: "co-2" } };

const spawnFrom = (coordinator: Coordinator, source: SessionKey) =>
  coordinator.admitSpawn(spawnOf({ task: "more", source, trace: "later" }));

interface AtWork {
  readonly world: World;
  readonly coordinator: Coordinator;
  readonly above: SessionKey;
  readonly session: SessionKey;
}

/** A subagent in a turn that the host cannot stop, spawned by another one. */
async function spawnInTurn(): Promise<AtWork> {
  const world = createWorld();
  const coordinator = world.start();
  await coordinator.start();
  const { session: above } = await spawnChild(world, coordinator, "above");
  const child = await spawnChild(world, coordinator, "t", above);
  coordinator.turnBegan(child.session, "woken");
  world.host.stop = () => Promise.resolve("unreachable");
  return { world, coordinator, above, session: child.session };
}

async function cancelUntilEnd({ world, coordinator }: AtWork, stepId?: StepId): Promise<void> {
  await coordinator.cancel({ coordinationId: COORDINATION_ID, by: "operator", ...(stepId && { stepId }) });
  await world.clock.advance(10_000);
  expect(listEvents(world, "coordination.terminal").map(({ runId }) => runId)).toEqual(["co-1"]);
}

describe("a subagent that the host could not stop, after the end of its coordination", () => {
  it.each<[string, StepId | undefined]>([
    ["the whole coordination", undefined],
    ["what it was spawned by", ABOVE],
    ["the subagent alone", "step-2" as StepId],
  ])("may spawn nothing more in its turn where %s was cancelled", async (_, stepId) => {
    const scene = await spawnInTurn();
    const { coordinator, session } = scene;
    if (stepId === "step-2") await coordinator.endChild(scene.above, { outcome: "completed" });
    await cancelUntilEnd(scene, stepId);
    expect(await spawnFrom(coordinator, session)).toEqual(REFUSED);
    expect(listEvents(scene.world, "coordination.created")).toHaveLength(1);
    await coordinator.stop();
  });

  it("may spawn nothing more in its turn either where it had completed before what it was spawned by was cancelled", async () => {
    const scene = await spawnInTurn();
    const { coordinator, session } = scene;
    await coordinator.endChild(session, { outcome: "completed" });
    await cancelUntilEnd(scene, ABOVE);
    expect(await spawnFrom(coordinator, session)).toEqual(REFUSED);
    await coordinator.stop();
  });

  it.each<[string, (coordinator: Coordinator, session: SessionKey) => unknown]>([
    ["the host prompts it again in its turn", () => undefined],
    [
      "its turn fails and the host tries it again",
      (coordinator, session) => coordinator.turnEnded(session, "woken"),
    ],
  ])("may spawn nothing more either where %s", async (_, interrupt) => {
    const scene = await spawnInTurn();
    const { world, coordinator, session } = scene;
    await cancelUntilEnd(scene);
    await world.clock.advance(1_000);
    await interrupt(coordinator, session);
    coordinator.turnBegan(session, "woken");
    expect(await spawnFrom(coordinator, session)).toEqual(REFUSED);
    await coordinator.stop();
  });

  it("may spawn in a turn that somebody begins later", async () => {
    const scene = await spawnInTurn();
    const { world, coordinator, session } = scene;
    await cancelUntilEnd(scene);
    await coordinator.turnEnded(session, "woken");
    await world.clock.advance(1_000);
    coordinator.turnBegan(session, "asked-by-a-person");
    expect(await spawnFrom(coordinator, session)).toMatchObject(ADMITTED);
    await coordinator.stop();
  });

  it("may spawn in its turn where nothing was cancelled", async () => {
    const { world, coordinator, above, session } = await spawnInTurn();
    for (const child of [session, above]) await coordinator.endChild(child, { outcome: "completed" });
    await world.clock.advance(10_000);
    expect(await spawnFrom(coordinator, session)).toMatchObject(ADMITTED);
    await coordinator.stop();
  });
});

const FAIL_FAST = {
  failurePolicy: { retryBudget: 5, timeoutPolicy: "fail_fast", escalationPolicy: "none" },
};

/** The agents of both steps work until they are told to end. */
const createWorkingWorld = (): World =>
  createWorld({}, createScriptedRunner(scriptOf({ a: ["work"], b: ["work"] })));

describe("the agent of a completed step whose turn goes on after the plan has stopped and ended", () => {
  it.each<[string, Fields, (run: PlanRun) => void]>([
    ["fail_fast", FAIL_FAST, ({ world }) => world.plans.end("b", endFailing("no"))],
    ["deadline", { deadlineMs: 60_000 }, () => undefined],
  ])("may spawn nothing more in it (%s)", async (because, fields, stop) => {
    const run = await submitTo(createWorkingWorld(), plan([step("a"), step("b")], fields));
    const agent = run.ordersOf("a").at(-1)!.childSessionKey;
    run.coordinator.turnBegan(agent, "woken");
    run.world.plans.end("a", endDone());
    await run.advance(10_000);
    stop(run);
    await run.advance(60_000);
    expect(run.events("coordination.terminal")).toHaveLength(1);
    const spawnMore = () => run.coordinator.admitSpawn(spawnOf({ task: "more", source: agent }));
    expect(await spawnMore()).toEqual({
      kind: "refused",
      code: "PLAN_STOPPED",
      reason: `the plan that this work belongs to has stopped: ${because}; finish without another subagent`,
    });
    await run.coordinator.turnEnded(agent, "woken");
    run.coordinator.turnBegan(agent, "asked-by-a-person");
    expect(await spawnMore()).toMatchObject({ kind: "admitted" });
    await run.coordinator.stop();
  });

  it("may spawn in it where the plan ended before its deadline", async () => {
    const run = await submitTo(createWorkingWorld(), plan([step("a"), step("b")], { deadlineMs: 60_000 }));
    const agent = run.ordersOf("a").at(-1)!.childSessionKey;
    run.coordinator.turnBegan(agent, "woken");
    for (const name of ["a", "b"]) run.world.plans.end(name, endDone());
    await run.advance(70_000);
    expect(run.events("coordination.terminal")).toHaveLength(1);
    expect(await run.coordinator.admitSpawn(spawnOf({ task: "more", source: agent }))).toMatchObject({
      kind: "admitted",
    });
    await run.coordinator.stop();
  });
});
