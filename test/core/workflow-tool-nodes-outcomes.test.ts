/** Owns: what comes of a call of a tool over MCP, or of another agent over A2A. */
import { describe, expect, it } from "vitest";
import { createEventId } from "../../src/agents/coordination/contracts/ids.ts";
import type { WorkflowDraft } from "../../src/agents/coordination/contracts/workflows/workflow-events.ts";
import type {
  EffectOutcome,
  NodeEffect,
  NodeType,
} from "../../src/agents/coordination/workflow/node-contract/node-type.ts";
import { a2aInvoke, toolOrPrompt } from "../../src/agents/coordination/workflow/nodes/tool-nodes.ts";
import type { Values } from "../../src/agents/coordination/workflow/state/values.ts";
import { createView, type Scene } from "./workflow-node-view-scene.ts";
import { RUN } from "./workflow-view-scene.ts";

type ToolOutcome = EffectOutcome & { kind: "tool_answered" };

const TOOL = { config: { mcp: { tool: "search", url: "http://127.0.0.1:1/mcp" } } };
const AGENT = { config: { url: "http://127.0.0.1:1/a2a", skill: "translate" } };
const EFFECT: NodeEffect = { kind: "cause_side_effect", id: "a:1:call", nodeId: "a" };
const CALL = { agentId: "node:a", callId: "a:1" };
const UNTRUSTED = { contentTrust: "untrusted" };

function createAnswer(change: Partial<ToolOutcome> = {}): ToolOutcome {
  return { kind: "tool_answered", ok: true, text: "found", content: [1], ...change };
}

function settle(type: NodeType, scene: Scene, outcome: EffectOutcome): readonly WorkflowDraft[] | undefined {
  return type.settle?.(createView(scene), EFFECT, outcome);
}

function createReturned(payload: Values, more: object = {}): object {
  return { nodeId: "a", type: "agent.toolReturned", ...more, payload: { ...CALL, ...payload } };
}

function createEnd(outputs: Values): WorkflowDraft {
  return { type: "node.completed", nodeId: "a", payload: { nodeId: "a", outputs: { ...outputs } } };
}

function createFailed(code: string, message: string): WorkflowDraft {
  return { type: "node.failed", nodeId: "a", payload: { nodeId: "a", error: { code, message } } };
}

const FOUND = { outcome: { text: "found", ...UNTRUSTED } };

describe("the answer of a tool", () => {
  it("completes the node, and is not trusted", () => {
    expect(settle(toolOrPrompt, TOOL, createAnswer())).toStrictEqual([
      createReturned({ toolName: "search", ...FOUND, status: "ok" }),
      createEnd({ text: "found", content: [1], ...UNTRUSTED }),
    ]);
  });

  it("is told with what it answers, and how long it took", () => {
    const openCall = createEventId(RUN, 4);
    const scene = { ...TOOL, nodeRun: { openCall: { eventId: openCall, sequence: 4, inputs: {} } } };
    expect(settle(toolOrPrompt, scene, createAnswer({ durationMs: 0 }))?.[0]).toStrictEqual(
      createReturned(
        { toolName: "search", ...FOUND, status: "ok", durationMs: 0 },
        { causationId: openCall },
      ),
    );
  });

  it("fails the node where the tool says that it failed", () => {
    expect(settle(toolOrPrompt, TOOL, createAnswer({ ok: false }))).toStrictEqual([
      createReturned({ toolName: "search", ...FOUND, status: "error" }),
      createFailed("tool_failed", "the tool says that it failed"),
    ]);
  });

  it("is told as that of an unknown tool where the node names none any more", () => {
    const scene = { config: { mcp: {} } };
    expect(settle(toolOrPrompt, scene, createAnswer())?.[0]).toMatchObject({
      payload: { toolName: "unknown" },
    });
  });
});

describe("a call that failed", () => {
  it.each<[code: string, status: string]>([
    ["forbidden", "forbidden"],
    ["rate_limited", "rate_limited"],
    ["unreachable", "error"],
  ])("as %s fails the node, with the status %s", (code, status) => {
    const error = { code, message: "it broke" };
    const failed: EffectOutcome = { kind: "failed", error, durationMs: 7 };
    expect(settle(toolOrPrompt, TOOL, failed)).toStrictEqual([
      createReturned({ toolName: "search", error, status, durationMs: 7 }),
      createFailed(code, "it broke"),
    ]);
    expect(settle(a2aInvoke, AGENT, failed)?.[0]).toMatchObject({
      payload: { toolName: "a2a:translate", status },
    });
  });

  it("brings nothing where something else was answered", () => {
    const unrelated: EffectOutcome = { kind: "side_effect_caused", effectId: "e" };
    expect(settle(toolOrPrompt, TOOL, unrelated)).toStrictEqual([]);
    expect(settle(a2aInvoke, AGENT, unrelated)).toStrictEqual([]);
  });

  it("is that of a model where the node names no tool", () => {
    const failed: EffectOutcome = { kind: "failed", error: { code: "no_model", message: "there is none" } };
    expect(settle(toolOrPrompt, { config: { prompt: "p" } }, failed)).toStrictEqual([
      createFailed("no_model", "there is none"),
    ]);
  });
});

describe("the answer of another agent", () => {
  it("completes the node, and is not trusted", () => {
    expect(settle(a2aInvoke, AGENT, createAnswer({ state: "completed" }))).toStrictEqual([
      createReturned({ toolName: "a2a:translate", ...FOUND, status: "ok" }),
      createEnd({ text: "found", content: [1], ...UNTRUSTED }),
    ]);
  });

  it.each<[state: string | undefined, failed: WorkflowDraft]>([
    ["rejected", createFailed("rejected_by_remote", "the remote agent rejected the task")],
    ["canceled", createFailed("remote_agent_failed", "the remote agent's task ended as canceled")],
    [undefined, createFailed("remote_agent_failed", "the remote agent's task ended as failed")],
  ])("fails the node where its task ended as %s", (state, failed) => {
    expect(settle(a2aInvoke, AGENT, createAnswer({ ok: false, ...(state && { state }) }))?.[1]).toStrictEqual(
      failed,
    );
  });

  it.each([
    ["auth-required", "The remote agent needs to be authorised."],
    ["input-required", "The remote agent asks for more."],
  ])("is a question to people where it is %s", (state, question) => {
    const scene = { ...AGENT, nodeRun: { interrupts: 2 } };
    const key = "run-1:a~3";
    expect(settle(a2aInvoke, scene, createAnswer({ ok: false, state }))).toStrictEqual([
      createReturned({ toolName: "a2a:translate", ...FOUND, status: "error" }),
      {
        nodeId: "a",
        type: "node.suspended",
        payload: { nodeId: "a", interruptId: "a~3", kind: "clarification", key, reason: state },
      },
      {
        nodeId: "a",
        type: "interrupt.requested",
        payload: {
          kind: "clarification",
          key,
          data: { questions: [{ id: "q1", question }], contextType: state },
        },
      },
    ]);
  });
});
