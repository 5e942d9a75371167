import { describe, expect, test } from "vitest";
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import {
  createEdge,
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import { checkLog } from "../support/workflow-plays.ts";
import {
  SAID,
  ALICE,
  codeOf,
  listEvents,
  valueOf,
  createWorkflowScene,
  type SceneOptions,
  type WorkflowScene,
} from "../support/workflow-scene.ts";

const slow = createWorkflow("slow", { nodes: [createNode("wait", "core.delay", { delayMs: 10_000 })] });

const gated = createWorkflow("gated", {
  nodes: [createNode("gate", "core.approvalGate"), createNode("after")],
  edges: [createEdge("gate>after")],
});

const asking = createWorkflow("asking", {
  nodes: [createNode("model", "core.ai.callPrompt", { prompt: "?" })],
});

const parent = createSupervised("parent", [sendNextWorker("slow"), TERMINATE]);

/** Two processes over one ledger, each of which knows that the other one lives. */
function createTwoScenes(options: SceneOptions = {}): readonly [WorkflowScene, WorkflowScene] {
  const shared = {
    ledger: createMemoryWorkflowLedger(),
    clock: createFakeClock(),
    alive: new Set([1, 2]),
    definitions: [slow, gated, asking, parent],
    ...options,
  };
  return [createWorkflowScene({ ...shared, pid: 1 }), createWorkflowScene({ ...shared, pid: 2 })];
}

describe("two processes over one ledger", () => {
  test("see each other's runs, and the newest of what they drive themselves", async () => {
    const [one, other] = createTwoScenes();
    const runId = await one.run("slow");
    expect(await other.status(runId)).toBe("running");
    await other.host.cancel(ALICE, runId, {});
    expect(await one.status(runId)).toBe("cancelled");
    expect(codeOf(await one.host.pause(ALICE, runId, {}))).toBe("run_not_pausable");
    await one.clock.advance(20_000);
    expect(one.types(runId).at(-1)).toBe("run.cancelled");
  });

  test("tell a watcher of what the other one appended, also between reading and the first look", async () => {
    const [one, other] = createTwoScenes();
    for (const [watcher, actor] of [
      [one, other],
      [other, one],
    ] as const) {
      const runId = await one.run("slow");
      let wakes = 0;
      const forget = watcher.host.watch(runId, () => (wakes += 1));
      await actor.host.cancel(ALICE, runId, {});
      await watcher.clock.advance(250);
      expect(wakes).toBeGreaterThan(0);
      forget();
      await watcher.clock.advance(10_000);
      expect(watcher.clock.pending).toBe(0);
    }
  });

  test("cost nothing while nothing happens", async () => {
    const [one, other] = createTwoScenes();
    const runId = await one.run("gated");
    let wakes = 0;
    other.host.watch(runId, () => (wakes += 1));
    await other.clock.advance(60_000);
    expect(wakes).toBeLessThanOrEqual(1);
  });

  test("SAID at once by both have one outcome, and the other is told so", async () => {
    const [one, other] = createTwoScenes();
    const runId = await one.run("gated");
    const codes = (
      await Promise.all([
        one.host.resolve(ALICE, runId, { nodeId: "gate" }, { action: "accept" }),
        other.host.resolve(ALICE, runId, { nodeId: "gate" }, { action: "reject" }),
        one.host.resolve(ALICE, runId, { nodeId: "gate" }, { action: "reject" }),
        other.host.resolve(ALICE, runId, { nodeId: "gate" }, { action: "accept" }),
      ])
    ).map(codeOf);
    expect(codes.toSorted()).toEqual(["done", ...Array<string>(3).fill("interrupt_already_resolved")]);
    await one.settle();
    checkLog(one.events(runId));
    expect(one.payloads(runId, "interrupt.resolved")).toHaveLength(1);
  });

  test("answer what the other one asked since, though they drive the run themselves", async () => {
    const resumeSchema = { type: "object", required: ["n"] };
    const gates = createWorkflow("gates", {
      nodes: [
        createNode("first", "core.approvalGate", { timeoutMs: 60_000 }),
        createNode("second", "core.interrupt", { kind: "approval", resumeSchema }),
      ],
      edges: [createEdge("first>second")],
    });
    const [one, other] = createTwoScenes({ definitions: [gates] });
    const runId = await one.run("gates");
    await other.answer(runId, "first", { action: "accept" });
    expect(codeOf(await one.answer(runId, "second", { action: "accept" }))).toBe("validation_error");
    expect(codeOf(await one.answer(runId, "second", { action: "accept", n: 1 }))).toBe("done");
    expect(await other.status(runId)).toBe("completed");
  });

  test("cancelled by one and SAID at the other end once", async () => {
    const [one, other] = createTwoScenes();
    const runId = await one.run("gated");
    await Promise.all([
      one.host.cancel(ALICE, runId, {}),
      other.host.resolve(ALICE, runId, { nodeId: "gate" }, { action: "accept" }),
    ]);
    await one.settle();
    checkLog(one.events(runId));
    expect(["cancelled", "completed"]).toContain(await one.status(runId));
  });

  test("create one run for one id, which both say is theirs", async () => {
    const [one, other] = createTwoScenes();
    const request = {
      workflowId: "slow",
      inputs: {},
      transport: "rest",
      runId: "run-same" as never,
    } as const;
    const created = await Promise.all([one, other, one].map((scene) => scene.host.create(ALICE, request)));
    expect(created.map(codeOf)).toEqual(["done", "done", "done"]);
    await one.clock.advance(10_000);
    expect(one.types("run-same").filter((type) => type === "run.started")).toHaveLength(1);
    expect(await other.status("run-same")).toBe("completed");
  });

  test("a child that another process drives and ends is noticed by its parent's", async () => {
    const [one, other] = createTwoScenes();
    const runId = await one.run("parent");
    const childRunId = one.payloads(runId, "node.dispatched")[0]?.childRunId ?? "";
    await other.host.cancel(ALICE, childRunId, {});
    await one.clock.advance(500);
    expect(await one.status(runId)).toBe("completed");
    checkLog(one.events(runId));
  });
});

describe("a process that is gone", () => {
  test("leaves its runs to one that notices by its silence, though its number is in use", async () => {
    const [one, other] = createTwoScenes();
    await one.host.start();
    await other.host.start();
    const shared = other.ledger.open();
    const runId = await one.run("slow");
    one.die();
    await other.clock.advance(9_500);
    const readToken = async () => {
      const owners = await shared.owners.ownersOf([runId as CoordinationId]);
      return owners.get(runId as CoordinationId)?.token;
    };
    expect(await readToken()).toBe(1);
    await other.clock.advance(2_500);
    expect(await readToken()).toBe(2);
    expect(await other.status(runId)).toBe("completed");
    await other.host.stop();
  });

  test("leaves a cancelled parent's children to be ended, and those nobody waited for alone", async () => {
    const shared = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock() };
    const definitions = [
      gated,
      createWorkflow("top", { nodes: [createNode("sub", "core.subWorkflow", { workflowId: "gated" })] }),
      createWorkflow("free", {
        nodes: [
          createNode("sub", "core.subWorkflow", { workflowId: "gated", waitForCompletion: false }),
          createNode("gate", "core.approvalGate"),
        ],
      }),
    ];
    const one: WorkflowScene = createWorkflowScene({
      ...shared,
      definitions,
      pid: 1,
      // Dies with the parent's end on disk.
      faults: {
        after: ({ events }) => {
          if (events.at(-1)?.type === "run.cancelled") one.die();
        },
      },
    });
    const top = await one.run("top");
    const child = one.payloads(top, "node.dispatched")[0]?.childRunId ?? "";
    const free = await one.run("free");
    const freed = one.payloads(free, "node.dispatched")[0]?.childRunId ?? "";
    await one.host.cancel(ALICE, top, {}).catch(() => undefined);
    const other = createWorkflowScene({ ...shared, definitions, pid: 2 });
    await other.host.cancel(ALICE, free, {});
    await other.host.start();
    await other.settle();
    expect(await other.status(child)).toBe("cancelled");
    expect(other.payloads(child, "run.cancelled")[0]).toMatchObject({
      reason: "parent-cancelled",
      parentRunId: top,
    });
    expect(await other.status(freed)).toBe("waiting-approval");
    await other.host.stop();
  });

  test("leaves a fork of a child alone, also where the child's parent ended before it knew of the child", async () => {
    const shared = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock() };
    const top = createWorkflow("top", {
      nodes: [createNode("sub", "core.subWorkflow", { workflowId: "gated" })],
    });
    const definitions = [gated, top];
    const one = createWorkflowScene({
      ...shared,
      definitions,
      pid: 1,
      faults: {
        before: ({ events }) => {
          if (events.some(({ type }) => type === "node.dispatched")) throw new Error("the disk is full");
        },
      },
    });
    const parent = await one.run("top");
    const child = [...shared.ledger.runs.keys()].find((runId) => runId !== parent) ?? "";
    const fork = async (mode: "replay" | "branch") =>
      valueOf(await one.host.fork(ALICE, { sourceRunId: child, mode, fromSeq: 1 })).runId;
    const forks = [await fork("replay"), await fork("branch")];
    await one.host.cancel(ALICE, parent, {});
    one.die();
    const other = createWorkflowScene({ ...shared, definitions, pid: 2 });
    await other.host.start();
    await other.settle();
    expect(other.types(parent)).not.toContain("node.dispatched");
    expect(await other.status(child)).toBe("cancelled");
    for (const runId of forks) expect(await other.status(runId)).toBe("waiting-approval");
    await other.host.stop();
  });

  test("whose runs wait for people has them looked at once, and not with every beat", async () => {
    const shared = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock() };
    const one = createWorkflowScene({ ...shared, definitions: [gated], pid: 1 });
    const runId = await one.run("gated");
    one.die();
    const other = createWorkflowScene({ ...shared, definitions: [gated], pid: 2 });
    await other.host.start();
    await other.clock.advance(60_000);
    expect(other.said).toEqual(['goes on with the runs of a process that is gone {"runs":1}']);
    expect(other.types(runId)).not.toContain("run.resuming");
    await other.answer(runId, "gate", { action: "accept" });
    expect(await other.status(runId)).toBe("completed");
    await other.host.stop();
  });

  test("with one run whose definition is lost leaves the others to be gone on with", async () => {
    const shared = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock() };
    const one = createWorkflowScene({ ...shared, definitions: [slow, gated], pid: 1 });
    const lostRun = await one.run("slow");
    const missing = createWorkflow("slow", {
      nodes: [createNode("wait", "core.delay", { delayMs: 10_001 })],
    });
    const kept = createWorkflowScene({ ...shared, definitions: [missing], pid: 1 });
    const found = await kept.run("slow");
    one.die();
    kept.die();
    for (const [sha256, text] of shared.ledger.definitions)
      if (text.includes('"delayMs":10000')) shared.ledger.definitions.delete(sha256);
    const other = createWorkflowScene({ ...shared, pid: 2 });
    await other.host.start();
    await other.clock.advance(11_000);
    expect(listEvents(shared.ledger, found).at(-1)?.type).toBe("run.completed");
    expect(listEvents(shared.ledger, lostRun).at(-1)?.type).toBe("node.started");
    await other.host.stop();
  });

  test("leaves a child that is known, though its workflow is not there any more", async () => {
    const shared = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock() };
    const one = createWorkflowScene({ ...shared, definitions: [slow, parent], pid: 1 });
    const runId = await one.run("parent");
    one.die();
    const other = createWorkflowScene({ ...shared, definitions: [parent], pid: 2 });
    await other.host.start();
    await other.clock.advance(10_000);
    expect(other.payloads(runId, "core.workflowChain.event").map(({ phase }) => phase)).toEqual([
      ...["dispatch.began", "dispatch.succeeded", "child.completed"],
    ]);
    await other.host.stop();
  });
});

describe("a host that stops", () => {
  test("fails no run whose model or tool it was waiting for; the next process asks again", async () => {
    const shared = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock(), definitions: [asking] };
    const one = createWorkflowScene({
      ...shared,
      pid: 1,
      chat: {
        complete: ({ signal }) =>
          new Promise((resolve) => {
            signal.addEventListener("abort", () => {
              resolve({ kind: "unknown", code: "aborted", message: "aborted" });
            });
          }),
      },
    });
    const runId = await one.run("asking");
    await one.host.stop();
    await one.settle();
    expect(one.types(runId)).toEqual(["run.started", "node.started"]);
    const other = createWorkflowScene({
      ...shared,
      pid: 2,
      chat: { complete: () => Promise.resolve(SAID) },
    });
    await other.host.start();
    await other.settle();
    expect(await other.status(runId)).toBe("completed");
    await other.host.stop();
  });

  test("does not cancel what it began on another host", async () => {
    const cancelled: string[] = [];
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("far", {
          nodes: [createNode("sub", "core.subWorkflow", { workflowId: "w", peerUrl: "http://peer" })],
        }),
      ],
      peers: {
        createRun: () => Promise.resolve({ kind: "created", runId: "run-far", status: "running" }),
        awaitEnd: (_url, _runId, signal) =>
          new Promise((resolve) => {
            signal.addEventListener("abort", () => {
              resolve({ kind: "unknown", code: "aborted", message: "aborted" });
            });
          }),
        cancel: (_url, runId) => {
          cancelled.push(runId);
          return Promise.resolve({ kind: "cancelling", status: "cancelled" });
        },
      },
    });
    const stays = await scene.run("far");
    const ends = await scene.run("far");
    await scene.host.cancel(ALICE, ends, {});
    await scene.settle();
    expect(cancelled).toEqual(["run-far"]);
    await scene.host.stop();
    await scene.settle();
    expect(cancelled).toEqual(["run-far"]);
    expect(scene.types(stays)).toEqual(["run.started", "node.started", "node.dispatched"]);
  });
});

test("a run that is cancelled while its peer is discovered begins nothing there", async () => {
  const discovered = Promise.withResolvers<undefined>();
  const begun: string[] = [];
  const scene = createWorkflowScene({
    definitions: [
      createWorkflow("far", {
        nodes: [createNode("sub", "core.subWorkflow", { workflowId: "w", peerUrl: "http://peer" })],
      }),
    ],
    peers: {
      discover: async (url) => {
        await discovered.promise;
        return { kind: "host", hostId: "host-b", wellKnownUrl: url };
      },
      createRun: (url) => {
        begun.push(url);
        return Promise.resolve({ kind: "created", runId: "run-far", status: "running" });
      },
    },
  });
  const runId = await scene.run("far");
  await scene.host.cancel(ALICE, runId, {});
  discovered.resolve(undefined);
  await scene.settle();
  expect(begun).toEqual([]);
  expect(scene.types(runId)).toEqual(["run.started", "node.started", "node.cancelled", "run.cancelled"]);
  await scene.host.stop();
});
