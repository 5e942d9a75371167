import { describe, expect, test } from "vitest";
import { compileWorkflow } from "../../src/agents/coordination/workflow/state/graph.ts";
import { readWorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import {
  chain,
  createEdge,
  createNode,
  createWorkflow,
  type SmallWorkflow,
} from "../support/workflow-definitions.ts";
import { ALICE, codeOf, createWorkflowScene } from "../support/workflow-scene.ts";

function problemsOf(small: SmallWorkflow): readonly string[] {
  const compiled = compileWorkflow(createWorkflow("w", small), "0".repeat(64));
  return compiled.ok ? [] : compiled.problems;
}

function listClosing(small: SmallWorkflow): string[] {
  const compiled = compileWorkflow(createWorkflow("w", small), "0".repeat(64));
  if (!compiled.ok) throw new Error(compiled.problems.join());
  return [...compiled.graph.nodes.values()].flatMap(({ outgoing }) =>
    outgoing.filter(({ closesLoop }) => closesLoop).map(({ id }) => id),
  );
}

describe("a definition that cannot be run", () => {
  test("names every node, edge and variable that is there twice", () => {
    const twice = { id: "a>b", sourceNodeId: "a", targetNodeId: "b" };
    expect(
      problemsOf({ nodes: [createNode("a"), createNode("a"), createNode("b")], edges: [twice, twice] }),
    ).toEqual(["node a is there more than once", "edge a>b is there more than once"]);
  });

  test("names what its edges and inputs lead to and what is not there", () => {
    const b = createNode(
      "b",
      "core.identity",
      {},
      { inputs: { in: { type: "connection", nodeId: "z", outputKey: "o" } } },
    );
    expect(
      problemsOf({ nodes: [createNode("a"), b], edges: [createEdge("a>x"), createEdge("y>b")] }),
    ).toEqual([
      "edge a>x names the node x, which is not there",
      "edge y>b names the node y, which is not there",
      "input in of node b names the node z, which is not there",
    ]);
  });

  test("has a condition whose pattern no engine of linear time takes", () => {
    const on = (right: unknown) => ({ condition: { type: "regex", left: "x", right } });
    const nodes = [createNode("a"), createNode("b")];
    expect(problemsOf({ nodes, edges: [createEdge("a>b", on("(a)\\1"))] })).toHaveLength(1);
    expect(problemsOf({ nodes, edges: [createEdge("a>b", on("a".repeat(300)))] })).toHaveLength(1);
    expect(problemsOf({ nodes, edges: [createEdge("a>b", on("^a+$"))] })).toEqual([]);
  });

  test("is refused when it is registered, and so is a run of a type that this host does not have", async () => {
    const scene = createWorkflowScene({
      definitions: [createWorkflow("odd", { nodes: [createNode("a", "vendor.unknown")] })],
    });
    const broken = { ...createWorkflow("w", { nodes: [createNode("a")] }), edges: [createEdge("a>b")] };
    expect(codeOf(await scene.host.register(ALICE, broken))).toBe("validation_error");
    expect(codeOf(await scene.host.register(ALICE, { id: "w" }))).toBe("validation_error");
    const created = await scene.host.create(ALICE, { workflowId: "odd", inputs: {}, transport: "rest" });
    expect(created).toMatchObject({
      code: "capability_required",
      details: { offendingTypeId: "vendor.unknown", nodeId: "a" },
    });
  });

  test("is too deep, too large, or has too many nodes", () => {
    const nodes = Array.from({ length: 1_001 }, (_, index) => createNode(`n${index}`));
    const raw = { id: "w", name: "w", version: "1", nodes };
    expect(readWorkflowDefinition(raw).ok).toBe(false);
    let deep: unknown = 1;
    for (let depth = 0; depth < 60; depth += 1) deep = { deep };
    expect(readWorkflowDefinition({ ...raw, nodes: [createNode("a", "core.noop", { deep })] }).ok).toBe(
      false,
    );
  });
});

describe("the edges that close loops", () => {
  test("lead back to a node on the way to their source", () => {
    expect(
      listClosing({
        nodes: ["a", "b", "c"].map((id) => createNode(id)),
        edges: [...chain("a>b>c"), createEdge("c>b")],
      }),
    ).toEqual(["c>b"]);
  });

  test("are found from where the workflow is entered, whatever the order of its nodes", () => {
    const edges = [createEdge("start>a"), createEdge("a>b"), createEdge("b>a")];
    expect(listClosing({ nodes: ["b", "a", "start"].map((id) => createNode(id)), edges })).toEqual(["b>a"]);
  });

  test("are from a node to itself too, and none in a graph without a cycle", () => {
    expect(listClosing({ nodes: [createNode("a")], edges: [createEdge("a>a")] })).toEqual(["a>a"]);
    const diamond = [createEdge("a>b"), createEdge("a>c"), createEdge("b>d"), createEdge("c>d")];
    expect(listClosing({ nodes: ["a", "b", "c", "d"].map((id) => createNode(id)), edges: diamond })).toEqual(
      [],
    );
  });

  test("are found in a chain of a thousand nodes without recursion", () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => `n${index}`);
    const edges = [...chain(ids.join(">")), createEdge("n999>n0")];
    expect(listClosing({ nodes: ids.map((id) => createNode(id)), edges })).toEqual(["n999>n0"]);
  });
});
