/** Owns: which agent executes a node, what its task is, and what an invocation asks of the outside. */
import { describe, expect, it } from "vitest";
import {
  findNodeAgent,
  numberNextTurn,
  createAgentEffect,
  createPrepareEffect,
  readNodeTask,
} from "../../src/agents/coordination/workflow/nodes/agent-node.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { createEdge, createNode } from "../support/workflow-definitions.ts";
import { createInvocation, createTurn, MANIFEST, MEMBERS, STARTED } from "./workflow-agent-node-scene.ts";
import { createVariable, createView } from "./workflow-node-view-scene.ts";
import { createGraph, createNodeRun, withNodes } from "./workflow-view-scene.ts";

describe("the agent of a node", () => {
  const WRITER = { agentId: "acme.writer", manifest: MANIFEST };

  it("is the one that the node names", () => {
    expect(findNodeAgent(createView({ members: MEMBERS, started: STARTED }))).toStrictEqual(WRITER);
  });

  it("is the one of the configuration where the node names none", () => {
    expect(findNodeAgent(createView({ config: { agentId: "acme.writer" }, started: STARTED }))).toStrictEqual(
      WRITER,
    );
  });

  it("is the one that the node names, whatever the configuration names", () => {
    const config = { agentId: "acme.other" };
    expect(findNodeAgent(createView({ config, members: MEMBERS, started: STARTED }))).toStrictEqual(WRITER);
  });

  it.each<[title: string, config: Values, agents: Readonly<Record<string, string>>]>([
    ["nobody where none is named", {}, STARTED.agents],
    ["nobody where what is named is no text", { agentId: 7 }, { "7": MANIFEST }],
    ["nobody where the run does not know it", { agentId: "acme.other" }, STARTED.agents],
    ["nobody where the name is one that every object has", { agentId: "toString" }, STARTED.agents],
  ])("is %s", (_title, config, agents) => {
    expect(findNodeAgent(createView({ config, started: { agents } }))).toBeUndefined();
  });

  it("is nobody in a run that knows no agents", () => {
    expect(findNodeAgent(createView({ members: MEMBERS }))).toBeUndefined();
  });
});

describe("the task of an agent", () => {
  it("is what the ports of the node have, and nothing else", () => {
    const inputs = { topic: { type: "static", value: "bees" } };
    const view = createView({
      members: { inputs },
      config: { task: "write" },
      started: { inputs: { goal: "win" } },
    });
    expect(readNodeTask(view)).toStrictEqual({ topic: "bees" });
  });

  it.each<[config: Values, task: unknown]>([
    [{ task: "write", prompt: "read" }, "write"],
    [{ prompt: "read" }, "read"],
  ])("is the configured one where the node has no ports", (config, task) => {
    expect(readNodeTask(createView({ config, started: { inputs: { goal: "win" } } }))).toBe(task);
  });

  it.each<[title: string, outputs: Values, task: unknown]>([
    ["brought", { topic: "bees" }, { topic: "bees" }],
    ["did not bring", {}, "write"],
  ])("is what an edge to a port %s", (_title, outputs, task) => {
    const graph = createGraph({
      nodes: [createNode("b"), createNode("a", "core.noop", { task: "write" })],
      edges: [createEdge("b>a", { sourceOutput: "topic", targetInput: "topic" })],
    });
    const view = createView({
      run: withNodes(createNodeRun("b", "completed", { endedSequence: 0, outputs })),
      nodeRun: { enteredSequence: 1 },
    });
    const node = graph.nodes.get("a");
    expect(readNodeTask({ ...view, graph, node: node ?? view.node })).toStrictEqual(task);
  });

  it("is otherwise all that the run has, without what is sensitive", () => {
    const variables = [
      createVariable("key", { sensitive: true }),
      createVariable("tone", { sensitive: false, defaultValue: "dry" }),
    ];
    const view = createView({ variables, started: { inputs: { goal: "win", key: "secret" } } });
    expect(readNodeTask(view)).toStrictEqual({ goal: "win", tone: "dry" });
  });

  it("has no copy of a sensitive text in another variable then, also within a text or as a name", () => {
    const variables = [createVariable("key", { sensitive: true })];
    const inputs = { key: "secret-1", note: "use secret-1", all: { "secret-1": ["secret-1", 7] } };
    const view = createView({ variables, started: { inputs } });
    expect(readNodeTask(view)).toStrictEqual({
      note: "use [masked]",
      all: { "[masked]": ["[masked]", 7] },
    });
  });

  it("has a sensitive variable where a port names it", () => {
    const inputs = { key: { type: "variable", variableName: "key" } };
    const variables = [createVariable("key", { sensitive: true })];
    const view = createView({ members: { inputs }, variables, started: { inputs: { key: "secret" } } });
    expect(readNodeTask(view)).toStrictEqual({ key: "secret" });
  });
});

describe("the preparation of an agent", () => {
  const EFFECT = {
    kind: "prepare_agent",
    id: "a:1:prepare",
    nodeId: "a",
    agentId: "acme.writer",
    manifest: MANIFEST,
    invocationId: "a:1",
    source: "workflow-node",
    task: "write",
  };

  it("is asked for with the agent as it was installed when the run began", () => {
    const view = createView({ config: { task: "write" }, members: MEMBERS, started: STARTED });
    expect(createPrepareEffect(view)).toStrictEqual(EFFECT);
  });

  it("is another one with each execution of the node", () => {
    const view = createView({ members: MEMBERS, started: STARTED, nodeRun: { executions: 3 } });
    expect(createPrepareEffect(view)).toMatchObject({ id: "a:3:prepare", invocationId: "a:3" });
  });

  it("tells how the run of an agent came to be", () => {
    const agent = { agentId: "acme.writer", source: "run-api" } as const;
    const view = createView({ members: MEMBERS, started: { ...STARTED, agent } });
    expect(createPrepareEffect(view)).toHaveProperty("source", "run-api");
  });

  it("names the node in place of an agent that the run does not know", () => {
    expect(createPrepareEffect(createView({ config: { task: "write" } }))).toStrictEqual({
      ...EFFECT,
      agentId: "a",
      manifest: "",
    });
  });

  it.each<[title: string, memoryRef: unknown, expected: Values]>([
    ["names the memory that the node does", "notes", { memoryRef: "notes" }],
    ["names no memory where its name is empty", "", {}],
    ["names no memory where its name is no text", 7, {}],
  ])("%s", (_title, memoryRef, expected) => {
    const members = { agent: { agentId: "acme.writer", memoryRef } };
    const view = createView({ config: { task: "write" }, members, started: STARTED });
    expect(createPrepareEffect(view)).toStrictEqual({ ...EFFECT, ...expected });
  });
});

describe("what an invocation asks for", () => {
  const ASK = { kind: "ask_agent", id: "turn:1", turn: 1, messages: [], callsLeft: 2 } as const;

  it("is asked for by the node in the name of its agent, apart from other executions", () => {
    const view = createView({ nodeRun: { executions: 2 } });
    expect(createAgentEffect(view, createInvocation(), ASK)).toStrictEqual({
      ...ASK,
      id: "a:2:turn:1",
      nodeId: "a",
      agentId: "acme.writer",
      manifest: MANIFEST,
    });
  });

  it("names no manifest where the log has none", () => {
    const { manifest: _, ...started } = createInvocation().started;
    const effect = createAgentEffect(createView(), createInvocation({ started }), ASK);
    expect(effect).toHaveProperty("manifest", "");
  });

  it("is the turn behind those that were taken", () => {
    expect(numberNextTurn(createInvocation())).toStrictEqual({ id: "turn:1", turn: 1 });
    const turns = [createTurn(), createTurn({ turn: 2 })];
    expect(numberNextTurn(createInvocation({ turns }))).toStrictEqual({ id: "turn:3", turn: 3 });
  });
});
