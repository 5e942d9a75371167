/** Owns: when and how a run ends: what fails it, which outputs it has, and when its time is over. */
import { describe, expect, it } from "vitest";
import { addMs } from "../../src/agents/coordination/contracts/ids.ts";
import {
  draftEarlyEnd,
  draftNodeCancellations,
  draftRunTimeout,
  draftRegularEnd,
  isOverTime,
  computeRunDeadlineMs,
  type RunEnding,
} from "../../src/agents/coordination/workflow/node-contract/run-end.ts";
import type { NodeRun } from "../../src/agents/coordination/workflow/state/workflow-state.ts";
import { chain, createEdge, createNode } from "../support/workflow-definitions.ts";
import {
  cancel,
  close,
  createEnding,
  INVOCATION,
  SETTINGS,
  type RunSurroundings,
} from "./workflow-node-contract-scene.ts";
import { createAsking, createGraph, createNodeRun, LATER, NOW, withDecision } from "./workflow-view-scene.ts";

const ERROR = { code: "broken", message: "it broke" };
const MINUTE = 60_000;
const finish = (nodeId: string, outputs?: NodeRun["outputs"]): NodeRun =>
  createNodeRun(nodeId, "completed", { endedSequence: 2, ...(outputs && { outputs }) });

describe("the nodes of a run that is stopped", () => {
  it("are cancelled where they are at work, their agents first", () => {
    const { run } = createEnding([
      createNodeRun("a", "running", { invocation: INVOCATION }),
      createAsking("b"),
      finish("c"),
      createNodeRun("d", "failed"),
      createNodeRun("e", "skipped"),
      createNodeRun("f", "cancelled"),
    ]);
    expect(draftNodeCancellations(run, "enough")).toEqual([
      close("failed"),
      cancel("a", "enough"),
      cancel("b", "enough"),
    ]);
  });
});

describe("a run that ends early", () => {
  const failRun = (error: typeof ERROR, durationMs = MINUTE) => ({
    type: "run.failed",
    payload: { error, failedNodeId: "a", durationMs },
  });
  const createFailed = (error?: typeof ERROR): NodeRun => createNodeRun("a", "failed", error && { error });

  it("has a node that failed, and stops the others", () => {
    const ending = createEnding([createNodeRun("b", "running"), createFailed(ERROR)]);
    expect(draftEarlyEnd(ending)).toEqual([cancel("b", "node a failed"), failRun(ERROR)]);
  });

  it("tells which node failed where nobody knows why", () => {
    expect(draftEarlyEnd(createEnding([createFailed()]))).toEqual([
      failRun({ code: "node_failed", message: "node a failed" }),
    ]);
  });

  it("has taken no less than no time, whatever the clock says", () => {
    const ending = { ...createEnding([createFailed(ERROR)]), now: addMs(NOW, -5) };
    expect(draftEarlyEnd(ending)).toEqual([failRun(ERROR, 0)]);
  });

  it("may have failed at a node that its graph does not have", () => {
    const graph = createGraph({ nodes: [createNode("b")] });
    expect(draftEarlyEnd(createEnding([createFailed(ERROR)], { graph }))).toEqual([failRun(ERROR)]);
  });

  it.each(["any_failed", "all_complete"])("is none where an edge takes the failure: %s", (triggerRule) => {
    const nodes = [createNode("a"), createNode("b")];
    const graph = createGraph({ nodes, edges: [createEdge("a>b", { triggerRule })] });
    expect(draftEarlyEnd(createEnding([createFailed(ERROR)], { graph }))).toEqual([]);
    const both = [createFailed(ERROR), createNodeRun("b", "failed", { error: ERROR })];
    const [end] = draftEarlyEnd(createEnding(both, { graph }));
    expect(end).toMatchObject({ type: "run.failed", payload: { failedNodeId: "b" } });
  });

  it("is none where nodes work, have ended well or were left out", () => {
    const nodes = [createNodeRun("a", "running"), finish("b"), createNodeRun("c", "skipped")];
    expect(draftEarlyEnd(createEnding(nodes))).toEqual([]);
  });

  it("was ended by its supervisor, with the outputs so far", () => {
    const run = withDecision({ kind: "terminate" });
    const nodes = [createNodeRun("a", "running"), finish("b", { port: 1 })];
    expect(draftEarlyEnd(createEnding(nodes, { run }))).toEqual([
      cancel("a", "the supervisor ended the run"),
      { type: "run.completed", payload: { outputs: { port: 1 }, durationMs: MINUTE } },
    ]);
  });

  it("is none where the supervisor goes on", () => {
    const run = withDecision({ kind: "next-worker", nextWorkerIds: ["w"] });
    expect(draftEarlyEnd(createEnding([createNodeRun("a", "running")], { run }))).toEqual([]);
  });
});

describe("the outputs of a run", () => {
  const readOutputs = (nodeRuns: readonly NodeRun[], graph: RunEnding["graph"]): unknown => {
    const drafts = draftRegularEnd(createEnding(nodeRuns, { graph }));
    expect(drafts).toMatchObject([{ type: "run.completed", payload: { durationMs: MINUTE } }]);
    return drafts.map(({ payload }) => ("outputs" in payload ? payload.outputs : undefined))[0];
  };
  const createLine = (...primary: readonly string[]) =>
    createGraph({
      nodes: ["a", "b", "c"].map((id) =>
        createNode(id, "core.noop", {}, primary.includes(id) ? { outputRole: "primary" } : {}),
      ),
      edges: chain("a>b>c"),
    });
  const createFork = () =>
    createGraph({
      nodes: [createNode("a"), createNode("b"), createNode("c")],
      edges: [createEdge("a>b"), createEdge("a>c")],
    });

  it("are those of the only end", () => {
    const nodes = [finish("a", { port: 1 }), finish("b", { port: 2 }), finish("c", { port: 3 })];
    expect(readOutputs(nodes, createLine())).toEqual({ port: 3 });
  });

  it("are those of the primary node, wherever it stands", () => {
    const nodes = [finish("a", { port: 1 }), finish("b", { port: 2 }), finish("c", { port: 3 })];
    expect(readOutputs(nodes, createLine("b"))).toEqual({ port: 2 });
    expect(readOutputs([finish("b"), finish("c", { port: 3 })], createLine("b"))).toEqual({});
  });

  it("are those of the only end while the primary node has not completed", () => {
    const nodes = [finish("a", { port: 1 }), createNodeRun("b", "skipped"), finish("c", { port: 3 })];
    expect(readOutputs(nodes, createLine("b"))).toEqual({ port: 3 });
    expect(readOutputs([finish("c", { port: 3 })], createLine("b"))).toEqual({ port: 3 });
  });

  it("are those of all ends by their ids where there are several", () => {
    const nodes = [finish("a", { port: 1 }), finish("b", { port: 2 }), finish("c")];
    expect(readOutputs(nodes, createFork())).toEqual({ b: { port: 2 }, c: {} });
  });

  it("are those of the one end that completed, and none of one that did not", () => {
    const skipped = createNodeRun("c", "skipped", { outputs: { port: 3 } });
    expect(readOutputs([finish("a", { port: 1 }), finish("b", { port: 2 }), skipped], createFork())).toEqual({
      port: 2,
    });
    expect(readOutputs([finish("a", { port: 1 }), finish("b"), skipped], createFork())).toEqual({});
  });

  it("are none where no end completed", () => {
    expect(readOutputs([finish("a", { port: 1 })], createFork())).toEqual({});
  });

  it("are those of a node from which only a loop goes on", () => {
    const graph = createGraph({
      nodes: [createNode("a"), createNode("b")],
      edges: [createEdge("a>b"), createEdge("b>a")],
    });
    expect(readOutputs([finish("a", { port: 1 }), finish("b", { port: 2 })], graph)).toEqual({ port: 2 });
  });

  it("are no end's from which a loop and another edge go on", () => {
    const graph = createGraph({
      nodes: [createNode("a"), createNode("b"), createNode("c")],
      edges: [createEdge("a>b"), createEdge("b>a"), createEdge("b>c")],
    });
    expect(readOutputs([finish("a"), finish("b", { port: 2 }), finish("c", { port: 3 })], graph)).toEqual({
      port: 3,
    });
  });
});

describe("the time of a run", () => {
  const createTimed = (timeout?: number, around: RunSurroundings = {}) => {
    const nodes = [createNode("a"), createNode("b")];
    const graph = createGraph({ nodes, settings: timeout === undefined ? {} : { timeout } });
    return createEnding([createNodeRun("a", "running")], { graph, ...around });
  };

  it.each<readonly [string, number, number | undefined, RunSurroundings]>([
    ["the host", 600_000, undefined, {}],
    ["the host, where the workflow takes more", 600_000, 700_000, {}],
    ["the host, where the workflow has no bound", 600_000, 0, {}],
    [
      "the host, where the caller takes more",
      600_000,
      undefined,
      { configurable: { runTimeoutMs: 700_000 } },
    ],
    [
      "the host, where the caller names no number",
      600_000,
      undefined,
      { configurable: { runTimeoutMs: "1" } },
    ],
    ["the workflow", 50_000, 50_000, { configurable: { runTimeoutMs: 80_000 } }],
    ["the caller", 30_000, 50_000, { configurable: { runTimeoutMs: 30_000 } }],
  ])("is bounded by %s", (_who, limitMs, timeout, around) => {
    expect(computeRunDeadlineMs(createTimed(timeout, around))).toBe(NOW + limitMs + 1);
  });

  it("goes on by as much as people were waited for", () => {
    const ending = createTimed(50_000, { run: { waitedMs: 20_000 } });
    expect(computeRunDeadlineMs(ending)).toBe(NOW + 70_001);
  });

  it("has no end while people are waited for", () => {
    const ending = createTimed(50_000, { run: { waitingSinceMs: NOW } });
    expect(computeRunDeadlineMs(ending)).toBeUndefined();
    expect(isOverTime(ending)).toBe(false);
  });

  it("is over the moment after its limit", () => {
    expect(isOverTime(createTimed(MINUTE))).toBe(false);
    expect(isOverTime(createTimed(MINUTE - 1))).toBe(true);
    expect(isOverTime(createTimed(MINUTE - 2))).toBe(true);
    expect(isOverTime({ ...createTimed(), settings: { ...SETTINGS, runDurationMsMax: 1 } })).toBe(true);
  });

  it("fails the run when it is over, and stops its nodes", () => {
    const ending = createTimed(30_000, { run: { waitedMs: 20_000 } });
    const message = "the run has worked for 40000 ms, and its limit is 30000 ms";
    expect(ending.now).toBe(LATER);
    expect(draftRunTimeout(ending)).toEqual([
      { type: "cap.breached", payload: { kind: "run-duration", limit: 30_000, observed: 40_000 } },
      cancel("a", "the run's time is over"),
      { type: "run.failed", payload: { error: { code: "run_timeout", message }, durationMs: MINUTE } },
    ]);
  });
});
