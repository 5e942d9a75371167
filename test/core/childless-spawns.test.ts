/** Owns: whether a spawn with privileges that an earlier process began may have a child that the ledger does not know. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { CoordinationId, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld, OWNER, spawnOf, type World } from "../support/fake-clock-host.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { createGateways } from "./gateways-scene.ts";
import { listEvents } from "./gates-world.ts";
import { AGENT, plan, step } from "./planned-world.ts";

const READ_ONLY = { tools: { allow: ["read"] } };
const UNREADABLE = new CoordinationError("EVENT_UNREADABLE", "not an event");

interface Spawn {
  readonly task?: string;
  readonly source?: SessionKey;
  readonly isBounded?: boolean;
}

/** Admits a spawn, as the process does before the host makes the child. */
async function admit(
  coordinator: Coordinator,
  { task = "t", source = OWNER, isBounded = true }: Spawn = {},
): Promise<CoordinationId> {
  const request = spawnOf({ task, source, trace: task });
  const spawn = { ...request.spawn, ...(isBounded && { askedPrivilege: READ_ONLY }) };
  const admission = await coordinator.admitSpawn({ ...request, spawn });
  if (admission.kind === "refused") throw new Error(admission.reason);
  return admission.envelope.coordinationId;
}

/** Starts the next process a moment later; the one before has died, or is at its end. */
async function startNext(world: World, wrap?: (store: MemoryStore) => MemoryStore): Promise<Coordinator> {
  await world.clock.advance(5);
  return world.start(wrap);
}

const createWorldOfHost = (says: "nothing" | "the truth", agents: "work" | "hang" = "work"): World => {
  const world = createWorld(
    {},
    createScriptedRunner(() => agents),
  );
  if (says === "nothing") world.host.says = () => new Promise(() => undefined);
  return world;
};

describe("a spawn with privileges of a process that died before it knew the child", () => {
  it("may have a child until the host has said which one, and then has it", async () => {
    const world = createWorldOfHost("the truth");
    await admit(world.start());
    const { childSessionKey } = world.host.spawn(spawnOf({ task: "t" }));
    const next = await startNext(world);
    const { privileges } = next;
    expect(await privileges.hasChildlessSpawn(undefined)).toBe(true);
    await next.start();
    expect(await privileges.hasChildlessSpawn(undefined)).toBe(false);
    const { bounds } = await privileges.boundsOf(childSessionKey, () => undefined);
    expect(bounds.map(({ privilege }) => privilege)).toEqual([READ_ONLY]);
  });

  it("may have a child also where the clock was put back meanwhile", async () => {
    const world = createWorldOfHost("nothing");
    await admit(world.start());
    world.clock.jump(world.clock.now() - 60_000);
    expect(await world.start().privileges.hasChildlessSpawn(OWNER)).toBe(true);
  });

  it("may have a child also where an agent of a plan has made it", async () => {
    const world = createWorldOfHost("nothing");
    const first = world.start();
    await first.start();
    await first.submitPlan({ plan: plan([step("a")]), ownerAgent: AGENT });
    await waitUntilSettled();
    const [order] = world.plans.orders;
    if (!order) return expect.fail("no agent began");
    await admit(first, { source: order.childSessionKey });
    const second = await startNext(world);
    void second.start();
    await world.clock.advance(1_000);
    expect(world.host.asked).toHaveLength(1);
    expect(await second.privileges.hasChildlessSpawn(undefined)).toBe(true);
  });

  it("may have a child while it is recorded and not on disk: its session cannot be found yet", async () => {
    const world = createWorldOfHost("the truth");
    await admit(world.start());
    world.host.spawn(spawnOf({ task: "t" }));
    const writing = Promise.withResolvers<true>();
    const written = Promise.withResolvers<true>();
    const next = await startNext(world, (store) => ({
      ...store,
      append: async (request) => {
        writing.resolve(true);
        await written.promise;
        return store.append(request);
      },
    }));
    void next.start();
    await writing.promise;
    const answer = next.privileges.hasChildlessSpawn(undefined);
    const early = await Promise.race([answer, new Promise((resolve) => setImmediate(resolve, "waits"))]);
    written.resolve(true);
    expect(early).not.toBe(false);
    await answer;
  });
});

describe("no spawn may have a child that the ledger does not know", () => {
  it("where those of the process before had no privileges", async () => {
    const world = createWorldOfHost("nothing");
    await admit(world.start(), { isBounded: false });
    expect(await (await startNext(world)).privileges.hasChildlessSpawn(undefined)).toBe(false);
  });

  it("where it is begun since: its process waits for the child itself", async () => {
    const world = createWorldOfHost("nothing");
    const coordinator = world.start();
    await admit(coordinator);
    expect(await coordinator.privileges.hasChildlessSpawn(undefined)).toBe(false);
  });

  it("where a plan dispatched the step: the session of its agent was chosen before", async () => {
    const world = createWorldOfHost("nothing", "hang");
    const first = world.start();
    await first.start();
    const bounded = step("a", READ_ONLY);
    await first.submitPlan({ plan: plan([bounded]), ownerAgent: AGENT });
    await waitUntilSettled();
    expect(world.plans.orders).toHaveLength(1);
    expect(listEvents(world, "step.admitted").map(({ payload }) => payload.privilege)).toEqual([
      { asked: READ_ONLY },
    ]);
    expect(await (await startNext(world)).privileges.hasChildlessSpawn(undefined)).toBe(false);
  });

  it("where another gateway of the ledger began it, whose sessions are not here", async () => {
    await using gateways = createGateways();
    const office = await gateways.start("office");
    await admit(office.coordinator);
    await gateways.clock.advance(5);
    const home = await gateways.start("home");
    expect(await home.coordinator.privileges.hasChildlessSpawn(undefined)).toBe(false);
    office.kill();
    const again = await gateways.start("office");
    expect(await again.coordinator.privileges.hasChildlessSpawn(undefined)).toBe(true);
  });

  it("for a child of another session; for one of nobody knows whom there may be", async () => {
    const world = createWorldOfHost("nothing");
    await admit(world.start());
    const { privileges } = await startNext(world);
    expect(await privileges.hasChildlessSpawn("agent:main:other" as SessionKey)).toBe(false);
    expect(await privileges.hasChildlessSpawn(OWNER)).toBe(true);
    expect(await privileges.hasChildlessSpawn(undefined)).toBe(true);
  });

  it("in a coordination whose summary is unreadable, unless its log tells of one", async () => {
    const world = createWorldOfHost("nothing");
    const first = world.start();
    await admit(first, { task: "bounded" });
    const spoil = (store: MemoryStore): MemoryStore => ({
      ...store,
      list: () => Promise.reject(new CoordinationError("LEDGER_CORRUPT", "not a summary")),
      listUnproven: async (query) =>
        (await store.listUnproven(query)).map(({ summary: _, ...entry }) => entry),
    });
    expect(await (await startNext(world, spoil)).privileges.hasChildlessSpawn(OWNER)).toBe(true);
  });

  it("as far as undamaged logs tell", async () => {
    const world = createWorldOfHost("nothing");
    const first = world.start();
    const damaged = await admit(first, { task: "damaged" });
    const spoil = (store: MemoryStore): MemoryStore => ({
      ...store,
      read: (runId, range) => (runId === damaged ? Promise.reject(UNREADABLE) : store.read(runId, range)),
    });
    expect(await (await startNext(world, spoil)).privileges.hasChildlessSpawn(undefined)).toBe(false);
    await admit(first, { task: "whole" });
    expect(await (await startNext(world, spoil)).privileges.hasChildlessSpawn(undefined)).toBe(true);
  });

  it("once that was found, without another look at the ledger; a ledger that failed is looked at again", async () => {
    const world = createWorldOfHost("nothing");
    let lists = 0;
    const { privileges } = await startNext(world, (store) => ({
      ...store,
      listUnproven: (query) => {
        lists += 1;
        return lists === 1 ? Promise.reject(new Error("busy")) : store.listUnproven(query);
      },
    }));
    await expect(privileges.hasChildlessSpawn(undefined)).rejects.toThrow("busy");
    for (let calls = 0; calls < 3; calls += 1)
      expect(await privileges.hasChildlessSpawn(undefined)).toBe(false);
    expect(lists).toBe(2);
  });
});
