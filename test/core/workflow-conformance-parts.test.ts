/** Owns: what of a workflow only the play for the protocol's conformance suite can run. */
import { describe, expect, it } from "vitest";
import type { WorkflowNode } from "../../src/agents/coordination/contracts/workflows/workflow-definition.ts";
import {
  explainNotPlayed,
  findPlayedPart,
  hasSupervisorModel,
  needsPlay,
  NOT_PLAYED,
} from "../../src/agents/coordination/workflow/node-contract/conformance-parts.ts";
import { SUPERVISOR } from "../../src/agents/coordination/workflow/state/graph.ts";
import type { NodeGraph } from "../../src/agents/coordination/workflow/state/node-graph.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { createView } from "./workflow-node-view-scene.ts";
import { createGraph } from "./workflow-view-scene.ts";

function createNode(config: Values = {}, typeId = "core.noop"): WorkflowNode {
  return { ...createView().node.node, typeId, config: { ...config } };
}

describe("the part of a node that only a host under test plays", () => {
  it.each<[part: string, node: WorkflowNode]>([
    ["typeId core.conformance.counter", createNode({}, "core.conformance.counter")],
    ["typeId conformance.counter", createNode({}, "conformance.counter")],
    ["config.provider mock", createNode({ provider: "mock" }, "core.ai.structuredOutput")],
    ["config.provider mock", createNode({ provider: "mock" }, "core.ai.callPrompt")],
    ["config.mockDecisions", createNode({ prompt: "go on", mockDecisions: [] })],
    ["config.verifier.mockVerdicts", createNode({ verifier: { agentId: "v", mockVerdicts: [] } })],
    ["config.mockDecisions", createNode({ mockDecisions: [], verifier: { mockVerdicts: [] } })],
  ])("is %s", (part, node) => {
    // It is found once, and remembered.
    expect([findPlayedPart(node), findPlayedPart(node)]).toEqual([part, part]);
  });

  it.each<[title: string, node: WorkflowNode]>([
    ["an ordinary node", createNode({ prompt: "go on" })],
    ["a type that has the suite's name within its own", createNode({}, "acme.core.conformance.counter")],
    ["a type that only begins like the suite's", createNode({}, "core.conformances")],
    ["a provider of that name where there is no model", createNode({ provider: "mock" })],
    ["another provider", createNode({ provider: "openai" }, "core.ai.callPrompt")],
    ["a key that begins like a script's", createNode({ mockup: "a picture", Xmock: 1, hasmockX: 1 })],
    ["a script that is not there", createNode({ mockDecisions: undefined })],
    ["a verifier without a script", createNode({ verifier: { agentId: "v", mockery: 1 } })],
    ["a verifier that is none", createNode({ verifier: "mockVerdicts" })],
  ])("is not there: %s", (_title, node) => {
    expect([findPlayedPart(node), findPlayedPart(node)]).toEqual([undefined, undefined]);
  });

  it("is named where it is refused, with what to do", () => {
    expect(explainNotPlayed(createNode(), "config.mockDecisions")).toBe(
      "node a has config.mockDecisions, which only a host that is tested plays: serve it with --test-seams, or take it out",
    );
  });
});

describe("the error of what is refused without the play", () => {
  it("has the protocol's code for what the host is not able to do", () => {
    expect(NOT_PLAYED).toBe("capability_required");
  });
});

describe("a supervisor", () => {
  it.each(["model", "prompt", "systemPrompt"])("asks a model where its %s is configured", (key) => {
    expect(hasSupervisorModel(createNode({ [key]: "x" }))).toBe(true);
  });

  it("asks none otherwise", () => {
    expect(hasSupervisorModel(createNode({ agentId: "boss", prompt: undefined }))).toBe(false);
  });
});

describe("a recorded run", () => {
  function createGraphOf(...nodes: readonly WorkflowNode[]): NodeGraph {
    const graph = createGraph();
    const [graphNode] = graph.nodes.values();
    if (!graphNode) throw new Error("the graph has no node");
    const named = nodes.map((node, index) => [`n${index}`, { ...graphNode, node }] as const);
    return { ...graph, nodes: new Map(named) };
  }

  it.each<[needs: boolean, title: string, nodes: readonly WorkflowNode[]]>([
    [false, "of ordinary nodes", [createNode(), createNode({ prompt: "x" }, SUPERVISOR)]],
    [true, "with a script in one of its nodes", [createNode(), createNode({ mockDecisions: [] })]],
    [true, "with a supervisor that has no model", [createNode(), createNode({}, SUPERVISOR)]],
    [false, "of no node at all", []],
  ])("needs the play: %s, %s", (needs, _title, nodes) => {
    expect(needsPlay(createGraphOf(...nodes))).toBe(needs);
  });
});
