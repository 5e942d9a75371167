import { describe, expect, test } from "vitest";
import { expectReplayOf, forkIn, countEvents, stripRunIds } from "../support/forks.ts";
import {
  chain,
  createEdge,
  sendNextWorker,
  createNode,
  createSupervised,
  TERMINATE,
  createWorker,
  createWorkflow,
} from "../support/workflow-definitions.ts";
import { ALICE, BOB, createWorkflowScene, type SceneOptions } from "../support/workflow-scene.ts";

const HOUR_MS = 3_600_000;

const DEFINITIONS = [
  createWorker("plain"),
  createWorkflow("gated", {
    nodes: [createNode("gate", "core.approvalGate", { timeoutMs: HOUR_MS }), createNode("after")],
    edges: [createEdge("gate>after")],
  }),
  createWorkflow("asks", {
    nodes: [createNode("gate", "core.clarificationGate"), createNode("after")],
    edges: [createEdge("gate>after")],
  }),
  createWorkflow("quorum", {
    nodes: [createNode("gate", "core.approvalGate", { requiredApprovals: 2 }), createNode("after")],
    edges: [createEdge("gate>after")],
  }),
  createWorkflow("slow", {
    nodes: [
      createNode("wait", "core.delay", { delayMs: 5_000 }),
      createNode("model", "core.ai.callPrompt", { prompt: "?" }),
    ],
    edges: chain("wait>model"),
  }),
  createWorkflow("waits", { nodes: [createNode("wait", "core.delay", { delayMs: 5_000 })] }),
  createWorkflow("calls", {
    nodes: [
      createNode("call", "core.subWorkflow", { workflowId: "waits", outputMapping: {} }),
      createNode("after", "core.noop"),
    ],
    edges: chain("call>after"),
  }),
  createWorkflow("tool", {
    nodes: [createNode("tool", "core.ai.callPrompt", { mcp: { tool: "echo", url: "http://tool" } })],
  }),
  createSupervised("loop", [sendNextWorker("plain"), sendNextWorker("waits"), TERMINATE]),
  createWorkflow("fails", { nodes: [createNode("boom", "core.fail")], settings: { maxRetries: 1 } }),
  createWorkflow("timed", { nodes: [createNode("wait", "core.delay", { delayMs: 9_000 })] }),
];

const createScene = (options: SceneOptions = {}) =>
  createWorkflowScene({ definitions: DEFINITIONS, ...options });

describe("a replay of a run that has not ended", () => {
  test("waits as its source does, and takes an answer of its own", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("asks");
    await scene.clock.advance(10 * HOUR_MS);
    const runId = await forkIn(scene, { sourceRunId, mode: "replay" });
    expectReplayOf(scene.ledger, runId, sourceRunId);
    expect(await scene.status(runId)).toBe("waiting-input");
    await scene.answer(runId, "gate", { answers: { q1: "x" } });
    expect(await scene.status(runId)).toBe("completed");
    expect(await scene.status(sourceRunId)).toBe("waiting-input");
  });

  test("gives what runs out as long as it had, and the run its time", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("gated");
    await scene.clock.advance(HOUR_MS / 2);
    scene.clock.jump(scene.clock.now() + 30 * 24 * HOUR_MS);
    const runId = await forkIn(scene, { sourceRunId, mode: "replay" });
    await scene.clock.advance(HOUR_MS - 1_000);
    expect(await scene.status(runId)).toBe("waiting-approval");
    await scene.clock.advance(2_000);
    expect(await scene.snapshot(runId)).toMatchObject({ error: { code: "approval_timeout" } });
  });

  test("fails at the side effect that its source has no outcome of, whatever the node makes of failures", async () => {
    const chat: NonNullable<SceneOptions["chat"]> = { complete: () => new Promise(() => undefined) };
    const tools: NonNullable<SceneOptions["tools"]> = { callMcp: () => new Promise(() => undefined) };
    const scene = createScene({ chat, tools });
    for (const [workflowId, nodeId] of [
      ["tool", "tool"],
      ["calls", "call"],
      ["loop", "dispatch"],
    ] as const) {
      const sourceRunId = await scene.run(workflowId);
      expect(await scene.status(sourceRunId)).toBe("running");
      const runs = scene.ledger.runs.size;
      const runId = await forkIn(scene, { sourceRunId, mode: "replay" });
      const takenCount = countEvents(scene.ledger, sourceRunId);
      expect(stripRunIds(scene.events(runId).slice(0, takenCount))).toEqual(
        stripRunIds(scene.events(sourceRunId)),
      );
      expect(scene.events(runId).slice(takenCount)).toMatchObject([
        { type: "run.resuming" },
        { type: "node.failed", nodeId, payload: { error: { code: "replay_source_missing" } } },
        { type: "run.failed", payload: { error: { code: "replay_source_missing" } } },
      ]);
      expect(scene.ledger.runs.size).toBe(runs + 1);
      expect(await scene.status(sourceRunId)).toBe("running");
    }
  });
});

describe("a replay of a cancelled run", () => {
  test("goes on where it was cut off: what is pure is done, what is not is missing", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("slow");
    await scene.clock.advance(1_000);
    await scene.host.cancel(ALICE, sourceRunId, { reason: "why not" });
    const runId = await forkIn(scene, { sourceRunId, mode: "replay" });
    expect(scene.types(runId)).toEqual(["run.started", "node.started", "run.resuming"]);
    await scene.clock.advance(6_000);
    expect(scene.events(runId).slice(3)).toMatchObject([
      { type: "node.completed", nodeId: "wait" },
      { type: "node.started", nodeId: "model" },
      { type: "node.failed", payload: { error: { code: "replay_source_missing" } } },
      { type: "run.failed" },
    ]);
  });

  test("from behind its cancellation is cancelled", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("slow");
    await scene.host.cancel(ALICE, sourceRunId, {});
    const fromSeq = countEvents(scene.ledger, sourceRunId);
    const runId = await forkIn(scene, { sourceRunId, mode: "replay", fromSeq });
    expectReplayOf(scene.ledger, runId, sourceRunId);
    expect(await scene.status(runId)).toBe("cancelled");
  });
});

describe("what people and the host did to a run", () => {
  test("is replayed: votes, pauses, variables that were set, and a process that died", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("quorum");
    await scene.clock.advance(10);
    await scene.host.seams?.setVariables(ALICE, sourceRunId, { colour: "blue", form: [1] });
    await scene.answer(sourceRunId, "gate", { action: "accept" });
    await scene.clock.advance(10);
    await scene.answer(sourceRunId, "gate", { action: "accept" }, BOB);
    const slow = await scene.run("timed");
    await scene.host.pause(ALICE, slow, { drainPolicy: "immediate", reason: "tea" });
    await scene.clock.advance(1_000);
    await scene.host.resume(ALICE, slow);
    await scene.clock.advance(1_000);
    scene.die();
    const next = createScene({ ledger: scene.ledger, clock: scene.clock, pid: 2 });
    scene.clock.jump(scene.clock.now() + 20_000);
    await next.host.start();
    await next.settle();
    expect(next.types(slow)).toContain("run.resuming");
    expect(await next.status(slow)).toBe("completed");
    await next.host.stop();
    const other = createWorkflowScene({ ledger: scene.ledger, clock: scene.clock, pid: 3 });
    for (const source of [sourceRunId, slow])
      for (let fromSeq = 0; fromSeq <= countEvents(scene.ledger, source); fromSeq += 1)
        expectReplayOf(
          scene.ledger,
          await forkIn(other, { sourceRunId: source, mode: "replay", fromSeq }),
          source,
        );
  });

  test.each([
    ["timed", { runDurationMsMax: 5_000 }, "run_timeout"],
    ["loop", { nodeExecutionsMax: 1 }, "recursion_limit_exceeded"],
    ["loop", { loopIterationsMax: 1 }, "loop_limit_exceeded"],
  ])("is replayed under other limits than it had: a run of %s with %o", async (workflowId, limits, code) => {
    const scene = createScene({ settings: limits });
    const sourceRunId = await scene.run(workflowId);
    await scene.clock.advance(20_000);
    expect((await scene.snapshot(sourceRunId))["error"]).toMatchObject({ code });
    const settings = {
      runDurationMsMax: 1,
      nodeExecutionsMax: 1,
      loopIterationsMax: 1,
      confidenceFloor: 0.9,
      escalationThreshold: 0.1,
      hostId: "h",
    };
    for (const others of [{}, settings]) {
      const other = createWorkflowScene({
        ledger: scene.ledger,
        clock: scene.clock,
        pid: 3,
        settings: others,
      });
      expectReplayOf(scene.ledger, await forkIn(other, { sourceRunId, mode: "replay" }), sourceRunId);
    }
  });
});

describe("a branch", () => {
  test("waits for the child that its source began, and leaves that alone", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("calls");
    const child = String(scene.payloads(sourceRunId, "node.dispatched")[0]?.childRunId);
    const fromSeq = countEvents(scene.ledger, sourceRunId);
    const [ends, cancelled] = [
      await forkIn(scene, { sourceRunId, mode: "branch", fromSeq }),
      await forkIn(scene, { sourceRunId, mode: "branch", fromSeq }),
    ];
    const runs = scene.ledger.runs.size;
    await scene.host.cancel(ALICE, cancelled, {});
    await scene.settle();
    expect(await scene.status(child)).toBe("running");
    await scene.clock.advance(6_000);
    expect(await scene.status(ends)).toBe("completed");
    expect(scene.events(ends).slice(fromSeq)).toMatchObject([
      { type: "run.resuming" },
      { type: "node.completed", payload: { outputs: { childRunId: child, childStatus: "completed" } } },
      { type: "node.started" },
      { type: "node.completed" },
      { type: "run.completed" },
    ]);
    expect(scene.ledger.runs.size).toBe(runs);
  });

  test("begins children of its own, with ids of its own", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("calls");
    await scene.clock.advance(6_000);
    const child = scene.payloads(sourceRunId, "node.dispatched")[0]?.childRunId;
    const runId = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq: 2 });
    await scene.clock.advance(6_000);
    const ownRunId = scene.payloads(runId, "node.dispatched")[0]?.childRunId;
    expect(ownRunId).not.toBe(child);
    expect(await scene.host.ancestry(ALICE, String(ownRunId))).toMatchObject({
      value: { parent: { runId } },
    });
    expect(await scene.status(runId)).toBe("completed");
  });

  test("has the options that its caller put in place of the source's, from its own place on", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("loop", { configurable: { maxLoopIterations: 9, mine: true } });
    await scene.clock.advance(6_000);
    expect(await scene.status(sourceRunId)).toBe("completed");
    const overlay = { configurable: { maxLoopIterations: 1 } };
    for (const fromSeq of [0, 8]) {
      const runId = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq, overlay });
      await scene.clock.advance(6_000);
      expect(await scene.snapshot(runId)).toMatchObject({
        sourceRunId,
        fromSeq,
        mode: "branch",
        error: { code: "loop_limit_exceeded" },
        configurable: { maxLoopIterations: 1, mine: true },
      });
      const again = await forkIn(scene, { sourceRunId: runId, mode: "replay" });
      expectReplayOf(scene.ledger, again, runId);
    }
  });

  test("is answered by itself: its question has another key than its source's where it asks it anew", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("asks");
    const [at, before] = [
      await forkIn(scene, { sourceRunId, mode: "branch", fromSeq: countEvents(scene.ledger, sourceRunId) }),
      await forkIn(scene, { sourceRunId, mode: "branch", fromSeq: 2 }),
    ];
    const keyOf = (runId: string) => scene.payloads(runId, "node.suspended")[0]?.key;
    expect([keyOf(at), keyOf(before)]).toEqual([`${sourceRunId}:gate~1`, `${before}:gate~1`]);
    for (const runId of [at, before]) await scene.answer(runId, "gate", { answers: { q1: "x" } });
    expect(await Promise.all([at, before, sourceRunId].map((id) => scene.status(id)))).toEqual([
      ...["completed", "completed", "waiting-input"],
    ]);
  });

  test("asks again what it was cut off from asking", async () => {
    const scene = createScene();
    for (const [workflowId, value] of [
      ["asks", { answers: { q1: "x" } }],
      ["gated", { action: "accept" }],
    ] as const) {
      const sourceRunId = await scene.run(workflowId);
      expect(scene.types(sourceRunId).at(-1)).toBe("interrupt.requested");
      const fromSeq = countEvents(scene.ledger, sourceRunId) - 1;
      const runId = await forkIn(scene, { sourceRunId, mode: "branch", fromSeq });
      const { data } = scene.payloads(sourceRunId, "interrupt.requested")[0] ?? {};
      expect(scene.payloads(runId, "interrupt.requested")).toMatchObject([
        workflowId === "asks" ? { data } : { data: { title: "gate", actions: ["accept", "reject"] } },
      ]);
      await scene.answer(runId, "gate", value);
      expect(await scene.status(runId)).toBe("completed");
    }
  });

  test("begins the attempt that it was cut off from beginning", async () => {
    const scene = createScene();
    const sourceRunId = await scene.run("fails");
    const source = scene.types(sourceRunId);
    const runId = await forkIn(scene, {
      sourceRunId,
      mode: "branch",
      fromSeq: source.indexOf("node.retried") + 1,
    });
    expect(scene.types(runId).filter((type) => type !== "run.resuming")).toEqual(source);
    expect(scene.payloads(runId, "node.started").map(({ attempt }) => attempt)).toEqual([0, 1]);
    expectReplayOf(scene.ledger, await forkIn(scene, { sourceRunId: runId, mode: "replay" }), runId);
  });
});

describe("a fork of a fork", () => {
  test("takes the ids of the events from where they were made, and is again what its source was", async () => {
    const scene = createScene();
    const first = await scene.run("loop");
    await scene.clock.advance(6_000);
    const second = await forkIn(scene, { sourceRunId: first, mode: "branch", fromSeq: 6 });
    await scene.clock.advance(HOUR_MS);
    const third = await forkIn(scene, { sourceRunId: second, mode: "replay", fromSeq: 9 });
    const fourth = await forkIn(scene, { sourceRunId: third, mode: "replay" });
    const fifth = await forkIn(scene, { sourceRunId: fourth, mode: "branch", fromSeq: 3 });
    await scene.clock.advance(HOUR_MS);
    for (const runId of [third, fourth]) expectReplayOf(scene.ledger, runId, second);
    expect(scene.events(third).map(({ eventId }) => eventId.split(":")[0])).toEqual(
      scene.events(second).map((_, at) => (at < 6 ? first : second)),
    );
    expect(scene.events(fifth).map(({ eventId }) => eventId.split(":")[0])).toEqual(
      scene.events(fifth).map((_, at) => (at < 3 ? first : fifth)),
    );
    expect(await Promise.all([second, third, fourth, fifth].map((id) => scene.status(id)))).toEqual(
      Array.from({ length: 4 }, () => "completed"),
    );
  });

  test("of a child is a run of its own, which nobody ends with the child's parent", async () => {
    const scene = createScene();
    const parent = await scene.run("calls");
    const child = String(scene.payloads(parent, "node.dispatched")[0]?.childRunId);
    const runId = await forkIn(scene, {
      sourceRunId: child,
      mode: "branch",
      fromSeq: countEvents(scene.ledger, child),
    });
    await scene.host.cancel(ALICE, parent, {});
    await scene.settle();
    expect([await scene.status(child), await scene.status(runId)]).toEqual(["cancelled", "running"]);
    const next = createScene({ ledger: scene.ledger, clock: scene.clock, pid: 2 });
    scene.die();
    await next.host.start();
    await next.clock.advance(6_000);
    expect(await next.status(runId)).toBe("completed");
    expect(await next.host.ancestry(ALICE, runId)).toMatchObject({ value: { parent: null } });
    await next.host.stop();
  });
});
