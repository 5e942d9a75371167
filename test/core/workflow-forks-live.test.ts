import { describe, expect, test } from "vitest";
import { expectReplayOf, forkIn, lengthIn, sameLog } from "../support/forks.ts";
import {
  chain,
  edge,
  nextWorker,
  node,
  supervised,
  TERMINATE,
  worker,
  workflow,
} from "../support/workflow-definitions.ts";
import { ALICE, BOB, workflowScene, type SceneOptions } from "../support/workflow-scene.ts";

const HOUR_MS = 3_600_000;

const DEFINITIONS = [
  worker("plain"),
  workflow("gated", {
    nodes: [node("gate", "core.approvalGate", { timeoutMs: HOUR_MS }), node("after")],
    edges: [edge("gate>after")],
  }),
  workflow("asks", {
    nodes: [node("gate", "core.clarificationGate"), node("after")],
    edges: [edge("gate>after")],
  }),
  workflow("quorum", {
    nodes: [node("gate", "core.approvalGate", { requiredApprovals: 2 }), node("after")],
    edges: [edge("gate>after")],
  }),
  workflow("slow", {
    nodes: [
      node("wait", "core.delay", { delayMs: 5_000 }),
      node("model", "core.ai.callPrompt", { prompt: "?" }),
    ],
    edges: chain("wait>model"),
  }),
  workflow("waits", { nodes: [node("wait", "core.delay", { delayMs: 5_000 })] }),
  workflow("calls", {
    nodes: [
      node("call", "core.subWorkflow", { workflowId: "waits", outputMapping: {} }),
      node("after", "core.noop"),
    ],
    edges: chain("call>after"),
  }),
  workflow("tool", {
    nodes: [node("tool", "core.ai.callPrompt", { mcp: { tool: "echo", url: "http://tool" } })],
  }),
  supervised("loop", [nextWorker("plain"), nextWorker("waits"), TERMINATE]),
  workflow("timed", { nodes: [node("wait", "core.delay", { delayMs: 9_000 })] }),
];

const scene = (options: SceneOptions = {}) => workflowScene({ definitions: DEFINITIONS, ...options });

describe("a replay of a run that has not ended", () => {
  test("waits as its source does, and takes an answer of its own", async () => {
    const it = scene();
    const sourceRunId = await it.run("asks");
    await it.clock.advance(10 * HOUR_MS);
    const runId = await forkIn(it, { sourceRunId, mode: "replay" });
    expectReplayOf(it.ledger, runId, sourceRunId);
    expect(await it.status(runId)).toBe("waiting-input");
    await it.answer(runId, "gate", { answers: { q1: "x" } });
    expect(await it.status(runId)).toBe("completed");
    expect(await it.status(sourceRunId)).toBe("waiting-input");
  });

  test("gives what runs out as long as it had, and the run its time", async () => {
    const it = scene();
    const sourceRunId = await it.run("gated");
    await it.clock.advance(HOUR_MS / 2);
    it.clock.jump(it.clock.now() + 30 * 24 * HOUR_MS);
    const runId = await forkIn(it, { sourceRunId, mode: "replay" });
    await it.clock.advance(HOUR_MS - 1_000);
    expect(await it.status(runId)).toBe("waiting-approval");
    await it.clock.advance(2_000);
    expect(await it.snapshot(runId)).toMatchObject({ error: { code: "approval_timeout" } });
  });

  test("fails at the side effect that its source has no outcome of, whatever the node makes of failures", async () => {
    const chat: NonNullable<SceneOptions["chat"]> = { complete: () => new Promise(() => undefined) };
    const tools: NonNullable<SceneOptions["tools"]> = { callMcp: () => new Promise(() => undefined) };
    const it = scene({ chat, tools });
    for (const [workflowId, nodeId] of [
      ["tool", "tool"],
      ["calls", "call"],
      ["loop", "dispatch"],
    ] as const) {
      const sourceRunId = await it.run(workflowId);
      expect(await it.status(sourceRunId)).toBe("running");
      const runs = it.ledger.runs.size;
      const runId = await forkIn(it, { sourceRunId, mode: "replay" });
      const taken = lengthIn(it.ledger, sourceRunId);
      expect(sameLog(it.events(runId).slice(0, taken))).toEqual(sameLog(it.events(sourceRunId)));
      expect(it.events(runId).slice(taken)).toMatchObject([
        { type: "run.resuming" },
        { type: "node.failed", nodeId, payload: { error: { code: "replay_source_missing" } } },
        { type: "run.failed", payload: { error: { code: "replay_source_missing" } } },
      ]);
      expect(it.ledger.runs.size).toBe(runs + 1);
      expect(await it.status(sourceRunId)).toBe("running");
    }
  });
});

describe("a replay of a cancelled run", () => {
  test("goes on where it was cut off: what is pure is done, what is not is missing", async () => {
    const it = scene();
    const sourceRunId = await it.run("slow");
    await it.clock.advance(1_000);
    await it.host.cancel(ALICE, sourceRunId, { reason: "why not" });
    const runId = await forkIn(it, { sourceRunId, mode: "replay" });
    expect(it.types(runId)).toEqual(["run.started", "node.started", "run.resuming"]);
    await it.clock.advance(6_000);
    expect(it.events(runId).slice(3)).toMatchObject([
      { type: "node.completed", nodeId: "wait" },
      { type: "node.started", nodeId: "model" },
      { type: "node.failed", payload: { error: { code: "replay_source_missing" } } },
      { type: "run.failed" },
    ]);
  });

  test("from behind its cancellation is cancelled", async () => {
    const it = scene();
    const sourceRunId = await it.run("slow");
    await it.host.cancel(ALICE, sourceRunId, {});
    const fromSeq = lengthIn(it.ledger, sourceRunId);
    const runId = await forkIn(it, { sourceRunId, mode: "replay", fromSeq });
    expectReplayOf(it.ledger, runId, sourceRunId);
    expect(await it.status(runId)).toBe("cancelled");
  });
});

describe("what people and the host did to a run", () => {
  test("is replayed: votes, pauses, variables that were set, and a process that died", async () => {
    const it = scene();
    const sourceRunId = await it.run("quorum");
    await it.clock.advance(10);
    await it.host.seams?.setVariables(ALICE, sourceRunId, { colour: "blue", form: [1] });
    await it.answer(sourceRunId, "gate", { action: "accept" });
    await it.clock.advance(10);
    await it.answer(sourceRunId, "gate", { action: "accept" }, BOB);
    const slow = await it.run("timed");
    await it.host.pause(ALICE, slow, { drainPolicy: "immediate", reason: "tea" });
    await it.clock.advance(1_000);
    await it.host.resume(ALICE, slow);
    await it.clock.advance(1_000);
    it.die();
    const next = scene({ ledger: it.ledger, clock: it.clock, pid: 2 });
    it.clock.jump(it.clock.now() + 20_000);
    await next.host.start();
    await next.settle();
    expect(next.types(slow)).toContain("run.resuming");
    expect(await next.status(slow)).toBe("completed");
    await next.host.stop();
    const other = workflowScene({ ledger: it.ledger, clock: it.clock, pid: 3 });
    for (const source of [sourceRunId, slow])
      for (let fromSeq = 0; fromSeq <= lengthIn(it.ledger, source); fromSeq += 1)
        expectReplayOf(
          it.ledger,
          await forkIn(other, { sourceRunId: source, mode: "replay", fromSeq }),
          source,
        );
  });

  test.each([
    ["timed", { runDurationMsMax: 5_000 }, "run_timeout"],
    ["loop", { nodeExecutionsMax: 1 }, "recursion_limit_exceeded"],
    ["loop", { loopIterationsMax: 1 }, "loop_limit_exceeded"],
  ])("is replayed under other limits than it had: a run of %s with %o", async (workflowId, limits, code) => {
    const it = scene({ settings: limits });
    const sourceRunId = await it.run(workflowId);
    await it.clock.advance(20_000);
    expect((await it.snapshot(sourceRunId))["error"]).toMatchObject({ code });
    const settings = {
      runDurationMsMax: 1,
      nodeExecutionsMax: 1,
      loopIterationsMax: 1,
      confidenceFloor: 0.9,
      escalationThreshold: 0.1,
      hostId: "h",
    };
    for (const others of [{}, settings]) {
      const other = workflowScene({ ledger: it.ledger, clock: it.clock, pid: 3, settings: others });
      expectReplayOf(it.ledger, await forkIn(other, { sourceRunId, mode: "replay" }), sourceRunId);
    }
  });
});

describe("a branch", () => {
  test("waits for the child that its source began, and leaves that alone", async () => {
    const it = scene();
    const sourceRunId = await it.run("calls");
    const child = String(it.payloads(sourceRunId, "node.dispatched")[0]?.childRunId);
    const fromSeq = lengthIn(it.ledger, sourceRunId);
    const [ends, cancelled] = [
      await forkIn(it, { sourceRunId, mode: "branch", fromSeq }),
      await forkIn(it, { sourceRunId, mode: "branch", fromSeq }),
    ];
    const runs = it.ledger.runs.size;
    await it.host.cancel(ALICE, cancelled, {});
    await it.settle();
    expect(await it.status(child)).toBe("running");
    await it.clock.advance(6_000);
    expect(await it.status(ends)).toBe("completed");
    expect(it.events(ends).slice(fromSeq)).toMatchObject([
      { type: "run.resuming" },
      { type: "node.completed", payload: { outputs: { childRunId: child, childStatus: "completed" } } },
      { type: "node.started" },
      { type: "node.completed" },
      { type: "run.completed" },
    ]);
    expect(it.ledger.runs.size).toBe(runs);
  });

  test("begins children of its own, with ids of its own", async () => {
    const it = scene();
    const sourceRunId = await it.run("calls");
    await it.clock.advance(6_000);
    const child = it.payloads(sourceRunId, "node.dispatched")[0]?.childRunId;
    const runId = await forkIn(it, { sourceRunId, mode: "branch", fromSeq: 2 });
    await it.clock.advance(6_000);
    const own = it.payloads(runId, "node.dispatched")[0]?.childRunId;
    expect(own).not.toBe(child);
    expect(await it.host.ancestry(ALICE, String(own))).toMatchObject({ value: { parent: { runId } } });
    expect(await it.status(runId)).toBe("completed");
  });

  test("has the options that its caller put in place of the source's, from its own place on", async () => {
    const it = scene();
    const sourceRunId = await it.run("loop", { configurable: { maxLoopIterations: 9, mine: true } });
    await it.clock.advance(6_000);
    expect(await it.status(sourceRunId)).toBe("completed");
    const overlay = { configurable: { maxLoopIterations: 1 } };
    for (const fromSeq of [0, 8]) {
      const runId = await forkIn(it, { sourceRunId, mode: "branch", fromSeq, overlay });
      await it.clock.advance(6_000);
      expect(await it.snapshot(runId)).toMatchObject({
        sourceRunId,
        fromSeq,
        mode: "branch",
        error: { code: "loop_limit_exceeded" },
        configurable: { maxLoopIterations: 1, mine: true },
      });
      const again = await forkIn(it, { sourceRunId: runId, mode: "replay" });
      expectReplayOf(it.ledger, again, runId);
    }
  });

  test("is answered by itself: its question has another key than its source's where it asks it anew", async () => {
    const it = scene();
    const sourceRunId = await it.run("asks");
    const [at, before] = [
      await forkIn(it, { sourceRunId, mode: "branch", fromSeq: lengthIn(it.ledger, sourceRunId) }),
      await forkIn(it, { sourceRunId, mode: "branch", fromSeq: 2 }),
    ];
    const keyOf = (runId: string) => it.payloads(runId, "node.suspended")[0]?.key;
    expect([keyOf(at), keyOf(before)]).toEqual([`${sourceRunId}:gate~1`, `${before}:gate~1`]);
    for (const runId of [at, before]) await it.answer(runId, "gate", { answers: { q1: "x" } });
    expect(await Promise.all([at, before, sourceRunId].map((id) => it.status(id)))).toEqual([
      ...["completed", "completed", "waiting-input"],
    ]);
  });

  test("asks again what it was cut off from asking", async () => {
    const it = scene();
    for (const [workflowId, value] of [
      ["asks", { answers: { q1: "x" } }],
      ["gated", { action: "accept" }],
    ] as const) {
      const sourceRunId = await it.run(workflowId);
      expect(it.types(sourceRunId).at(-1)).toBe("interrupt.requested");
      const fromSeq = lengthIn(it.ledger, sourceRunId) - 1;
      const runId = await forkIn(it, { sourceRunId, mode: "branch", fromSeq });
      const { data } = it.payloads(sourceRunId, "interrupt.requested")[0] ?? {};
      expect(it.payloads(runId, "interrupt.requested")).toMatchObject([
        workflowId === "asks" ? { data } : { data: { title: "gate", actions: ["accept", "reject"] } },
      ]);
      await it.answer(runId, "gate", value);
      expect(await it.status(runId)).toBe("completed");
    }
  });
});

describe("a fork of a fork", () => {
  test("takes the ids of the events from where they were made, and is again what its source was", async () => {
    const it = scene();
    const first = await it.run("loop");
    await it.clock.advance(6_000);
    const second = await forkIn(it, { sourceRunId: first, mode: "branch", fromSeq: 6 });
    await it.clock.advance(HOUR_MS);
    const third = await forkIn(it, { sourceRunId: second, mode: "replay", fromSeq: 9 });
    const fourth = await forkIn(it, { sourceRunId: third, mode: "replay" });
    const fifth = await forkIn(it, { sourceRunId: fourth, mode: "branch", fromSeq: 3 });
    await it.clock.advance(HOUR_MS);
    for (const runId of [third, fourth]) expectReplayOf(it.ledger, runId, second);
    expect(it.events(third).map(({ eventId }) => eventId.split(":")[0])).toEqual(
      it.events(second).map((_, at) => (at < 6 ? first : second)),
    );
    expect(it.events(fifth).map(({ eventId }) => eventId.split(":")[0])).toEqual(
      it.events(fifth).map((_, at) => (at < 3 ? first : fifth)),
    );
    expect(await Promise.all([second, third, fourth, fifth].map((id) => it.status(id)))).toEqual(
      Array.from({ length: 4 }, () => "completed"),
    );
  });

  test("of a child is a run of its own, which nobody ends with the child's parent", async () => {
    const it = scene();
    const parent = await it.run("calls");
    const child = String(it.payloads(parent, "node.dispatched")[0]?.childRunId);
    const runId = await forkIn(it, {
      sourceRunId: child,
      mode: "branch",
      fromSeq: lengthIn(it.ledger, child),
    });
    await it.host.cancel(ALICE, parent, {});
    await it.settle();
    expect([await it.status(child), await it.status(runId)]).toEqual(["cancelled", "running"]);
    const next = scene({ ledger: it.ledger, clock: it.clock, pid: 2 });
    it.die();
    await next.host.start();
    await next.clock.advance(6_000);
    expect(await next.status(runId)).toBe("completed");
    expect(await next.host.ancestry(ALICE, runId)).toMatchObject({ value: { parent: null } });
    await next.host.stop();
  });
});
