import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld, type World } from "../support/fake-clock-host.ts";
import type { GivenGates } from "../support/gate-dependencies.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import {
  createEscalationsWith,
  listEvents,
  createGatesWith,
  waitUntilQuiet,
  createRuling,
  createScriptedChannel,
  createScriptedVerifier,
  spawnChild,
} from "./gates-world.ts";
import { answer, ask, createRunningScene } from "./gates-scene.ts";
import { nameSessionOfAttempt } from "./planned-scene.ts";
import { plan, scriptOf, step, submitTo } from "./planned-world.ts";

const UNSURE = 'The code is 4711.\n{"confidence": 0.1}';
const createPassingGates = (checks: readonly string[]) => {
  const { verifier, checkRequests } = createScriptedVerifier(() => createRuling("pass"));
  return {
    checkRequests: checkRequests,
    gateSettings: { gates: createGatesWith(checks), verifier } satisfies GivenGates,
  };
};

/** A store that takes no words of children while `isFull`. */
function createFullDisk() {
  const disk = { isFull: true };
  const wrap = (store: MemoryStore): MemoryStore => ({
    ...store,
    append: (request) =>
      disk.isFull && request.events.some(({ type }) => type === "result.withheld")
        ? Promise.reject(new Error("the disk is full"))
        : store.append(request),
  });
  return { disk, wrap };
}

/** A ledger that takes nothing while `isAway`. */
function createAwayLedger() {
  const ledger = { isAway: false };
  const wrap = (store: MemoryStore): MemoryStore => ({
    ...store,
    append: (request) =>
      ledger.isAway ? Promise.reject(new Error("the ledger is away")) : store.append(request),
  });
  return { ledger, wrap };
}

/** A child of a gate without checks: only what it says of its confidence counts. */
async function openUncheckedSpawn(wrap?: (store: MemoryStore) => MemoryStore) {
  const world = createWorld({}, createScriptedRunner(), { gates: createGatesWith([]) });
  const coordinator = world.start(wrap);
  await coordinator.start();
  return { world, coordinator, child: await spawnChild(world, coordinator) };
}

const codesOf = (world: World): (string | undefined)[] =>
  listEvents(world, "step.failed").map(({ payload }) => payload.error.code);

describe("words that were kept back and could not be kept", () => {
  it.each([[[]], [["lint"]]])("are lost with the step, whose gate has the checks %j", async (checks) => {
    const { checkRequests, gateSettings } = createPassingGates(checks);
    const world = createWorld({}, createScriptedRunner(), gateSettings);
    const coordinator = world.start(createFullDisk().wrap);
    await coordinator.start();
    const child = await spawnChild(world, coordinator);
    expect(await child.says(UNSURE)).not.toContain("4711");
    await child.ends();
    await waitUntilQuiet(world);
    await world.clock.advance(5_000);
    expect(codesOf(world)).toEqual(["result_lost"]);
    expect(listEvents(world, "step.completed")).toEqual([]);
    expect(checkRequests).toEqual([]);
    // Its parent has only what stands in their place, which says that it will be told.
    expect(listEvents(world, "session.told")).toHaveLength(1);
    await coordinator.stop();
  });

  it("are lost where they are more than one attempt may say: no older ones are ruled on in their place", async () => {
    const { checkRequests, gateSettings } = createPassingGates(["lint"]);
    const world = createWorld({}, createScriptedRunner(), gateSettings);
    const coordinator = world.start();
    await coordinator.start();
    const child = await spawnChild(world, coordinator);
    for (let number = 0; number <= BOUNDS.withheldTextsMax; number += 1) await child.says(`answer ${number}`);
    await child.ends();
    await waitUntilQuiet(world);
    expect(codesOf(world)).toEqual(["result_lost"]);
    expect(checkRequests).toEqual([]);
    await coordinator.stop();
  });

  it("are lost, too, where the work on them ended without a word", async () => {
    const { world, coordinator, child } = await openUncheckedSpawn();
    world.texts.keeping(child.session, "words", () => Promise.resolve(undefined));
    await child.ends();
    expect(codesOf(world)).toEqual(["result_lost"]);
    await coordinator.stop();
  });

  it("are not missed once newer ones were kept", async () => {
    const { disk, wrap } = createFullDisk();
    const { world, coordinator, child } = await openUncheckedSpawn(wrap);
    await child.says(UNSURE);
    disk.isFull = false;
    await child.says(UNSURE);
    await child.ends();
    expect(codesOf(world)).toEqual([]);
    expect(listEvents(world, "result.held")).toHaveLength(1);
    await coordinator.stop();
  });

  it("are lost, too, where something else about the child came to the disk after them", async () => {
    const { world, coordinator, child } = await openUncheckedSpawn(createFullDisk().wrap);
    await child.says(UNSURE);
    world.texts.keeping(child.session, "model", () => Promise.resolve(true));
    await child.ends();
    expect(codesOf(world)).toEqual(["result_lost"]);
    await coordinator.stop();
  });

  it("are kept when the child ends, where they could not be kept when they were said", async () => {
    const { disk, wrap } = createFullDisk();
    const { world, coordinator, child } = await openUncheckedSpawn(wrap);
    await child.says(UNSURE);
    expect(listEvents(world, "result.withheld")).toEqual([]);
    disk.isFull = false;
    await child.ends();
    expect(codesOf(world)).toEqual([]);
    expect(listEvents(world, "result.withheld")).toHaveLength(1);
    expect(listEvents(world, "result.held")).toHaveLength(1);
    await coordinator.stop();
  });

  it("do not change how a child failed, and say nothing of another child", async () => {
    const { world, coordinator, child } = await openUncheckedSpawn(createFullDisk().wrap);
    const other = await spawnChild(world, coordinator, "u");
    await child.says(UNSURE);
    const ending = { outcome: "failed", message: "it broke" } as const;
    world.host.end(child.session, ending);
    await coordinator.endChild(child.session, ending);
    await other.ends();
    expect(codesOf(world)).toEqual(["child_failed"]);
    expect(listEvents(world, "step.completed")).toHaveLength(1);
    await coordinator.stop();
  });
});

describe("the words of a child whose end could not be recorded", () => {
  it("are kept when the sweep finds the end, once the ledger is back", async () => {
    const { ledger, wrap } = createAwayLedger();
    const { world, coordinator, child } = await openUncheckedSpawn(wrap);
    ledger.isAway = true;
    expect(await child.says(UNSURE)).not.toContain("4711");
    await expect(child.ends()).rejects.toThrow("the ledger is away");
    ledger.isAway = false;
    await world.clock.advance(world.settings.sweepMs);
    await waitUntilQuiet(world);
    expect(listEvents(world, "step.completed")).toEqual([]);
    expect(listEvents(world, "result.withheld")).toHaveLength(1);
    expect(listEvents(world, "result.held")).toHaveLength(1);
    await coordinator.stop();
  });

  it("are lost with the step where only its end can be recorded", async () => {
    const { ledger, wrap } = createAwayLedger();
    const { world, coordinator, child } = await openUncheckedSpawn((store) =>
      wrap(createFullDisk().wrap(store)),
    );
    ledger.isAway = true;
    await child.says(UNSURE);
    await expect(child.ends()).rejects.toThrow("the ledger is away");
    ledger.isAway = false;
    await world.clock.advance(world.settings.sweepMs);
    await waitUntilQuiet(world);
    expect(listEvents(world, "step.completed")).toEqual([]);
    expect(codesOf(world)).toEqual(["result_lost"]);
    await coordinator.stop();
  });
});

describe("a spawn of which nothing is known", () => {
  it("is not checked on the empty text: people rule", async () => {
    const { checkRequests, gateSettings } = createPassingGates(["lint"]);
    const world = createWorld({}, createScriptedRunner(), gateSettings);
    const coordinator = world.start();
    await coordinator.start();
    const child = await spawnChild(world, coordinator);
    await child.ends();
    await waitUntilQuiet(world);
    expect(checkRequests).toEqual([]);
    expect(listEvents(world, "step.completed")).toEqual([]);
    expect(listEvents(world, "coordination.escalated")).toHaveLength(1);
    await coordinator.stop();
  });

  it("because its process was killed first is not checked either", async () => {
    const { checkRequests, gateSettings } = createPassingGates(["lint"]);
    const world = createWorld({}, createScriptedRunner(), gateSettings);
    const first = world.start(createFullDisk().wrap);
    await first.start();
    const child = await spawnChild(world, first);
    await child.says(UNSURE);
    world.host.end(child.session, { outcome: "completed" });
    await first.stop();
    const second = world.start();
    await second.start();
    await waitUntilQuiet(world);
    await world.clock.advance(60_000);
    expect(checkRequests).toEqual([]);
    expect(listEvents(world, "step.completed")).toEqual([]);
    await second.stop();
  });

  it("but what it reported is checked on that", async () => {
    const { checkRequests, gateSettings } = createPassingGates(["lint"]);
    const world = createWorld({}, createScriptedRunner(), gateSettings);
    const coordinator = world.start();
    await coordinator.start();
    const child = await spawnChild(world, coordinator);
    await coordinator.report(child.session, { outcome: "completed", outputs: { found: 7 } });
    await child.ends();
    await waitUntilQuiet(world);
    expect(checkRequests.map(({ result }) => result.outputs)).toEqual([{ found: 7 }]);
    await coordinator.stop();
  });
});

describe("what is due on one channel", () => {
  it("goes out one after another without waiting for the next look", async () => {
    const { channel, notices } = createScriptedChannel();
    const soon = { channel: "chat", afterMs: 0 };
    const world = createWorld({}, createScriptedRunner(scriptOf({})), {
      gates: createGatesWith([]),
      escalations: createEscalationsWith({ notify: [soon, soon, soon] }),
      channelOf: () => channel,
    });
    const run = await submitTo(world, plan([step("a", { confidence: 0.2 })]));
    for (let turn = 0; turn < 10; turn += 1) await waitUntilSettled();
    expect(notices.map(({ notice }) => notice)).toEqual([0, 1, 2]);
    await run.close();
  });
});

describe("an agent of a plan that asked", () => {
  it("is told in the middle of its work, because its run is followed by its key", () => {
    const scene = createRunningScene({ threshold: 0 }).then(
      ask({ askedBy: nameSessionOfAttempt("a"), stepId: "a" as never }),
      answer("deny"),
    );
    expect(scene.effects().filter(({ kind }) => kind === "tellSession")).toHaveLength(1);
  });
});
