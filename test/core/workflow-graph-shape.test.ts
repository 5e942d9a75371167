/** Owns: the shape of the graph that a definition is turned into: its edges, its limits, and the loop around a supervisor. */
import { describe, expect, it } from "vitest";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import type { WorkflowDefinition } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import {
  AGENT,
  DISPATCH,
  SUPERVISOR,
  compileWorkflow,
} from "../../src/agents/coordination/workflow/state/graph.ts";
import type { NodeGraph } from "../../src/agents/coordination/workflow/state/node-graph.ts";
import {
  chain,
  createEdge,
  createNode,
  createWorkflow,
  type SmallWorkflow,
} from "../support/workflow-definitions.ts";

const DEFINITION = "0".repeat(64);

function compile(definition: WorkflowDefinition): NodeGraph {
  const compiled = compileWorkflow(definition, DEFINITION);
  if (!compiled.ok) throw new Error(compiled.problems.join());
  return compiled.graph;
}

const compileSmall = (small: SmallWorkflow): NodeGraph => compile(createWorkflow("w", small));

function listProblems(definition: WorkflowDefinition): readonly string[] {
  const compiled = compileWorkflow(definition, DEFINITION);
  return compiled.ok ? [] : compiled.problems;
}

const createNodes = (ids: string) => ids.split(" ").map((id) => createNode(id));

/** Returns the edges of a graph by the nodes that they leave. */
function listEdges(graph: NodeGraph): string[] {
  return [...graph.nodes.values()].flatMap(({ outgoing }) => outgoing.map(({ id }) => id));
}

function listClosing(small: SmallWorkflow): string[] {
  return [...compileSmall(small).nodes.values()].flatMap(({ outgoing }) =>
    outgoing.filter(({ closesLoop }) => closesLoop).map(({ id }) => id),
  );
}

/** Returns the nodes that a loop may start again. */
function listLooped({ nodes }: NodeGraph): string[] {
  return [...nodes.values()].filter(({ isLooped }) => isLooped).map(({ node }) => node.id);
}

describe("the graph of a definition", () => {
  it("says which definition it comes from, and has its nodes in their order and its variables", () => {
    const definition = createWorkflow("w", { nodes: createNodes("b a"), variables: { color: "blue" } });
    const graph = compile(definition);
    expect(graph.workflowId).toBe("w");
    expect(graph.definition).toBe(DEFINITION);
    expect([...graph.nodes.keys()]).toEqual(["b", "a"]);
    expect(graph.nodes.get("a")?.node).toBe(definition.nodes[1]);
    expect(graph.variables).toEqual([{ name: "color", type: "string", defaultValue: "blue" }]);
  });

  it("gives each node the edges that lead to it and those that leave it", () => {
    const { nodes } = compileSmall({
      nodes: createNodes("a b c"),
      edges: [createEdge("a>b"), createEdge("a>c"), createEdge("b>c")],
    });
    const idsOf = (id: string) => {
      const { incoming = [], outgoing = [] } = nodes.get(id) ?? {};
      return { incoming: incoming.map((edge) => edge.id), outgoing: outgoing.map((edge) => edge.id) };
    };
    expect(idsOf("a")).toEqual({ incoming: [], outgoing: ["a>b", "a>c"] });
    expect(idsOf("b")).toEqual({ incoming: ["a>b"], outgoing: ["b>c"] });
    expect(idsOf("c")).toEqual({ incoming: ["a>c", "b>c"], outgoing: [] });
  });

  it("has no edges at a node that stands alone", () => {
    const alone = compileSmall({ nodes: createNodes("a") }).nodes.get("a");
    expect(alone?.incoming).toEqual([]);
    expect(alone?.outgoing).toEqual([]);
  });

  it("keeps the rule of an edge, and waits for success where the edge names none", () => {
    const condition = { type: "equals", left: "x", right: 1 } as const;
    const { nodes } = compileSmall({
      nodes: createNodes("a b c"),
      edges: [createEdge("a>b", { triggerRule: "any_failed" }), createEdge("a>c", { condition })],
    });
    expect(nodes.get("a")?.outgoing).toEqual([
      {
        id: "a>b",
        sourceNodeId: "a",
        targetNodeId: "b",
        triggerRule: "any_failed",
        rule: "any_failed",
        closesLoop: false,
      },
      {
        id: "a>c",
        sourceNodeId: "a",
        targetNodeId: "c",
        condition,
        rule: "all_success",
        closesLoop: false,
      },
    ]);
  });
});

describe("the limits of a graph", () => {
  it("are those of the host where the definition sets none", () => {
    const graph = compileSmall({ nodes: createNodes("a") });
    expect(graph).not.toHaveProperty("timeoutMs");
    expect(graph.maxRetries).toBe(0);
    expect(graph.loopbackMax).toBe(WORKFLOW_BOUNDS.loopbackIterations);
  });

  it("are those that the definition sets", () => {
    const settings = { timeout: 500, maxRetries: 3, maxLoopbackIterations: 7 };
    expect(compileSmall({ nodes: createNodes("a"), settings })).toMatchObject({
      timeoutMs: 500,
      maxRetries: 3,
      loopbackMax: 7,
    });
  });

  it("include a timeout of zero, which means none", () => {
    expect(compileSmall({ nodes: createNodes("a"), settings: { timeout: 0 } }).timeoutMs).toBe(0);
  });
});

describe("a loop", () => {
  it.each<[title: string, small: SmallWorkflow, looped: string[]]>([
    ["is not there without edges", { nodes: createNodes("a b") }, []],
    ["is not there where all edges lead on", { nodes: createNodes("a b c"), edges: chain("a>b>c") }, []],
    ["is there where an edge leads back", { nodes: createNodes("a b"), edges: chain("a>b>a") }, ["a", "b"]],
    ["is there where an edge leads to its own node", { nodes: createNodes("a"), edges: chain("a>a") }, ["a"]],
    [
      "starts again what is in it and behind it, and nothing before or beside it",
      {
        nodes: createNodes("before beside a b behind last"),
        edges: [...chain("before>a>b>a"), ...chain("b>behind>last"), ...chain("beside>behind")],
      },
      ["a", "b", "behind", "last"],
    ],
  ])("%s", (_title, small, looped) => {
    expect(listLooped(compileSmall(small))).toEqual(looped);
  });

  it.each<[title: string, nodes: string, edges: string, closing: string[]]>([
    ["by the second edge of a node", "a b c", "a>b b>c b>a", ["b>a"]],
    ["twice, by two edges to the same node", "a b c", "a>b b>a a>c c>a", ["b>a", "c>a"]],
    ["where it is entered, whose edge to itself is no way in", "c b a", "a>a a>b b>c c>b", ["c>b", "a>a"]],
    ["nowhere where two ways meet again", "a b c", "a>b b>c a>c", []],
    ["from the first of its nodes where nothing leads in", "b a", "a>b b>a", ["a>b"]],
    ["in a part that no other part leads to", "x a b", "a>b b>a", ["b>a"]],
  ])("is closed %s", (_title, nodes, edges, closing) => {
    expect(
      listClosing({
        nodes: createNodes(nodes),
        edges: edges.split(" ").map((arrow) => createEdge(arrow)),
      }),
    ).toEqual(closing);
  });
});

describe("a supervisor and its dispatch", () => {
  const nodes = [
    createNode("d", "core.dispatch"),
    createNode("a"),
    createNode("s", "core.orchestrator.supervisor"),
  ];

  it("are a loop where no edge says so", () => {
    const graph = compileSmall({ nodes: nodes.toReversed() });
    expect(graph.nodes.get("s")?.outgoing).toEqual([
      { id: "@s-d", sourceNodeId: "s", targetNodeId: "d", rule: "all_success", closesLoop: false },
    ]);
    expect(graph.nodes.get("d")?.outgoing).toEqual([
      { id: "@d-s", sourceNodeId: "d", targetNodeId: "s", rule: "all_success", closesLoop: true },
    ]);
    expect(graph.nodes.get("a")?.outgoing).toEqual([]);
    expect(listLooped(graph)).toEqual(["s", "d"]);
  });

  it.each<[title: string, edges: string, expected: string[]]>([
    ["both ways", "s>d d>s", ["d>s", "s>d"]],
    ["the way out only", "s>d", ["@d-s", "s>d"]],
    ["the way back only", "d>s", ["d>s", "@s-d"]],
    ["one way, and others elsewhere", "a>s s>d a>d", ["@d-s", "a>s", "a>d", "s>d"]],
    ["only ways over another node", "s>a a>d d>a a>s", ["d>a", "@d-s", "a>d", "a>s", "s>a", "@s-d"]],
  ])("get the edges that are missing where the definition has %s", (_title, edges, expected) => {
    const small = { nodes, edges: edges.split(" ").map((arrow) => createEdge(arrow)) };
    expect(listEdges(compileSmall(small))).toEqual(expected);
  });

  it.each<[title: string, edges: string, expected: string[]]>([
    ["is the one that an edge leads to", "s>e t>d", ["@e-s", "s>e", "t>d"]],
    ["is not that of another supervisor", "t>d", ["@e-s", "@s-e", "t>d"]],
    ["is the first, where no edge says more", "", ["@d-s", "@s-d"]],
    ["is none where all are of other supervisors", "t>d t>e", ["t>d", "t>e"]],
    [
      "is the one to which it leads over other nodes",
      "s>a a>e t>b b>d",
      ["@e-s", "@s-e", "a>e", "b>d", "s>a", "t>b"],
    ],
  ])("are two of several: the dispatch of the first supervisor %s", (_title, edges, expected) => {
    const several = [
      createNode("s", "core.orchestrator.supervisor"),
      createNode("t", "core.orchestrator.supervisor"),
      createNode("d", "core.dispatch"),
      createNode("e", "core.dispatch"),
      ...createNodes("a b"),
    ];
    const drawn = edges === "" ? [] : edges.split(" ").map((arrow) => createEdge(arrow));
    expect(listEdges(compileSmall({ nodes: several, edges: drawn })).toSorted()).toEqual(expected);
  });

  it.each([
    ["supervisor", [createNode("a"), createNode("d", "core.dispatch")]],
    ["dispatch", [createNode("a"), createNode("s", "core.orchestrator.supervisor")]],
    ["supervisor and no dispatch", createNodes("a b")],
  ])("are no loop where there is no %s", (_title, someNodes) => {
    const graph = compileSmall({ nodes: someNodes });
    expect(listEdges(graph)).toEqual([]);
    expect(listLooped(graph)).toEqual([]);
  });

  it("leave the definition as its author wrote it", () => {
    const definition = createWorkflow("w", { nodes });
    compile(definition);
    expect(definition.edges).toEqual([]);
  });
});

describe("the types of nodes that the host itself knows", () => {
  it("have the names of the protocol, and one of the host", () => {
    expect([SUPERVISOR, DISPATCH, AGENT]).toEqual([
      "core.orchestrator.supervisor",
      "core.dispatch",
      "openclaw.agent",
    ]);
  });
});

describe("a definition with problems", () => {
  it("is not compiled", () => {
    const compiled = compileWorkflow(
      createWorkflow("w", { nodes: createNodes("a"), edges: [createEdge("a>x")] }),
      DEFINITION,
    );
    expect(compiled).toEqual({
      ok: false,
      problems: ["edge a>x names the node x, which is not there"],
    });
  });

  it("is told of what is there twice or three times, each once", () => {
    const color = { name: "color", type: "string" } as const;
    const twice = createWorkflow("w", {
      nodes: createNodes("a b a c c c"),
      edges: [createEdge("a>b"), createEdge("b>c"), createEdge("b>c")],
    });
    const definition = { ...twice, variables: [color, { ...color, name: "size" }, color] };
    expect(listProblems(definition)).toEqual([
      "node a is there more than once",
      "node c is there more than once",
      "edge b>c is there more than once",
      "variable color is there more than once",
    ]);
  });

  it("is told which node an edge does not find, and where both are missing of both", () => {
    const small = { nodes: createNodes("a"), edges: [createEdge("x>a"), createEdge("y>z")] };
    expect(listProblems(createWorkflow("w", small))).toEqual([
      "edge x>a names the node x, which is not there",
      "edge y>z names the node y, which is not there",
      "edge y>z names the node z, which is not there",
    ]);
  });

  it("is told which condition cannot be evaluated", () => {
    const matchBy = (right: unknown) => ({ condition: { type: "regex", left: "x", right } });
    const edges = [
      createEdge("a>b", matchBy("(")),
      createEdge("a>c", matchBy("^b$")),
      createEdge("b>c"),
      createEdge("c>a", matchBy(7)),
    ];
    expect(listProblems(createWorkflow("w", { nodes: createNodes("a b c"), edges }))).toEqual([
      "the condition of edge a>b: its pattern is none that is matched in short time",
      "the condition of edge c>a: its pattern is no short text",
    ]);
  });

  it("is told which input comes from a node that is not there, and from nothing else", () => {
    const inputs = {
      constant: { type: "static", value: 1 },
      variable: { type: "variable", variableName: "color" },
      computed: { type: "expression", expression: "$.color" },
      before: { type: "connection", nodeId: "a", outputKey: "out" },
      nowhere: { type: "connection", nodeId: "x", outputKey: "out" },
    };
    const definition = createWorkflow("w", {
      nodes: [createNode("a"), createNode("b", "core.identity", {}, { inputs })],
    });
    expect(listProblems(definition)).toEqual([
      "input nowhere of node b names the node x, which is not there",
    ]);
  });
});
