/** Owns: when the dispatcher looks again: at once after whatever is recorded, and not in a circle where nothing can be recorded. */
import { describe, expect, it } from "vitest";
import type { StepId } from "../../src/agents/coordination/contracts/ids.ts";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import { waitForDuration } from "../../src/agents/coordination/std/wait-for.ts";
import { createPQueueLanes, type LaneLimits } from "../../src/infra/lanes/p-queue-lanes.ts";
import type { FakeClock } from "../support/fake-clock.ts";
import { createWorld, SETTINGS, spawnOf, type World } from "../support/fake-clock-host.ts";
import { testCoordinator } from "../support/ledger-fixtures.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { createScriptedRunner, endFailing, type ScriptedAttempt } from "../support/scripted-runner.ts";
import {
  createGatesWith,
  createRuling,
  createScriptedVerifier,
  listEvents,
  spawnChild,
} from "./gates-world.ts";
import { AGENT, plan, PLAN_ID, scriptOf, step } from "./planned-world.ts";

/** More tries than any of these tests needs: then a circle ends. */
const TRIES_MAX = 200;

interface FullDisk {
  readonly wrap: (store: MemoryStore) => MemoryStore;
  tries: number;
}

/** A disk that is full for the events of one type. */
function createFullDisk(type: RunEvent["type"]): FullDisk {
  const disk: FullDisk = {
    tries: 0,
    wrap: (store) => ({
      ...store,
      append: (request) => {
        if (!request.events.some((event) => event.type === type)) return store.append(request);
        disk.tries += 1;
        if (disk.tries > TRIES_MAX) return new Promise(() => undefined);
        return Promise.reject(new CoordinationError("LEDGER_FULL", "the disk is full"));
      },
    }),
  };
  return disk;
}

async function runOnDisk(world: World, disk: FullDisk, first: ScriptedAttempt) {
  const coordinator = world.start(disk.wrap);
  await coordinator.start();
  const steps = [step("a"), step("b", { dependsOn: ["a"] })];
  await coordinator.submitPlan({ plan: plan(steps), ownerAgent: AGENT });
  await world.clock.advance(1_000);
  if (first === "work") await coordinator.cancel({ coordinationId: PLAN_ID, by: "operator" });
  await world.clock.advance(10_000);
  return coordinator;
}

describe("a full disk", () => {
  it.each([
    { when: "steps are skipped", type: "step.skipped", first: endFailing() },
    { when: "an agent was stopped", type: "step.failed", first: "work" },
    { when: "a plan is over", type: "coordination.terminal", first: endFailing() },
  ] as const)(
    "is tried again at the next sweep where $when, and not in a circle",
    async ({ type, first }) => {
      const disk = createFullDisk(type);
      const world = createWorld({}, createScriptedRunner(scriptOf({ a: [first] })));
      const coordinator = await runOnDisk(world, disk, first);
      expect(disk.tries).toBeGreaterThan(0);
      expect(disk.tries).toBeLessThan(10);
      const { tries } = disk;
      await world.clock.advance(SETTINGS.sweepMs);
      expect(disk.tries).toBeGreaterThan(tries);
      expect(disk.tries).toBeLessThan(tries + 10);
      await coordinator.stop();
    },
  );
});

describe("a full disk where more steps are to begin than there are places", () => {
  it("is tried again at the next sweep, and not in a circle", async () => {
    const disk = createFullDisk("step.dispatched");
    const { ledger, clock } = createWorld();
    const coordinator = testCoordinator({
      store: disk.wrap(ledger.open(clock)),
      clock,
      newCoordinationId: () => PLAN_ID,
    });
    await coordinator.start();
    const steps = Array.from({ length: 20 }, (_, index) => step(`s${index}`));
    await coordinator.submitPlan({ plan: plan(steps), ownerAgent: AGENT });
    await clock.advance(10_000);
    expect(disk.tries).toBeGreaterThan(0);
    expect(disk.tries).toBeLessThan(50);
    const { tries } = disk;
    await clock.advance(SETTINGS.sweepMs);
    expect(disk.tries).toBeGreaterThan(tries);
    expect(disk.tries).toBeLessThan(tries + 50);
    await coordinator.stop();
  });
});

describe("a coordination of a model's spawns", () => {
  it("stops the children of a child at once when that was stopped", async () => {
    const world = createWorld({}, createScriptedRunner());
    const coordinator = world.start();
    await coordinator.start();
    const { session } = await spawnChild(world, coordinator);
    const nested = spawnOf({ task: "nested", source: session });
    const admission = await coordinator.admitSpawn(nested);
    if (admission.kind === "refused") throw new Error(admission.reason);
    const { coordinationId, stepId } = admission.envelope;
    const { childSessionKey, childRunId } = world.host.spawn(nested);
    const claim = { coordinationId, stepId, sourceSession: session, toolCallId: "nested" };
    await coordinator.confirmSpawn(claim, { childSessionKey, childRunId });
    await coordinator.cancel({ coordinationId, stepId: "step-1" as StepId, by: "operator" });
    await world.clock.advance(1_000);
    expect(world.host.children.get(childSessionKey)?.ending).toEqual({ outcome: "cancelled" });
    expect(listEvents(world, "step.failed").map(({ payload }) => payload.stepId)).toEqual(["step-1", stepId]);
    await coordinator.stop();
  });

  it("asks about a spawn at its time, also where the host does not answer about another one", async () => {
    const world = createWorld({}, createScriptedRunner());
    const coordinator = world.start();
    await coordinator.start();
    world.host.says = () => new Promise(() => undefined);
    await coordinator.admitSpawn(spawnOf({ task: "one" }));
    await world.clock.advance(5_000);
    await coordinator.admitSpawn(spawnOf({ task: "two" }));
    await world.clock.advance(SETTINGS.acknowledgeMs);
    const sha256s = world.host.asked.map(({ input }) => input.sha256);
    expect(new Set(sha256s).size).toBe(2);
    await coordinator.stop();
  });

  it("stops a child at once, also where the host does not answer about another one", async () => {
    const world = createWorld({}, createScriptedRunner());
    const coordinator = world.start();
    await coordinator.start();
    const { session } = await spawnChild(world, coordinator);
    world.host.says = () => new Promise(() => undefined);
    await coordinator.admitSpawn(spawnOf({ task: "another" }));
    await world.clock.advance(SETTINGS.acknowledgeMs);
    expect(world.host.asked).toHaveLength(1);
    const [{ runId: coordinationId }] = listEvents(world, "coordination.created") as [RunEvent];
    await coordinator.cancel({ coordinationId, stepId: "step-1" as StepId, by: "operator" });
    await world.clock.advance(1_000);
    expect(world.host.children.get(session)?.ending).toEqual({ outcome: "cancelled" });
    await coordinator.stop();
  });

  it("stops a child at once, also where the host does not stop another one", async () => {
    const world = createWorld({}, createScriptedRunner());
    const coordinator = world.start();
    await coordinator.start();
    const one = await spawnChild(world, coordinator, "one");
    const two = await spawnChild(world, coordinator, "two");
    const stop = world.host.stop.bind(world.host);
    world.host.stop = (query) =>
      query.childSessionKey === one.session ? new Promise(() => undefined) : stop(query);
    const [{ runId: coordinationId }] = listEvents(world, "coordination.created") as [RunEvent];
    await coordinator.cancel({ coordinationId, stepId: "step-1" as StepId, by: "operator" });
    await world.clock.advance(1_000);
    await coordinator.cancel({ coordinationId, stepId: "step-2" as StepId, by: "operator" });
    await world.clock.advance(1_000);
    expect(world.host.children.get(two.session)?.ending).toEqual({ outcome: "cancelled" });
    await coordinator.stop();
  });

  it("has a result checked at once, also while something is recorded again and again", async () => {
    const { verifier } = createScriptedVerifier(() => createRuling("pass"));
    const world = createWorld({}, createScriptedRunner(), { gates: createGatesWith(["lint"]), verifier });
    const coordinator = world.start();
    await coordinator.start();
    const child = await spawnChild(world, coordinator);
    await child.says("done");
    await child.ends();
    for (let turn = 0; turn < 20; turn += 1) {
      await spawnChild(world, coordinator, `task ${turn}`);
      await world.clock.advance(40);
    }
    expect(listEvents(world, "result.verified")).toHaveLength(1);
    await coordinator.stop();
  });
});

describe("a coordination that waits for a session to be told", () => {
  it("is not looked at again and again meanwhile", async () => {
    const { verifier } = createScriptedVerifier(() => createRuling("pass"));
    const runner = createScriptedRunner(() => "work");
    const world = createWorld({}, runner, { gates: createGatesWith(["lint"]), verifier });
    let wakes = 0;
    const clock: FakeClock = {
      ...world.clock,
      wakeAt: (...wake) => {
        wakes += 1;
        return world.clock.wakeAt(...wake);
      },
    };
    const coordinator = world.start((store) => store, { clock, runner: world.host });
    await coordinator.start();
    const child = await spawnChild(world, coordinator);
    await child.says("done");
    await child.ends();
    await world.clock.advance(5_000);
    expect(runner.orders).toHaveLength(1);
    wakes = 0;
    await world.clock.advance(10_000);
    // Whether the session's turn is over is asked once a second.
    expect(wakes).toBeLessThan(50);
    await coordinator.stop();
  });
});

describe("a question to the host", () => {
  it("is asked again only after a while, however often something is recorded", async () => {
    const world = createWorld({}, createScriptedRunner());
    const coordinator = world.start();
    await coordinator.start();
    world.host.says = () => Promise.resolve({ kind: "unknown" });
    await coordinator.admitSpawn(spawnOf({ task: "one" }));
    await world.clock.advance(SETTINGS.acknowledgeMs);
    expect(world.host.asked).toHaveLength(1);
    const [first] = world.host.asked;
    for (let turn = 0; turn < 20; turn += 1) {
      await spawnChild(world, coordinator, `task ${turn}`);
      await world.clock.advance(1_000);
    }
    const again = world.host.asked.filter(({ input }) => input.sha256 === first?.input.sha256);
    expect(again.length).toBeLessThan(3);
    await coordinator.stop();
  });
});

describe("questions that the host does not answer", () => {
  const LIMITS: LaneLimits = { control: 4, data: 8, escalation: 1, queueMax: 256, agingMs: 60_000 };

  async function askSilentHost(world: World, coordinator: Coordinator) {
    world.host.says = () => new Promise(() => undefined);
    for (let name = 0; name < 20; name += 1)
      await coordinator.admitSpawn(spawnOf({ task: `silent ${name}`, trace: `silent ${name}` }));
    await world.clock.advance(SETTINGS.acknowledgeMs);
    expect(world.host.asked).toHaveLength(8);
  }

  async function openWorld() {
    const world = createWorld({}, createScriptedRunner());
    const { clock, host: runner } = world;
    const lanes = createPQueueLanes(LIMITS, clock);
    const coordinator = world.start((store) => store, { clock, runner, lanes });
    await coordinator.start();
    return { world, coordinator };
  }

  it("do not delay the stop of a child of another coordination", async () => {
    const { world, coordinator } = await openWorld();
    const { session } = await spawnChild(world, coordinator);
    const [{ runId: coordinationId }] = listEvents(world, "coordination.created") as [RunEvent];
    await askSilentHost(world, coordinator);
    await coordinator.cancel({ coordinationId, stepId: "step-1" as StepId, by: "operator" });
    await world.clock.advance(1_000);
    expect(world.host.children.get(session)?.ending).toEqual({ outcome: "cancelled" });
    await coordinator.stop();
  });

  it("do not delay the end of another coordination", async () => {
    const { world, coordinator } = await openWorld();
    const child = await spawnChild(world, coordinator);
    const [{ runId }] = listEvents(world, "coordination.created") as [RunEvent];
    await askSilentHost(world, coordinator);
    await child.ends();
    await world.clock.advance(SETTINGS.settleMs + 1_000);
    expect(listEvents(world, "coordination.terminal").map((event) => event.runId)).toEqual([runId]);
    await coordinator.stop();
  });
});

describe("a spawn that the host answers with an error", () => {
  it("is no failure where the host was being asked already, and then tells of the child", async () => {
    const world = createWorld({}, createScriptedRunner());
    const coordinator = world.start();
    await coordinator.start();
    const spawn = spawnOf({ task: "t" });
    const admission = await coordinator.admitSpawn(spawn);
    if (admission.kind === "refused") throw new Error(admission.reason);
    const { childSessionKey, childRunId } = world.host.spawn(spawn);
    world.host.says = async () => {
      await waitForDuration(world.clock, 9_000);
      return { kind: "running", childSessionKey, childRunId };
    };
    await world.clock.advance(SETTINGS.acknowledgeMs);
    expect(world.host.asked).toHaveLength(1);
    const { coordinationId, stepId } = admission.envelope;
    const claim = { coordinationId, stepId, sourceSession: spawn.sourceSession, toolCallId: "t" };
    const failing = coordinator.failSpawn(claim, "the answer was lost");
    await world.clock.advance(15_000);
    await failing;
    const types = world.ledger.events().flatMap((events) => events.map(({ type }) => type));
    expect(types).not.toContain("step.failed");
    await coordinator.stop();
  });

  it("is no failure of a plan's agent when the host gets the child a second later: its step is bound to it", async () => {
    const world = createWorld({}, createScriptedRunner(scriptOf({ a: ["work"] })));
    const coordinator = world.start();
    await coordinator.start();
    await coordinator.submitPlan({ plan: plan([step("a")]), ownerAgent: AGENT });
    await world.clock.advance(1_000);
    const source = world.plans.orders.at(-1)!.childSessionKey;
    const spawn = spawnOf({ task: "t", source });
    const admission = await coordinator.admitSpawn(spawn);
    if (admission.kind === "refused") throw new Error(admission.reason);
    const { coordinationId, stepId } = admission.envelope;
    const claim = { coordinationId, stepId, sourceSession: source, toolCallId: "t" };
    const children: ReturnType<typeof world.host.spawn>[] = [];
    // As long as a real host takes to read its records.
    world.host.says = async () => {
      await waitForDuration(world.clock, 100);
      const [child] = children;
      return child
        ? { kind: "running", childSessionKey: child.childSessionKey, childRunId: child.childRunId }
        : { kind: "absent" };
    };
    const failing = coordinator.failSpawn(claim, "the answer was lost");
    await world.clock.advance(1_000);
    children.push(world.host.spawn(spawn));
    await world.clock.advance(2_000);
    await failing;
    const types = world.ledger.events().flatMap((events) => events.map(({ type }) => type));
    expect(types).not.toContain("step.failed");
    await coordinator.stop();
  });
});

describe("an effect that becomes due again with what it recorded", () => {
  it("is taken up as soon as its first time is over", async () => {
    const world = createWorld({}, createScriptedRunner(scriptOf({ a: ["work"] })));
    let loans = 0;
    const coordinator = world.start((store) => ({
      ...store,
      append: async (request) => {
        const isLoan = request.events.some(({ type }) => type === "budget.lent");
        if (isLoan) loans += 1;
        // The first one lends the budget, the second one gives back what is left of it.
        if (isLoan && loans === 2) await waitForDuration(world.clock, 5_000);
        return store.append(request);
      },
    }));
    await coordinator.start();
    await coordinator.submitPlan({ plan: plan([step("a")], { budget: { spawns: 5 } }), ownerAgent: AGENT });
    await world.clock.advance(1_000);
    const session = world.plans.orders.at(-1)!.childSessionKey;
    const nested = { ...plan([step("n")]), coordinationId: "plan-2", ownerSession: session };
    await coordinator.submitPlan({ plan: nested, submittedBy: session, ownerAgent: AGENT });
    await world.clock.advance(20_000);
    expect(loans).toBe(2);
    expect(listEvents(world, "coordination.terminal").map(({ runId }) => runId)).toEqual(["plan-2"]);
    await coordinator.stop();
  });
});
