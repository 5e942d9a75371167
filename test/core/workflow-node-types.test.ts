/** Owns: which node types there are, by their names, and which of them an agent of a manifest may execute. */
import { describe, expect, it } from "vitest";
import type { NodeStep, NodeType } from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { agentNode } from "../../src/agents/coordination/workflow/nodes/agent-invocation.ts";
import { delay, fail } from "../../src/agents/coordination/workflow/nodes/basic-nodes.ts";
import { dispatch } from "../../src/agents/coordination/workflow/nodes/dispatch.ts";
import {
  approvalGate,
  clarificationGate,
  interruptGate,
} from "../../src/agents/coordination/workflow/nodes/gate-nodes.ts";
import { memoryRead, memoryWrite } from "../../src/agents/coordination/workflow/nodes/memory-nodes.ts";
import {
  isSubWorkflowType,
  canInvokeAgent,
  NODE_TYPE_IDS,
  findNodeType,
} from "../../src/agents/coordination/workflow/nodes/node-types.ts";
import { subWorkflow } from "../../src/agents/coordination/workflow/nodes/sub-workflow.ts";
import { supervisor } from "../../src/agents/coordination/workflow/nodes/supervisor.ts";
import { a2aInvoke } from "../../src/agents/coordination/workflow/nodes/tool-nodes.ts";
import {
  workspaceRead,
  workspaceWrite,
} from "../../src/agents/coordination/workflow/nodes/workspace-nodes.ts";
import { SETTINGS } from "../support/workflow-settings.ts";
import { MEMBERS, STARTED } from "./workflow-agent-node-scene.ts";
import { createPlay, createView, type Scene } from "./workflow-node-view-scene.ts";

const AGENT = "openclaw.agent";

function stepAs(typeId: string, scene: Scene = {}): NodeStep | undefined {
  return findNodeType(typeId, SETTINGS)?.step(createView(scene));
}

/** The node's agent is one of a manifest that the run may invoke. */
function stepWithAgent(typeId: string, scene: Scene = {}): NodeStep | undefined {
  return stepAs(typeId, { members: MEMBERS, started: STARTED, ...scene });
}

describe("the node type of a name", () => {
  it.each<[typeId: string, type: NodeType]>([
    ["core.delay", delay],
    ["core.fail", fail],
    ["core.approvalGate", approvalGate],
    ["core.chat.approvalGate", approvalGate],
    ["core.clarificationGate", clarificationGate],
    ["core.interrupt", interruptGate],
    ["core.subWorkflow", subWorkflow],
    ["core.control.subWorkflow", subWorkflow],
    ["core.orchestrator.supervisor", supervisor],
    ["core.dispatch", dispatch],
    ["core.a2a.invoke", a2aInvoke],
    [AGENT, agentNode],
    ["openclaw.memory.write", memoryWrite],
    ["openclaw.memory.read", memoryRead],
    ["openclaw.workspace.write", workspaceWrite],
    ["openclaw.workspace.read", workspaceRead],
  ])("%s is that type", (typeId, type) => {
    expect(findNodeType(typeId, SETTINGS)).toBe(type);
    expect(NODE_TYPE_IDS).toContain(typeId);
  });

  it("is one of twenty", () => {
    expect(NODE_TYPE_IDS).toHaveLength(20);
  });

  it("is none where nobody has it, in the product or in the play", () => {
    const settings = { ...SETTINGS, play: createPlay({}) };
    for (const typeId of ["core.unknown", "toString", ""]) {
      expect(findNodeType(typeId, SETTINGS)).toBeUndefined();
      expect(findNodeType(typeId, settings)).toBeUndefined();
    }
  });

  it("may be one of the play, which takes none of the product's away", () => {
    const played: NodeType = { step: () => ({ kind: "wait" }) };
    const nodeTypes = { "core.conformance.counter": played, "core.delay": played };
    const settings = { ...SETTINGS, play: createPlay({ nodeTypes }) };
    expect(findNodeType("core.conformance.counter", settings)).toBe(played);
    expect(findNodeType("core.delay", settings)).toBe(delay);
  });
});

describe("a node that its own type executes", () => {
  it.each<[typeId: string, scene: Scene, step: object]>([
    ["core.noop", { members: { inputs: { x: { type: "static", value: 1 } } } }, { outputs: {} }],
    ["core.identity", { members: { inputs: { x: { type: "static", value: 1 } } } }, { outputs: { x: 1 } }],
    ["core.ai.structuredOutput", { config: { prompt: "p" } }, { effect: { kind: "ask_model" } }],
    ["core.ai.callPrompt", { config: { prompt: "p" } }, { effect: { kind: "ask_model" } }],
  ])("does what %s is for", (typeId, scene, step) => {
    expect(stepAs(typeId, scene)).toMatchObject(step);
  });
});

describe("a node that names an agent of a manifest", () => {
  const INVOKING = [
    "core.noop",
    "core.identity",
    "core.ai.structuredOutput",
    "core.ai.callPrompt",
    AGENT,
  ] as const;

  it.each(INVOKING)("is executed by that agent: %s", (typeId) => {
    expect(stepWithAgent(typeId)).toMatchObject({ kind: "act", effect: { kind: "prepare_agent" } });
    expect(canInvokeAgent(typeId)).toBe(true);
  });

  it("is executed by its own type where it looks at memory, or brings a tool along", () => {
    const looking = { memoryAction: "write-then-read" };
    expect(stepWithAgent("core.identity", { config: looking })).toMatchObject({ kind: "record" });
    const mcp = { tool: "search", url: "http://127.0.0.1:1/mcp" };
    expect(stepWithAgent("core.ai.callPrompt", { config: { mcp } })).toMatchObject({ kind: "record" });
    const config = { mcp, prompt: "p" };
    expect(stepWithAgent("core.ai.structuredOutput", { config })).toMatchObject({
      effect: { kind: "ask_model" },
    });
  });

  it("is not executed by it where its type is another one", () => {
    const others = NODE_TYPE_IDS.filter((typeId) => !INVOKING.some((invoking) => invoking === typeId));
    expect([...others, "core.unknown"].filter(canInvokeAgent)).toEqual([]);
  });
});

describe("a workflow within a workflow", () => {
  it("has one of two names", () => {
    const named = [...NODE_TYPE_IDS, "core.unknown"].filter(isSubWorkflowType);
    expect(named).toEqual(["core.subWorkflow", "core.control.subWorkflow"]);
  });
});
