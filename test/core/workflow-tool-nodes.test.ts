/** Owns: what the nodes that call a tool over MCP, or another agent over A2A, record before the call and whom they call. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { NodeStep, NodeType } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { a2aInvoke, toolOrPrompt } from "../../src/agents/coordination/workflow/nodes/tool-nodes.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { createVariable, createView, type Scene } from "./workflow-node-view-scene.ts";
import { createAsking, RUN } from "./workflow-view-scene.ts";

const OPEN_CALL = createEventId(RUN, 4);
const MCP_URL = "http://127.0.0.1:1/mcp";
const A2A_URL = "http://127.0.0.1:1/a2a";

function fail(message: string): NodeStep {
  return { kind: "fail", error: { code: "not_configured", message } };
}

function createCalled(payload: Values): object {
  const called = { agentId: "node:a", callId: "a:1", principal: "alice", ...payload };
  return { kind: "record", drafts: [{ nodeId: "a", type: "agent.toolCalled", payload: called }] };
}

/** The call is on record, and is to be made. */
function actOn(type: NodeType, scene: Scene): NodeStep {
  const recorded = type.step(createView(scene));
  if (recorded.kind !== "record") throw new Error(`the node does not call: ${recorded.kind}`);
  const { inputs } = recorded.drafts[0]!.payload as { readonly inputs: unknown };
  return actAgain(type, scene, inputs);
}

function actAgain(type: NodeType, scene: Scene, inputs: unknown): NodeStep {
  return type.step(
    createView({ ...scene, nodeRun: { openCall: { eventId: OPEN_CALL, sequence: 4, inputs } } }),
  );
}

function callTool(more: Values): object {
  const effect = {
    kind: "call_tool",
    id: "a:1:call",
    nodeId: "a",
    tool: "search",
    args: {},
    url: MCP_URL,
    ...more,
  };
  return { kind: "act", effect };
}

function sendMessage(more: Values): object {
  const names = { kind: "send_message", id: "a:1:call", nodeId: "a" };
  return {
    kind: "act",
    effect: { ...names, skill: "default", message: "default", url: A2A_URL, ...more },
  };
}

function createInputs(ports: Values): Values {
  const inputs = Object.entries(ports).map(([port, value]) => [port, { type: "static", value }] as const);
  return { inputs: Object.fromEntries(inputs) };
}

describe("a node that calls a tool", () => {
  const CONFIG = { mcp: { tool: "search", url: MCP_URL } };

  it("records the call before it is made", () => {
    expect(toolOrPrompt.step(createView({ config: CONFIG }))).toStrictEqual(
      createCalled({ toolName: "search", inputs: {}, transport: "mcp" }),
    );
  });

  it("records what it calls with, and its hash where the host makes one", () => {
    const mcp = { ...CONFIG.mcp, arguments: { b: 1, a: 2 } };
    const settings = { sha256: (text: string) => `hash of ${text}` };
    expect(toolOrPrompt.step(createView({ config: { mcp }, settings }))).toStrictEqual(
      createCalled({
        toolName: "search",
        inputs: { b: 1, a: 2 },
        transport: "mcp",
        argsHash: 'hash of {"a":2,"b":1}',
      }),
    );
  });

  it.each<[title: string, scene: Scene, effect: Values]>([
    ["its configuration names", { config: CONFIG }, {}],
    [
      "the server's default names",
      { config: { mcp: { tool: "search" } }, settings: { mcpUrl: "http://127.0.0.1:2" } },
      { url: "http://127.0.0.1:2" },
    ],
    [
      "its configuration names, whatever the default and the caller name",
      { config: { ...CONFIG, peerUrl: "http://peer" }, settings: { mcpUrl: "http://127.0.0.1:2" } },
      {},
    ],
    [
      "the run's caller names as a host",
      { config: { mcp: { tool: "search" }, peerUrl: "http://peer//" } },
      { url: "http://peer/v1/mcp", peerUrl: "http://peer//" },
    ],
  ])("calls the server that %s", (_title, scene, effect) => {
    expect(actOn(toolOrPrompt, scene)).toStrictEqual(callTool(effect));
  });

  it("calls with its ports laid over the arguments of its configuration, without the caller's host", () => {
    const mcp = { ...CONFIG.mcp, arguments: { a: 1, b: 2 } };
    const members = createInputs({ b: 3, c: 4, peerUrl: "http://peer" });
    expect(actOn(toolOrPrompt, { config: { mcp }, members })).toStrictEqual(
      callTool({ args: { a: 1, b: 3, c: 4 } }),
    );
    const odd = { mcp: { ...CONFIG.mcp, arguments: [1] } };
    expect(actOn(toolOrPrompt, { config: odd })).toStrictEqual(callTool({}));
  });

  it.each<[config: Values, message: string]>([
    [{ mcp: {} }, "the node names no tool (config.mcp.tool)"],
    [{ mcp: { tool: "" } }, "the node names no tool (config.mcp.tool)"],
    [{ mcp: { tool: 3 } }, "the node names no tool (config.mcp.tool)"],
    [
      { mcp: { tool: "search", url: 3 } },
      "no MCP server is configured (config.mcp.url, the server's default, or peerUrl)",
    ],
  ])("fails where it is not configured: %j", (config, message) => {
    expect(toolOrPrompt.step(createView({ config }))).toStrictEqual(fail(message));
  });

  it("is a turn of a model where it names no tool", () => {
    expect(toolOrPrompt.step(createView({ config: { prompt: "p" } }))).toMatchObject({
      kind: "act",
      effect: { kind: "ask_model" },
    });
  });
});

describe("a node that calls another agent", () => {
  it("records the call before it is made, as one of its skill", () => {
    const config = { url: A2A_URL, skill: "translate", message: "hello" };
    expect(a2aInvoke.step(createView({ config }))).toStrictEqual(
      createCalled({ toolName: "a2a:translate", inputs: { message: "hello" }, transport: "http" }),
    );
  });

  it.each<[message: string, scene: Scene]>([
    ["port", { config: { message: "configured" }, members: createInputs({ message: "port" }) }],
    ["configured", { config: { message: "configured" } }],
    ['{"a":1}', { config: { message: { a: 1 } } }],
    ["variable", { variables: [createVariable("text", { defaultValue: "variable" })] }],
    ["default", {}],
  ])("sends %s", (message, { config, ...scene }) => {
    const step = actOn(a2aInvoke, { ...scene, config: { url: A2A_URL, ...config } });
    expect(step).toStrictEqual(sendMessage({ message }));
  });

  it("sends the name of the skill where there is nothing else to send", () => {
    const step = actOn(a2aInvoke, { config: { url: A2A_URL, skill: "translate" } });
    expect(step).toStrictEqual(sendMessage({ skill: "translate", message: "translate" }));
    expect(actOn(a2aInvoke, { config: { url: A2A_URL, skill: 3 } })).toStrictEqual(sendMessage({}));
  });

  it.each<[url: string, scene: Scene, more: Values]>([
    ["http://127.0.0.1:2", { settings: { a2aUrl: "http://127.0.0.1:2" } }, {}],
    ["http://peer", { config: { peerUrl: "http://peer/" } }, { peerUrl: "http://peer/" }],
  ])("sends it to %s", (url, scene, more) => {
    expect(actOn(a2aInvoke, scene)).toStrictEqual(sendMessage({ url, ...more }));
  });

  it("fails where it is not configured", () => {
    const message = "no A2A agent is configured (config.url, the server's default, or peerUrl)";
    expect(a2aInvoke.step(createView())).toStrictEqual(fail(message));
  });
});

describe("a call that is made again", () => {
  const TOOL = { mcp: { tool: "search", url: MCP_URL, arguments: { a: 1 } } };
  const AGENT = { url: A2A_URL, message: "now" };

  it("has the arguments of the log, whatever the node has by now", () => {
    const args = { a: 0 };
    expect(actAgain(toolOrPrompt, { config: TOOL }, args)).toStrictEqual(callTool({ args }));
    const message = "then";
    expect(actAgain(a2aInvoke, { config: AGENT }, { message })).toStrictEqual(sendMessage({ message }));
  });

  it("has those of the node where the log has none", () => {
    const act = (type: NodeType, config: Values) => actAgain(type, { config }, undefined);
    expect(act(toolOrPrompt, TOOL)).toStrictEqual(callTool({ args: { a: 1 } }));
    expect(act(a2aInvoke, AGENT)).toStrictEqual(sendMessage({ message: "now" }));
  });
});

describe("a call that waited for people", () => {
  const { interrupt } = createAsking("a");
  const about = { asked: { data: {} }, eventId: OPEN_CALL, kind: "clarification" } as const;

  function answer(resumeValue: unknown): NodeStep {
    const answers = [
      { ...about, interruptId: "a~0", resumeValue: { q0: "no" } },
      { ...about, interruptId: "a~1", resumeValue: { q1: "perhaps" } },
      { ...about, interruptId: "a~2", resumeValue },
    ];
    return a2aInvoke.step(createView({ nodeRun: { answers } }));
  }

  it("waits for them, and is not made again", () => {
    if (!interrupt) throw new Error("nothing was asked");
    const nodeRun = { interrupt, openCall: { eventId: OPEN_CALL, sequence: 4, inputs: {} } };
    expect(a2aInvoke.step(createView({ config: { url: A2A_URL }, nodeRun }))).toStrictEqual({ kind: "wait" });
  });

  it("ends with their newest answer", () => {
    expect(answer({ q1: "yes" })).toStrictEqual({ kind: "complete", outputs: { answers: { q1: "yes" } } });
    expect(answer("yes")).toStrictEqual({ kind: "complete", outputs: { answers: {} } });
  });
});
