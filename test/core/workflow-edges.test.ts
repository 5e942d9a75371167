import { describe, expect, test } from "vitest";
import {
  chain,
  createEdge,
  createNode,
  createWorkflow,
  type SmallWorkflow,
} from "../support/workflow-definitions.ts";
import { createWorkflowScene } from "../support/workflow-scene.ts";

/** The fate of each node, in the order in which it was last started or skipped. */
async function runAndListFates(small: SmallWorkflow, afterMs = 0): Promise<Record<string, string>> {
  const scene = createWorkflowScene({ definitions: [createWorkflow("w", small)] });
  const runId = await scene.run("w");
  await scene.clock.advance(afterMs);
  const { nodeStates } = (await scene.snapshot(runId)) as unknown as {
    nodeStates: Record<string, { status: string; executions: number }>;
  };
  return Object.fromEntries(
    Object.entries(nodeStates).map(([id, { status, executions }]) => [
      id,
      executions > 1 ? `${status} x${executions}` : status,
    ]),
  );
}

const NOOP = "core.noop";
const FAIL = "core.fail";
const no = { condition: { type: "equals", left: "nothing", right: 1 } } as const;

/** Two nodes before one that joins them, by a rule; `skip` is one that its own edge leaves out. */
function join(triggerRule: string, left: string, right: string): SmallWorkflow {
  const typeOf = (kind: string): string => (kind === "failed" ? FAIL : NOOP);
  const leave = (kind: string) => (kind === "skipped" ? no : {});
  return {
    nodes: [
      createNode("start"),
      createNode("left", typeOf(left)),
      createNode("right", typeOf(right)),
      createNode("join"),
      // Takes the failures, so that the run goes on.
      createNode("aside"),
    ],
    edges: [
      createEdge("start>left", leave(left)),
      createEdge("start>right", leave(right)),
      createEdge("left>join", { triggerRule }),
      createEdge("right>join", { triggerRule }),
      createEdge("left>aside", { triggerRule: "all_complete" }),
      createEdge("right>aside", { triggerRule: "all_complete" }),
    ],
  };
}

describe("the rule of the edges to a node", () => {
  test.each([
    ["all_success", "success", "success", "completed"],
    ["all_success", "success", "failed", "skipped"],
    ["all_success", "success", "skipped", "skipped"],
    ["any_success", "success", "failed", "completed"],
    ["any_success", "skipped", "success", "completed"],
    ["any_success", "failed", "skipped", "skipped"],
    ["any_failed", "success", "failed", "completed"],
    ["any_failed", "success", "success", "skipped"],
    ["any_failed", "skipped", "skipped", "skipped"],
    ["all_complete", "success", "failed", "completed"],
    ["all_complete", "skipped", "success", "completed"],
    ["none_failed", "success", "skipped", "completed"],
    ["none_failed", "success", "failed", "skipped"],
    ["none_failed", "skipped", "skipped", "skipped"],
  ])("%s with %s and %s: %s", async (rule, left, right, expected) => {
    expect((await runAndListFates(join(rule, left, right)))["join"]).toBe(expected);
    expect((await runAndListFates(join(rule, right, left)))["join"]).toBe(expected);
  });

  test("starts a node once, though a second edge arrives after it has ended", async () => {
    const small: SmallWorkflow = {
      nodes: [createNode("fast"), createNode("slow", "core.delay", { delayMs: 100 }), createNode("join")],
      edges: [
        createEdge("fast>join", { triggerRule: "any_success" }),
        createEdge("slow>join", { triggerRule: "any_success" }),
      ],
    };
    expect(await runAndListFates(small, 200)).toEqual({
      fast: "completed",
      slow: "completed",
      join: "completed",
    });
  });

  test("that waits for all waits for the slow one", async () => {
    const small: SmallWorkflow = {
      nodes: [createNode("fast"), createNode("slow", "core.delay", { delayMs: 100 }), createNode("join")],
      edges: [createEdge("fast>join"), createEdge("slow>join")],
    };
    expect(await runAndListFates(small, 99)).toEqual({ fast: "completed", slow: "running" });
    expect(await runAndListFates(small, 101)).toEqual({
      fast: "completed",
      slow: "completed",
      join: "completed",
    });
  });

  test("lets everything behind a skipped node be skipped", async () => {
    const small: SmallWorkflow = {
      nodes: ["a", "b", "c", "d"].map((id) => createNode(id)),
      edges: [createEdge("a>b", no), ...chain("b>c>d")],
    };
    expect(await runAndListFates(small)).toEqual({
      a: "completed",
      b: "skipped",
      c: "skipped",
      d: "skipped",
    });
  });
});

describe("a condition", () => {
  const outputs = { list: [1, { a: 2 }], word: "approved", count: 3, nested: { deep: true } };
  test.each([
    [{ type: "equals", left: "word", right: "approved" }, true],
    [{ type: "equals", left: "output.word", right: "approved" }, true],
    [{ type: "equals", left: "list", right: [1, { a: 2 }] }, true],
    [{ type: "equals", left: "count", right: "3" }, false],
    [{ type: "notEquals", left: "count", right: 4 }, true],
    [{ type: "contains", left: "list", right: { a: 2 } }, true],
    [{ type: "contains", left: "word", right: "prov" }, true],
    [{ type: "contains", left: "count", right: 3 }, false],
    [{ type: "regex", left: "word", right: "^app.*d$" }, true],
    [{ type: "regex", left: "count", right: "3" }, false],
    [{ type: "expression", expression: "nested.deep" }, true],
    [{ type: "expression", expression: "!nested.deep" }, false],
    [{ type: "expression", expression: "output.count === 3" }, true],
    [{ type: "expression", expression: "word == 'approved'" }, true],
    [{ type: "expression", expression: "word != 'approved'" }, false],
    [{ type: "expression", expression: "constructor" }, false],
    [{ expression: "missing" }, false],
  ])("%o is %s", async (condition, holds) => {
    const inputs = Object.fromEntries(
      Object.entries(outputs).map(([port, value]) => [port, { type: "static", value }]),
    );
    const small: SmallWorkflow = {
      nodes: [createNode("a", "core.identity", {}, { inputs }), createNode("b")],
      edges: [createEdge("a>b", { condition })],
    };
    expect((await runAndListFates(small))["b"]).toBe(holds ? "completed" : "skipped");
  });
});

describe("a loop", () => {
  const again = { condition: { type: "equals", left: "go", right: true } };
  const createGoNode = (value: unknown) =>
    createNode("b", "core.identity", {}, { inputs: { go: { type: "static", value } } });

  test("is gone through again while its edge's condition holds, and no further than its limit", async () => {
    const createSmall = (limit: number): SmallWorkflow => ({
      nodes: [createNode("a"), createGoNode(true), createNode("c")],
      edges: [...chain("a>b>c"), createEdge("b>a", again)],
      settings: { maxLoopbackIterations: limit },
    });
    const scene = createWorkflowScene({ definitions: [createWorkflow("w", createSmall(2))] });
    const runId = await scene.run("w");
    expect(await scene.snapshot(runId)).toMatchObject({
      status: "failed",
      error: { code: "loopback_limit_exceeded" },
      nodeStates: { a: { executions: 3 } },
    });
    expect(scene.events(runId).find(({ type }) => type === "workflow.loopback-limit")?.payload).toEqual({
      nodeId: "a",
      iterations: 3,
      limit: 2,
    });
    expect(scene.types(runId).slice(-2)).toEqual(["workflow.loopback-limit", "run.failed"]);
  });

  test("whose condition does not hold is left, and what is behind it goes on", async () => {
    const small: SmallWorkflow = {
      nodes: [createNode("a"), createGoNode(false), createNode("c")],
      edges: [...chain("a>b>c"), createEdge("b>a", again)],
    };
    expect(await runAndListFates(small)).toEqual({ a: "completed", b: "completed", c: "completed" });
  });

  test("from a node to itself ends at its limit", async () => {
    expect(
      await runAndListFates({
        nodes: [createNode("a")],
        edges: [createEdge("a>a")],
        settings: { maxLoopbackIterations: 1 },
      }),
    ).toEqual({ a: "completed x2" });
  });

  test("over a gate asks anew each time, under another key", async () => {
    const scene = createWorkflowScene({
      definitions: [
        createWorkflow("w", {
          nodes: [createNode("start"), createNode("gate", "core.approvalGate"), createNode("revise")],
          edges: [
            createEdge("start>gate", { triggerRule: "any_success" }),
            createEdge("gate>revise", { triggerRule: "any_failed" }),
            createEdge("revise>gate", { triggerRule: "any_success" }),
          ],
          settings: { maxLoopbackIterations: 2 },
        }),
      ],
    });
    const runId = await scene.run("w");
    await scene.answer(runId, "gate", { action: "reject" });
    await scene.answer(runId, "gate", { action: "reject" });
    await scene.answer(runId, "gate", { action: "accept" });
    const keys = scene.payloads(runId, "interrupt.requested").map(({ key }) => key);
    expect(new Set(keys).size).toBe(3);
    expect(await scene.status(runId)).toBe("completed");
  });
});

describe("a node that no loop leads to", () => {
  const again = { condition: { type: "equals", left: "go", right: true } };

  /** A join that one edge is enough for, and a loop of `a` and `b` that is left the first time. */
  const createSmall = (...edges: readonly ReturnType<typeof createEdge>[]): SmallWorkflow => ({
    nodes: [
      createNode("fast"),
      createNode("slow", "core.delay", { delayMs: 100 }),
      createNode("join"),
      createNode("a"),
      createNode("b"),
    ],
    edges: [
      createEdge("fast>join", { triggerRule: "any_success" }),
      createEdge("slow>join", { triggerRule: "any_success" }),
      createEdge("a>b"),
      createEdge("b>a", again),
      ...edges,
    ],
  });
  const all = { fast: "completed", join: "completed", a: "completed", b: "completed" };

  test.each([
    ["elsewhere", createSmall()],
    ["behind it", createSmall(createEdge("join>a"))],
  ])("is started by its first edge, and once, where the workflow has a loop %s", async (_place, small) => {
    expect(await runAndListFates(small, 50)).toEqual({ ...all, slow: "running" });
    expect(await runAndListFates(small, 200)).toEqual({ ...all, slow: "completed" });
  });
});

describe("a node behind a loop that is left", () => {
  const again = { condition: { type: "equals", left: "go", right: true } };
  const small: SmallWorkflow = {
    nodes: [
      createNode("a"),
      createNode("b"),
      createNode("fast"),
      createNode("slow", "core.delay", { delayMs: 100 }),
      createNode("join"),
    ],
    edges: [
      ...chain("a>b>fast"),
      createEdge("b>a", again),
      createEdge("b>slow"),
      createEdge("fast>join", { triggerRule: "any_success" }),
      createEdge("slow>join", { triggerRule: "any_success" }),
    ],
  };
  const all = { a: "completed", b: "completed", fast: "completed", join: "completed" };

  test("is started by the first edge that is enough, and once", async () => {
    expect(await runAndListFates(small, 50)).toEqual({ ...all, slow: "running" });
    expect(await runAndListFates(small, 200)).toEqual({ ...all, slow: "completed" });
  });

  test("is started once in each round of a loop that leads over it", async () => {
    const edges = [...(small.edges ?? []), createEdge("join>a")];
    const settings = { maxLoopbackIterations: 2 };
    expect(await runAndListFates({ ...small, edges, settings }, 1_000)).toMatchObject({
      a: "completed x3",
      join: "completed x3",
    });
  });
});

describe("a loop with a node on its way that is skipped", () => {
  test("goes on each time where that node is skipped again", async () => {
    const small: SmallWorkflow = {
      nodes: ["a", "b", "c", "d"].map((id) => createNode(id)),
      edges: [
        createEdge("a>b", no),
        createEdge("b>c"),
        createEdge("c>d", { triggerRule: "all_complete" }),
        createEdge("d>a"),
      ],
      settings: { maxLoopbackIterations: 2 },
    };
    expect(await runAndListFates(small)).toMatchObject({ a: "completed x3", d: "completed x3" });
  });
});
