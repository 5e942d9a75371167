/** One process drives a run at a time; requests reach any process. */
import { describe, expect, test } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type { OwnedRun, RunOwners } from "../../src/agents/coordination/ports/run-owners.ts";
import { verifyWorkflowRuns } from "../../src/agents/coordination/runtime/workflow-host/verify-workflow-runs.ts";
import { createFakeClock, type FakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger, type MemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { checkLog } from "../support/workflow-plays.ts";
import {
  SAID,
  ALICE,
  codeOf,
  createWorkflowScene,
  valueOf,
  type AppendFaults,
  type SceneOptions,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const slow = createWorkflow("slow", { nodes: [createNode("wait", "core.delay", { delayMs: 30_000 })] });

const gated = createWorkflow("gated", {
  nodes: [createNode("gate", "core.approvalGate"), createNode("after")],
  edges: [createEdge("gate>after")],
});

const asking = createWorkflow("asking", {
  nodes: [createNode("model", "core.ai.callPrompt", { prompt: "?" }), createNode("after")],
  edges: [createEdge("model>after")],
});

const gatedAsking = createWorkflow("gated-asking", {
  nodes: [
    createNode("gate", "core.approvalGate"),
    createNode("model", "core.ai.callPrompt", { prompt: "?" }),
  ],
  edges: [createEdge("gate>model")],
});

const DEFINITIONS = [slow, gated, asking, gatedAsking];
const LEASE_MS = 10_000;

interface Fleet {
  readonly ledger: MemoryWorkflowLedger;
  readonly clock: FakeClock;
  readonly owners: RunOwners;
  add(pid: number, options?: SceneOptions): WorkflowScene;
}

/** Processes on machines of their own: none can know that another one has ended. */
function createFleet(): Fleet {
  const ledger = createMemoryWorkflowLedger();
  const clock = createFakeClock();
  return {
    ledger,
    clock,
    owners: ledger.open().owners,
    add: (pid, options = {}) =>
      createWorkflowScene({
        ledger,
        clock,
        pid,
        alive: new Set([1, 2, 3]),
        definitions: DEFINITIONS,
        ...options,
      }),
  };
}

/** A model that answers when the test lets it. */
function createWaitingModel() {
  const calls: { readonly signal: AbortSignal; readonly say: () => void }[] = [];
  const chat: NonNullable<SceneOptions["chat"]> = {
    complete: ({ signal }) =>
      new Promise((resolve) => {
        calls.push({
          signal,
          say: () => {
            resolve(SAID);
          },
        });
      }),
  };
  return { calls, chat };
}

async function ownerOf({ owners }: Fleet, runId: string): Promise<string> {
  const owner = (await owners.ownersOf([runId as CoordinationId])).get(runId as CoordinationId);
  return owner ? `${owner.id} ${owner.token}` : "nobody";
}

/** As another process does that believes all others to be gone. */
async function takeEverything({ owners }: Fleet, owner: string): Promise<readonly OwnedRun[]> {
  const from = (await owners.beats()).map(({ id }) => id);
  await owners.beat({ id: owner });
  return owners.take({ owner, from, limit: 100 });
}

describe("a request that reaches another process", () => {
  test("is recorded there with nothing that follows, which the owner plans when it looks", async () => {
    const fleet = createFleet();
    const [one, other] = [fleet.add(1), fleet.add(2)];
    await one.host.start();
    const runId = await one.run("gated");
    const owner = await ownerOf(fleet, runId);
    const before = one.types(runId);
    expect(codeOf(await other.answer(runId, "gate", { action: "accept" }))).toBe("done");
    const recorded = one.types(runId).slice(before.length);
    expect(recorded).toContain("interrupt.resolved");
    expect(recorded).not.toContain("node.completed");
    await fleet.clock.advance(250);
    expect(await one.status(runId)).toBe("completed");
    expect(await ownerOf(fleet, runId)).toBe(owner);
    checkLog(one.events(runId));
    await one.host.stop();
  });

  test("ends what the owner was doing for a run that it cancels", async () => {
    const fleet = createFleet();
    const { calls, chat } = createWaitingModel();
    const [one, other] = [fleet.add(1, { chat }), fleet.add(2)];
    await one.host.start();
    const runId = await one.run("asking");
    expect(calls).toHaveLength(1);
    await other.host.cancel(ALICE, runId, {});
    expect(calls[0]?.signal.aborted).toBe(false);
    await fleet.clock.advance(250);
    expect(calls[0]?.signal.aborted).toBe(true);
    calls[0]?.say();
    await fleet.clock.advance(1_000);
    expect(one.types(runId).at(-1)).toBe("run.cancelled");
    await one.host.stop();
  });

  test("pauses and resumes what the owner drives", async () => {
    const fleet = createFleet();
    const { calls, chat } = createWaitingModel();
    const [one, other] = [fleet.add(1, { chat }), fleet.add(2, { chat })];
    await one.host.start();
    const runId = await one.run("asking");
    valueOf(await other.host.pause(ALICE, runId, {}));
    await fleet.clock.advance(250);
    calls[0]?.say();
    await fleet.clock.advance(250);
    expect(await other.status(runId)).toBe("paused");
    valueOf(await other.host.resume(ALICE, runId));
    await fleet.clock.advance(250);
    expect(await other.status(runId)).toBe("completed");
    expect(calls).toHaveLength(1);
    checkLog(one.events(runId));
    await one.host.stop();
  });

  test("is heard also while the owner's first append of a fork is not yet answered", async () => {
    const fleet = createFleet();
    const answer = Promise.withResolvers<undefined>();
    const hold: AppendFaults["hold"] = ({ origin }, place) =>
      origin && place === "answer" ? answer.promise : undefined;
    const one = fleet.add(1, { faults: { hold } });
    const other = fleet.add(2);
    await one.host.start();
    const sourceRunId = await one.run("gated");
    const forking = one.host.fork(ALICE, { sourceRunId, mode: "replay", runId: "fork" as CoordinationId });
    await one.settle();
    expect(codeOf(await other.answer("fork", "gate", { action: "accept" }))).toBe("done");
    await fleet.clock.advance(1_000);
    answer.resolve(undefined);
    valueOf(await forking);
    await fleet.clock.advance(1_000);
    expect(await one.status("fork")).toBe("completed");
    await one.host.stop();
  });

  test("is heard beside a second request to create the run, which changes nothing of it", async () => {
    const fleet = createFleet();
    const secondAppend = Promise.withResolvers<undefined>();
    let created = 0;
    const hold: AppendFaults["hold"] = ({ events: [first] }, place) => {
      if (first?.sequence === 0 && place === "append") created += 1;
      return created === 2 && place === "append" ? secondAppend.promise : undefined;
    };
    const [one, other] = [fleet.add(1, { faults: { hold } }), fleet.add(2)];
    await one.host.start();
    await one.run("gated", { runId: "asked" as CoordinationId });
    await fleet.clock.advance(1_000);
    const again = one.run("gated", { runId: "asked" as CoordinationId });
    await one.settle();
    expect(codeOf(await other.answer("asked", "gate", { action: "accept" }))).toBe("done");
    await fleet.clock.advance(1_000);
    secondAppend.resolve(undefined);
    expect(await again).toBe("asked");
    await fleet.clock.advance(1_000);
    expect(await one.status("asked")).toBe("completed");
    expect((await verifyWorkflowRuns(fleet.ledger.open())).problems).toEqual([]);
    await one.host.stop();
  });

  test("that no owner is there for is gone on with by whoever takes the run over", async () => {
    const fleet = createFleet();
    const [one, other] = [fleet.add(1), fleet.add(2)];
    await one.host.start();
    const runId = await one.run("gated");
    one.die();
    await other.host.start();
    await other.answer(runId, "gate", { action: "accept" });
    expect(await other.status(runId)).toBe("running");
    await fleet.clock.advance(LEASE_MS * 1.5);
    expect(await other.status(runId)).toBe("completed");
    checkLog(other.events(runId));
    await other.host.stop();
  });
});

describe("a process whose run was taken over", () => {
  test("writes nothing more and begins nothing more", async () => {
    const fleet = createFleet();
    const mine = createWaitingModel();
    const theirs = createWaitingModel();
    const [one, other] = [fleet.add(1, mine), fleet.add(2, { ...theirs, alive: new Set([2]) })];
    await one.host.start();
    const runId = await one.run("asking");
    await other.host.start();
    expect(await ownerOf(fleet, runId)).toMatch(/ 2$/u);
    const { length } = one.events(runId);
    mine.calls[0]?.say();
    await fleet.clock.advance(0);
    expect(one.events(runId)).toHaveLength(length);
    expect(one.said.join()).toContain("another process drives the run now");
    theirs.calls[0]?.say();
    await fleet.clock.advance(1_000);
    expect(await one.status(runId)).toBe("completed");
    checkLog(one.events(runId));
    expect(mine.calls).toHaveLength(1);
    await one.host.stop();
    await other.host.stop();
  });

  test("loses a turn that it was planning, with the effects of that turn", async () => {
    const fleet = createFleet();
    const { calls, chat } = createWaitingModel();
    const one = fleet.add(1, {
      chat,
      faults: {
        before: ({ events }) => {
          const [first] = events;
          if (first?.type === "approval.received") giveAway(fleet, first.runId, "thief");
        },
      },
    });
    await one.host.start();
    const runId = await one.run("gated-asking");
    const { length } = one.events(runId);
    await one.host.resolve(ALICE, runId, { nodeId: "gate" }, { action: "accept" });
    await one.settle();
    // The answer was recorded nevertheless, as a request to the new owner.
    expect(one.types(runId).slice(length)).toEqual(["approval.received", "interrupt.resolved"]);
    expect(calls).toHaveLength(0);
    expect(await fleet.owners.collectArrivals("thief", 9)).toMatchObject([{ runId }]);
    await one.host.stop();
  });

  test("is told by the ledger what it lost, after a pause that was longer than its lease", async () => {
    const fleet = createFleet();
    let pausedMs = 0;
    const { calls, chat } = createWaitingModel();
    const one = fleet.add(1, {
      chat,
      steady: { elapsedMs: () => fleet.clock.steady.elapsedMs() + pausedMs },
    });
    await one.host.start();
    const lostRunId = await one.run("asking");
    await takeEverything(fleet, "thief");
    const keptRunId = await one.run("asking");
    expect(calls).toHaveLength(2);
    const { length } = one.events(lostRunId);
    pausedMs = 2 * LEASE_MS;
    for (const { say } of calls) say();
    await fleet.clock.advance(1_000);
    expect(one.events(lostRunId)).toHaveLength(length);
    expect(await one.status(keptRunId)).toBe("completed");
    expect(calls[0]?.signal.aborted).toBe(true);
    await one.host.stop();
  });
});

describe("an owner that is there", () => {
  test("keeps its runs beside processes whose clocks are an hour off", async () => {
    const HOUR_MS = 3_600_000;
    const fleet = createFleet();
    const one = fleet.add(1);
    await one.host.start();
    const runId = await one.run("gated");
    const owner = await ownerOf(fleet, runId);
    for (const [pid, offMs] of [
      [2, HOUR_MS],
      [3, -HOUR_MS],
    ] as const)
      await fleet.add(pid, { clock: shiftClock(fleet.clock, offMs) }).host.start();
    await fleet.clock.advance(60_000);
    expect(await ownerOf(fleet, runId)).toBe(owner);
    one.die();
    await fleet.clock.advance(LEASE_MS * 1.3);
    expect(await ownerOf(fleet, runId)).not.toBe(owner);
  });

  test("keeps its runs when the one that looks was paused itself, or could not read the ledger", async () => {
    const fleet = createFleet();
    let pausedMs = 0;
    const [one, other] = [
      fleet.add(1),
      fleet.add(2, { steady: { elapsedMs: () => fleet.clock.steady.elapsedMs() + pausedMs } }),
    ];
    await one.host.start();
    await other.host.start();
    const runId = await one.run("slow");
    const owner = await ownerOf(fleet, runId);
    for (let round = 0; round < 5; round += 1) {
      pausedMs += 2 * LEASE_MS;
      await fleet.clock.advance(3_000);
      expect(await ownerOf(fleet, runId)).toBe(owner);
    }
    await one.host.stop();
    await fleet.clock.advance(1_000);
    expect(await ownerOf(fleet, runId)).toMatch(/ 2$/u);
    await other.host.stop();
  });

  test("gives its runs to the others at once when it stops", async () => {
    const fleet = createFleet();
    const [one, other] = [fleet.add(1), fleet.add(2)];
    await one.host.start();
    await other.host.start();
    const runId = await one.run("slow");
    await one.host.stop();
    await fleet.clock.advance(LEASE_MS / 10);
    expect(await ownerOf(fleet, runId)).toMatch(/ 2$/u);
    await fleet.clock.advance(30_000);
    expect(await other.status(runId)).toBe("completed");
    await other.host.stop();
  });
});

describe("a child whose parent ended elsewhere", () => {
  test("is ended by its owner when the process is gone that should have told it", async () => {
    const fleet = createFleet();
    const definitions = [
      gated,
      createWorkflow("top", { nodes: [createNode("sub", "core.subWorkflow", { workflowId: "gated" })] }),
    ];
    const one = fleet.add(1, { definitions });
    await one.host.start();
    const parentRunId = await one.run("top");
    const childRunId = one.payloads(parentRunId, "node.dispatched")[0]?.childRunId ?? "";
    // A third process ends the parent, and is gone before it tells the child.
    const other: WorkflowScene = fleet.add(2, {
      definitions,
      faults: {
        after: () => {
          other.die();
        },
      },
    });
    await other.host.start();
    giveAway(fleet, parentRunId, "idle");
    await fleet.owners.beat({ id: "idle" });
    await other.host.cancel(ALICE, parentRunId, {}).catch(() => undefined);
    expect(one.types(parentRunId).at(-1)).toBe("run.cancelled");
    expect(await one.status(childRunId)).toBe("waiting-approval");
    await fleet.clock.advance(LEASE_MS * 1.5);
    expect(await one.status(childRunId)).toBe("cancelled");
    await one.host.stop();
  });
});

/** Makes another process the owner of one run, at once. */
function giveAway({ ledger }: Fleet, runId: string, owner: string): void {
  const run = ledger.runs.get(runId as CoordinationId);
  if (!run) throw new Error(`${runId} is not there`);
  run.owner = { owner_id: owner, owner_token: run.owner.owner_token + 1 };
}

/** The clock of a machine that shows another time. */
function shiftClock(clock: FakeClock, offMs: number): FakeClock {
  return {
    ...clock,
    steady: clock.steady,
    now: () => (clock.now() + offMs) as ReturnType<FakeClock["now"]>,
    wakeAt: (atMs, run) => clock.wakeAt((atMs - offMs) as typeof atMs, run),
  };
}
