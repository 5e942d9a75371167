import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { foldWorkflow } from "../../src/agents/coordination/workflow/state/evolve-workflow.ts";
import { createMemoryWorkflowLedger, type MemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { supervisedWorkflows, createWorkflows } from "../support/workflow-arbitraries.ts";
import { createWorker } from "../support/workflow-definitions.ts";
import { checkLog, finish, hasEnded, PLAYS, storyOf } from "../support/workflow-plays.ts";
import {
  SAID,
  ALICE,
  listEvents,
  createWorkflowScene,
  type AppendFaults,
  type WorkflowScene,
} from "../support/workflow-scene.ts";
import { createFakeClock, type FakeClock } from "../support/fake-clock.ts";

interface World {
  readonly ledger: MemoryWorkflowLedger;
  readonly clock: FakeClock;
  /** The processes that are there, as the host believes. */
  readonly alive?: ReadonlySet<number>;
}

function startHost(
  play: string | readonly WorkflowDefinition[],
  world: World,
  pid: number,
  faults?: AppendFaults,
): WorkflowScene {
  const definitions = typeof play === "string" ? (PLAYS[play] ?? []) : play;
  return createWorkflowScene({
    ...world,
    definitions,
    pid,
    ...(faults && { faults }),
    chat: {
      complete: () => Promise.resolve(SAID),
    },
    tools: { callMcp: () => Promise.resolve({ kind: "answered", ok: true, content: [], text: "echo" }) },
  });
}

function createWorld(): World {
  return { ledger: createMemoryWorkflowLedger(), clock: createFakeClock() };
}

async function begin(scene: WorkflowScene, play: string): Promise<boolean> {
  const created = await scene.host
    .create(ALICE, { workflowId: play, inputs: {}, transport: "rest", scopeId: "scope" })
    .catch(() => undefined);
  await scene.settle();
  return created?.kind === "done";
}

/** Fails at the k-th append, once. */
function createFaultAt(
  k: number,
  when: "before" | "after",
  fail: () => void,
): AppendFaults & { readonly count: number } {
  const faults = {
    count: 0,
    before: () => {
      faults.count += 1;
      if (when === "before" && faults.count === k) fail();
    },
    after: () => {
      if (when === "after" && faults.count === k) fail();
    },
  };
  return faults;
}

async function runUndisturbed(play: string): Promise<{ readonly story: string[]; readonly appends: number }> {
  const world = createWorld();
  const faults = createFaultAt(0, "before", () => undefined);
  const scene = startHost(play, world, 1, faults);
  await scene.host.start();
  await begin(scene, play);
  await finish(scene);
  return { story: storyOf(world.ledger), appends: faults.count };
}

function check({ ledger }: World, story: readonly string[]): void {
  for (const runId of ledger.runs.keys()) {
    checkLog(listEvents(ledger, runId));
    expect(hasEnded(ledger, runId), `${runId} reached its end`).toBe(true);
  }
  expect(storyOf(ledger)).toEqual(story);
}

/** True where a run had a second owner: each one that takes a run counts its token up. */
function isTakenOver({ ledger }: World): boolean {
  return [...ledger.runs.values()].some(({ owner }) => owner.owner_token > 1);
}

describe.each(Object.keys(PLAYS))("a run of %s", (play) => {
  test("whose process dies around any append goes on with the next process, as if nothing had been", async () => {
    const { story, appends } = await runUndisturbed(play);
    for (let k = 1; k <= appends; k += 1)
      for (const when of ["before", "after"] as const) {
        const world = createWorld();
        const first: WorkflowScene = startHost(
          play,
          world,
          1,
          createFaultAt(k, when, () => first.die()),
        );
        await first.host.start();
        const isAccepted = await begin(first, play);
        await finish(first);
        expect(first.ledger.runs.size > 0 || !isAccepted, "an accepted run is in the ledger").toBe(true);
        const second = startHost(play, world, 2);
        await second.host.start();
        await finish(second);
        if (world.ledger.runs.size > 0) check(world, story);
      }
  });

  test("whose ledger fails once around any append goes on in the same process, as if nothing had been", async () => {
    const { story, appends } = await runUndisturbed(play);
    const throwBusy = (): never => {
      throw new CoordinationError("LEDGER_BUSY", "as the test wants it");
    };
    for (let k = 1; k <= appends; k += 1)
      for (const when of ["before", "after"] as const) {
        const world = createWorld();
        const scene = startHost(play, world, 1, createFaultAt(k, when, throwBusy));
        await scene.host.start();
        await begin(scene, play);
        await finish(scene);
        if (world.ledger.runs.size > 0) check(world, story);
        expect(scene.said.length, "nothing is tried over and over").toBeLessThan(5);
      }
  });

  test("that two processes drive and answer at once has one outcome", async () => {
    const { story, appends } = await runUndisturbed(play);
    let takenOver = 0;
    for (let k = 1; k <= appends; k += 1) {
      const world = createWorld();
      const other = startHost(play, world, 2);
      let takesOver: Promise<void> | undefined;
      // The other process believes that this one is gone, and it is not.
      const one = startHost(
        play,
        { ...world, alive: new Set([1, 2]) },
        1,
        createFaultAt(k, "after", () => void (takesOver = other.host.start())),
      );
      await one.host.start();
      await begin(one, play);
      for (let turn = 0; turn < 3; turn += 1) await Promise.all([finish(one), finish(other)]);
      await takesOver;
      await finish(one);
      check(world, story);
      if (isTakenOver(world)) takenOver += 1;
    }
    // A run of a single append has ended before the other process could take it.
    expect(takenOver > 0, "the other process took a run").toBe(appends > 1);
  });
});

test("any workflow whose process dies around any append reaches its end, every log whole and no child twice", async () => {
  const any = fc.oneof(
    createWorkflows({ loops: false }),
    createWorkflows({ loops: true }),
    supervisedWorkflows,
  );
  const when = fc.constantFrom("before" as const, "after" as const);
  await fc.assert(
    fc.asyncProperty(any, fc.integer({ min: 2, max: 9 }), when, async (definition, k, place) => {
      const definitions = [definition, createWorker("child"), createWorker("a"), createWorker("b")];
      const world = createWorld();
      const first: WorkflowScene = startHost(
        definitions,
        world,
        1,
        createFaultAt(k, place, () => first.die()),
      );
      await begin(first, "made-up");
      await finish(first);
      const second = startHost(definitions, world, 2);
      await second.host.start();
      await finish(second);
      await second.host.stop();
      for (const runId of world.ledger.runs.keys()) {
        const events = listEvents(world.ledger, runId);
        checkLog(events);
        expect(hasEnded(world.ledger, runId)).toBe(true);
        const messages = events.flatMap((event) =>
          event.type === "node.dispatched" ? [event.payload.childRunId] : [],
        );
        expect(new Set(messages).size).toBe(messages.length);
      }
      const dispatched = [...world.ledger.runs.keys()].flatMap((runId) =>
        listEvents(world.ledger, runId).filter(({ type }) => type === "node.dispatched"),
      );
      expect(world.ledger.runs.size - 1).toBeLessThanOrEqual(dispatched.length + 1);
    }),
    { numRuns: 80 },
  );
});

test("what a process dies with is what the log tells: the state folded anew is the state that was driven", async () => {
  const world = createWorld();
  const scene = startHost("loop", world, 1);
  await begin(scene, "loop");
  await finish(scene);
  for (const runId of world.ledger.runs.keys()) {
    const folded = foldWorkflow(listEvents(world.ledger, runId));
    const seen = await scene.snapshot(runId);
    expect(folded?.phase.kind).toBe(seen.status);
    expect(seen["variables"]).toMatchObject(Object.fromEntries(folded?.variables ?? []));
  }
});
