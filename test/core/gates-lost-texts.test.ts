import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import { settled } from "../support/fake-clock.ts";
import { world, type World } from "../support/fake-clock-host.ts";
import type { GivenGates } from "../support/gate-parts.ts";
import type { MemoryStore } from "../support/memory-store.ts";
import { scriptedRunner } from "../support/scripted-runner.ts";
import {
  escalationsWith,
  eventsIn,
  gatesWith,
  quiet,
  ruling,
  scriptedChannel,
  scriptedVerifier,
  spawnChild,
} from "./gates-world.ts";
import { answer, ask, running } from "./gates-scene.ts";
import { sessionOfAttempt } from "./planned-scene.ts";
import { plan, scriptOf, step, submitTo } from "./planned-world.ts";

const UNSURE = 'The code is 4711.\n{"confidence": 0.1}';
const passing = (checks: readonly string[]) => {
  const { verifier, asked } = scriptedVerifier(() => ruling("pass"));
  return { asked, given: { gates: gatesWith(checks), verifier } satisfies GivenGates };
};

/** A store that takes no words of children while `isFull`. */
function fullDisk() {
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

const codesOf = (it: World): (string | undefined)[] =>
  eventsIn(it, "step.failed").map(({ payload }) => payload.error.code);

describe("words that were kept back and could not be kept", () => {
  it.each([[[]], [["lint"]]])("are lost with the step, whose gate has the checks %j", async (checks) => {
    const { asked, given } = passing(checks);
    const it = world({}, scriptedRunner(), given);
    const coordinator = it.start(fullDisk().wrap);
    await coordinator.start();
    const child = await spawnChild(it, coordinator);
    expect(await child.says(UNSURE)).not.toContain("4711");
    await child.ends();
    await quiet(it);
    await it.clock.advance(5_000);
    expect(codesOf(it)).toEqual(["result_lost"]);
    expect(eventsIn(it, "step.completed")).toEqual([]);
    expect(asked).toEqual([]);
    // Its parent has only what stands in their place, which says that it will be told.
    expect(eventsIn(it, "session.told")).toHaveLength(1);
    await coordinator.stop();
  });

  it("are lost where they are more than one attempt may say: no older ones are ruled on in their place", async () => {
    const { asked, given } = passing(["lint"]);
    const it = world({}, scriptedRunner(), given);
    const coordinator = it.start();
    await coordinator.start();
    const child = await spawnChild(it, coordinator);
    for (let number = 0; number <= BOUNDS.withheldTextsMax; number += 1) await child.says(`answer ${number}`);
    await child.ends();
    await quiet(it);
    expect(codesOf(it)).toEqual(["result_lost"]);
    expect(asked).toEqual([]);
    await coordinator.stop();
  });

  it("are lost, too, where the work on them ended without a word", async () => {
    const it = world({}, scriptedRunner(), { gates: gatesWith([]) });
    const coordinator = it.start();
    await coordinator.start();
    const child = await spawnChild(it, coordinator);
    it.texts.keeping(child.session, Promise.resolve(undefined));
    await child.ends();
    expect(codesOf(it)).toEqual(["result_lost"]);
    await coordinator.stop();
  });

  it("are not missed once newer ones were kept", async () => {
    const { disk, wrap } = fullDisk();
    const it = world({}, scriptedRunner(), { gates: gatesWith([]) });
    const coordinator = it.start(wrap);
    await coordinator.start();
    const child = await spawnChild(it, coordinator);
    await child.says(UNSURE);
    disk.isFull = false;
    await child.says(UNSURE);
    await child.ends();
    expect(codesOf(it)).toEqual([]);
    expect(eventsIn(it, "result.held")).toHaveLength(1);
    await coordinator.stop();
  });

  it("do not change how a child failed, and say nothing of another child", async () => {
    const it = world({}, scriptedRunner(), { gates: gatesWith([]) });
    const coordinator = it.start(fullDisk().wrap);
    await coordinator.start();
    const child = await spawnChild(it, coordinator);
    const other = await spawnChild(it, coordinator, "u");
    await child.says(UNSURE);
    const ending = { outcome: "failed", message: "it broke" } as const;
    it.host.end(child.session, ending);
    await coordinator.endChild(child.session, ending);
    await other.ends();
    expect(codesOf(it)).toEqual(["child_failed"]);
    expect(eventsIn(it, "step.completed")).toHaveLength(1);
    await coordinator.stop();
  });
});

describe("a spawn of which nothing is known", () => {
  it("is not checked on the empty text: people rule", async () => {
    const { asked, given } = passing(["lint"]);
    const it = world({}, scriptedRunner(), given);
    const coordinator = it.start();
    await coordinator.start();
    const child = await spawnChild(it, coordinator);
    await child.ends();
    await quiet(it);
    expect(asked).toEqual([]);
    expect(eventsIn(it, "step.completed")).toEqual([]);
    expect(eventsIn(it, "coordination.escalated")).toHaveLength(1);
    await coordinator.stop();
  });

  it("because its process was killed first is not checked either", async () => {
    const { asked, given } = passing(["lint"]);
    const it = world({}, scriptedRunner(), given);
    const first = it.start(fullDisk().wrap);
    await first.start();
    const child = await spawnChild(it, first);
    await child.says(UNSURE);
    it.host.end(child.session, { outcome: "completed" });
    await first.stop();
    const second = it.start();
    await second.start();
    await quiet(it);
    await it.clock.advance(60_000);
    expect(asked).toEqual([]);
    expect(eventsIn(it, "step.completed")).toEqual([]);
    await second.stop();
  });

  it("but what it reported is checked on that", async () => {
    const { asked, given } = passing(["lint"]);
    const it = world({}, scriptedRunner(), given);
    const coordinator = it.start();
    await coordinator.start();
    const child = await spawnChild(it, coordinator);
    await coordinator.report(child.session, { outcome: "completed", outputs: { found: 7 } });
    await child.ends();
    await quiet(it);
    expect(asked.map(({ result }) => result.outputs)).toEqual([{ found: 7 }]);
    await coordinator.stop();
  });
});

describe("what is due on one channel", () => {
  it("goes out one after another without waiting for the next look", async () => {
    const { channel, notices } = scriptedChannel();
    const soon = { channel: "chat", afterMs: 0 };
    const it = world({}, scriptedRunner(scriptOf({})), {
      gates: gatesWith([]),
      escalations: escalationsWith({ notify: [soon, soon, soon] }),
      channelOf: () => channel,
    });
    const run = await submitTo(it, plan([step("a", { confidence: 0.2 })]));
    for (let turn = 0; turn < 10; turn += 1) await settled();
    expect(notices.map(({ notice }) => notice)).toEqual([0, 1, 2]);
    await run.close();
  });
});

describe("an agent of a plan that asked", () => {
  it("is told in the middle of its work, because its run is followed by its key", () => {
    const scene = running({ threshold: 0 }).then(
      ask({ askedBy: sessionOfAttempt("a"), stepId: "a" as never }),
      answer("deny"),
    );
    expect(scene.effects().filter(({ kind }) => kind === "tellSession")).toHaveLength(1);
  });
});
