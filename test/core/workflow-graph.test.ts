import { describe, expect, test } from "vitest";
import { compileWorkflow } from "../../src/agents/coordination/workflow/state/graph.ts";
import { readWorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import { chain, edge, node, workflow, type Small } from "../support/workflow-definitions.ts";
import { ALICE, codeOf, workflowScene } from "../support/workflow-scene.ts";

function problemsOf(small: Small): readonly string[] {
  const compiled = compileWorkflow(workflow("w", small), "0".repeat(64));
  return compiled.ok ? [] : compiled.problems;
}

function closing(small: Small): string[] {
  const compiled = compileWorkflow(workflow("w", small), "0".repeat(64));
  if (!compiled.ok) throw new Error(compiled.problems.join());
  return [...compiled.graph.nodes.values()].flatMap(({ outgoing }) =>
    outgoing.filter(({ closesLoop }) => closesLoop).map(({ id }) => id),
  );
}

describe("a definition that cannot be run", () => {
  test("names every node, edge and variable that is there twice", () => {
    const twice = { id: "a>b", sourceNodeId: "a", targetNodeId: "b" };
    expect(problemsOf({ nodes: [node("a"), node("a"), node("b")], edges: [twice, twice] })).toEqual([
      "node a is there more than once",
      "edge a>b is there more than once",
    ]);
  });

  test("names what its edges and inputs lead to and what is not there", () => {
    const b = node(
      "b",
      "core.identity",
      {},
      { inputs: { in: { type: "connection", nodeId: "z", outputKey: "o" } } },
    );
    expect(problemsOf({ nodes: [node("a"), b], edges: [edge("a>x"), edge("y>b")] })).toEqual([
      "edge a>x names the node x, which is not there",
      "edge y>b names the node y, which is not there",
      "input in of node b names the node z, which is not there",
    ]);
  });

  test("has a condition whose pattern no engine of linear time takes", () => {
    const on = (right: unknown) => ({ condition: { type: "regex", left: "x", right } });
    const nodes = [node("a"), node("b")];
    expect(problemsOf({ nodes, edges: [edge("a>b", on("(a)\\1"))] })).toHaveLength(1);
    expect(problemsOf({ nodes, edges: [edge("a>b", on("a".repeat(300)))] })).toHaveLength(1);
    expect(problemsOf({ nodes, edges: [edge("a>b", on("^a+$"))] })).toEqual([]);
  });

  test("is refused when it is registered, and so is a run of a type that this host does not have", async () => {
    const scene = workflowScene({ definitions: [workflow("odd", { nodes: [node("a", "vendor.unknown")] })] });
    const broken = { ...workflow("w", { nodes: [node("a")] }), edges: [edge("a>b")] };
    expect(codeOf(await scene.host.register(ALICE, broken))).toBe("validation_error");
    expect(codeOf(await scene.host.register(ALICE, { id: "w" }))).toBe("validation_error");
    const created = await scene.host.create(ALICE, { workflowId: "odd", inputs: {}, transport: "rest" });
    expect(created).toMatchObject({
      code: "capability_required",
      details: { offendingTypeId: "vendor.unknown", nodeId: "a" },
    });
  });

  test("is too deep, too large, or has too many nodes", () => {
    const nodes = Array.from({ length: 1_001 }, (_, index) => node(`n${index}`));
    const raw = { id: "w", name: "w", version: "1", nodes };
    expect(readWorkflowDefinition(raw).ok).toBe(false);
    let deep: unknown = 1;
    for (let depth = 0; depth < 60; depth += 1) deep = { deep };
    expect(readWorkflowDefinition({ ...raw, nodes: [node("a", "core.noop", { deep })] }).ok).toBe(false);
  });
});

describe("the edges that close loops", () => {
  test("lead back to a node on the way to their source", () => {
    expect(
      closing({ nodes: ["a", "b", "c"].map((id) => node(id)), edges: [...chain("a>b>c"), edge("c>b")] }),
    ).toEqual(["c>b"]);
  });

  test("are found from where the workflow is entered, whatever the order of its nodes", () => {
    const edges = [edge("start>a"), edge("a>b"), edge("b>a")];
    expect(closing({ nodes: ["b", "a", "start"].map((id) => node(id)), edges })).toEqual(["b>a"]);
  });

  test("are from a node to itself too, and none in a graph without a cycle", () => {
    expect(closing({ nodes: [node("a")], edges: [edge("a>a")] })).toEqual(["a>a"]);
    const diamond = [edge("a>b"), edge("a>c"), edge("b>d"), edge("c>d")];
    expect(closing({ nodes: ["a", "b", "c", "d"].map((id) => node(id)), edges: diamond })).toEqual([]);
  });

  test("are found in a chain of a thousand nodes without recursion", () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => `n${index}`);
    const edges = [...chain(ids.join(">")), edge("n999>n0")];
    expect(closing({ nodes: ids.map((id) => node(id)), edges })).toEqual(["n999>n0"]);
  });
});
